"""Objects of whatever kind, by what every object has: name, labels, owners, finalizers. Of their contents, only what
their containers run is read.

For the detacher, with the rights in ``detach.yaml``; the agent itself reads a handful of kinds, see ``kubernetes``.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from lightkube import KubeConfig
from lightkube.config import client_adapter
from lightkube.core.exceptions import ConfigError

from edgewright.agent.kubernetes import TIMEOUT, trouble_of
from edgewright.agent.urls import USER_AGENT

MANAGER = "edgewright-detach"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE_PATCH = "application/merge-patch+json"
AT_ONCE = 500
"""Objects in one answer."""
AT_ONCE_WHOLE = 50
"""The same, where all that an object holds is in it: the pod has 96 MiB."""
UNANSWERED_GROUPS = frozenset({httpx2.codes.NOT_FOUND, httpx2.codes.SERVICE_UNAVAILABLE})
"""What somebody else's API server, to which Kubernetes hands a group on, answers while it is away."""
_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, OSError, ConfigError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. ``group``: empty for Kubernetes' core."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool
    verbs: frozenset[str] = frozenset({"list", "delete", "patch"})

    @property
    def full_name(self) -> str:
        """As its CustomResourceDefinition is called."""
        return f"{self.plural}.{self.group}"

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of one object, or of all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{inside}/{self.plural}{'/' if name else ''}{name}"


ANCHORS = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", True)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False)
SECRETS = Kind("", "v1", "secrets", "Secret", True)
RUNNING = (
    DEPLOYMENTS,
    Kind("apps", "v1", "statefulsets", "StatefulSet", True),
    Kind("apps", "v1", "daemonsets", "DaemonSet", True),
)
"""What has containers, whether or not a pod runs."""
GRANTS = tuple(
    Kind("rbac.authorization.k8s.io", "v1", f"{name.lower()}s", name, namespaced)
    for name, namespaced in (
        ("RoleBinding", True),
        ("Role", True),
        ("ClusterRoleBinding", False),
        ("ClusterRole", False),
    )
)
"""Kinds that give rights."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom an object goes with."""

    group: str
    kind: str
    uid: str


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of one object. ``namespace``: empty for what lives in none. ``deleting``: it is on its way."""

    kind: Kind
    name: str
    uid: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}{'/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Container:
    """What one container runs. ``labels``: of its pod."""

    image: str
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class ClusterObjects:
    """The cluster that the detacher lives in. Proxies are for the centre only.

    Every method raises:
        Waiting: ``kubernetes_away``: the API server does not answer, or not as one.
        Forbidden: ``kubernetes_forbidden``: a right is missing; ``where`` names what was asked for.
        Unauthenticated: ``kubernetes_unauthenticated``.
        Stalled: ``kubernetes_unknown``: there is no usable configuration.
    """

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Closes its connections; the next question reads the configuration anew."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def kinds(self) -> list[Kind]:
        """Every kind that can be listed, in the version that the cluster prefers."""
        async with self._asking("api groups") as http:
            groups = (await _json(http, "/apis"))["groups"]
            places = [("", "v1", "/api/v1")]
            places += [(each["name"], each["preferredVersion"]["version"], "") for each in groups]
            found: list[Kind] = []
            for group, version, path in places:
                answer = await http.get(path or f"/apis/{group}/{version}")
                if group and answer.status_code in UNANSWERED_GROUPS:
                    continue
                answer.raise_for_status()
                found += [_kind(group, version, each) for each in answer.json()["resources"]]
        return [each for each in found if "/" not in each.plural and "list" in each.verbs]

    async def of(
        self, kind: Kind, *, labels: Mapping[str, str | None] | None = None, namespace: str = ""
    ) -> list[Found]:
        """The objects of a kind, of all namespaces unless one is named; none if the kind is gone.

        Args:
            labels: that they bear; None: with any value.
        """
        said = (name if value is None else f"{name}={value}" for name, value in (labels or {}).items())
        found: list[Found] = []
        async for page in self._pages(kind, namespace, ",".join(said), limit=AT_ONCE, accept=METADATA_LIST):
            found += [_found(kind, each) for each in page]
        return found

    async def containers(self) -> list[tuple[Found, Container]]:
        """The containers of what runs here, each with what runs it."""
        seen: list[tuple[Found, Container]] = []
        for kind in RUNNING:
            async for page in self._pages(kind, limit=AT_ONCE_WHOLE):
                seen += [(_found(kind, each), container) for each in page for container in containers_in(each)]
        return seen

    async def _pages(
        self, kind: Kind, namespace: str = "", selector: str = "", *, limit: int, accept: str = "application/json"
    ) -> AsyncIterator[list[dict[str, Any]]]:
        following = ""
        while True:
            async with self._asking(kind.plural) as http:
                answer = await http.get(
                    kind.path(namespace),
                    params={"labelSelector": selector, "limit": str(limit), "continue": following},
                    headers={"Accept": f"{accept},application/json"},
                )
                if answer.status_code in {httpx2.codes.NOT_FOUND, httpx2.codes.METHOD_NOT_ALLOWED}:
                    return
                answer.raise_for_status()
                content = answer.json()
                items: list[dict[str, Any]] = content["items"] or []  # null where nothing is
                following = content["metadata"].get("continue") or ""
            yield items
            if not following:
                return

    async def get(self, kind: Kind, name: str) -> Found | None:
        """One object that lives in no namespace; None if it is not there."""
        async with self._asking(kind.plural) as http:
            answer = await http.get(kind.path(name=name), headers={"Accept": f"{METADATA},application/json"})
            if answer.status_code == httpx2.codes.NOT_FOUND:
                return None
            answer.raise_for_status()
            return _found(kind, answer.json())

    async def change(self, found: Found, patch: Mapping[str, Any]) -> None:
        """Merges a patch into an object; nothing if it has gone, or is another one by now."""
        metadata = {"uid": found.uid, **patch.get("metadata", {})}
        async with self._asking(found.kind.plural) as http:
            answer = await http.patch(
                found.kind.path(found.namespace, found.name),
                params={"fieldManager": MANAGER},
                headers={"Content-Type": MERGE_PATCH},
                json={**patch, "metadata": metadata},
            )
            _settle(answer)

    async def remove(self, found: Found, *, foreground: bool = False, tries: bool = False) -> None:
        """Deletes an object; nothing if it has gone, or is another one by now.

        Args:
            foreground: it is there until everything that it owns has gone.
            tries: nothing is deleted; raises what deleting it would.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": found.uid},
            "propagationPolicy": "Foreground" if foreground else "Background",
            **({"dryRun": ["All"]} if tries else {}),
        }
        async with self._asking(found.kind.plural) as http:
            _settle(await http.request("DELETE", found.kind.path(found.namespace, found.name), json=options))

    @asynccontextmanager
    async def _asking(self, where: str) -> AsyncIterator[httpx2.AsyncClient]:
        """Keeps connections: every kind is asked for, several times, and each TLS handshake costs both sides more
        than its answer."""
        try:
            yield self._opened()
        except _ERRORS as error:
            await self.close()  # address, authority and token may be others by now
            raise trouble_of(error, where) from None

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            config = KubeConfig.from_env().get()
            if config is None:
                raise ConfigError("there is none")
            parameters = client_adapter.ConnectionParams(timeout=TIMEOUT, trust_env=False)
            self._client = client_adapter.AsyncClient(config, parameters)
            self._client.headers["User-Agent"] = USER_AGENT
        return self._client


async def _json(http: httpx2.AsyncClient, path: str) -> Any:
    answer = await http.get(path)
    answer.raise_for_status()
    return answer.json()


def _settle(answer: httpx2.Response) -> None:
    """What is not there any more, or is another object under the same name, is nobody's concern."""
    if answer.status_code not in {httpx2.codes.NOT_FOUND, httpx2.codes.CONFLICT}:
        answer.raise_for_status()


def _kind(group: str, version: str, described: Mapping[str, Any]) -> Kind:
    return Kind(
        group=group,
        version=version,
        plural=described["name"],
        name=described["kind"],
        namespaced=described["namespaced"],
        verbs=frozenset(described["verbs"]),
    )


def _found(kind: Kind, content: Mapping[str, Any]) -> Found:
    metadata = content["metadata"]
    return Found(
        kind=kind,
        name=metadata["name"],
        uid=metadata["uid"],
        namespace=metadata.get("namespace") or "",
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        owners=tuple(_owner(each) for each in metadata.get("ownerReferences") or ()),
        finalizers=tuple(metadata.get("finalizers") or ()),
        deleting="deletionTimestamp" in metadata,
    )


def containers_in(content: Mapping[str, Any]) -> list[Container]:
    """The containers of a Deployment or the like, as the API server describes it."""
    template = content["spec"]["template"]
    labels = template.get("metadata", {}).get("labels") or {}
    return [
        Container(
            image=str(each.get("image", "")),
            command=tuple(each.get("command") or ()),
            arguments=tuple(each.get("args") or ()),
            labels=labels,
        )
        for each in template["spec"]["containers"]
    ]


def _owner(reference: Mapping[str, Any]) -> Owner:
    group, slash, _ = str(reference["apiVersion"]).partition("/")
    return Owner(group=group if slash else "", kind=reference["kind"], uid=reference["uid"])


def of_group(kinds: Sequence[Kind], suffix: str) -> list[Kind]:
    """The kinds that live in namespaces and whose group ends so."""
    return [each for each in kinds if each.namespaced and each.group.endswith(suffix) and "delete" in each.verbs]
