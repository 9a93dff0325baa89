"""What the agent reads of its Kubernetes cluster, with the rights in ``rbac.yaml`` and no others."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx2
from lightkube import AsyncClient, KubeConfig
from lightkube.config import client_adapter
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import (
    GenericNamespacedResource,
    create_global_resource,
    create_namespaced_resource,
)
from lightkube.models.authorization_v1 import ResourceAttributes, SelfSubjectAccessReviewSpec
from lightkube.models.meta_v1 import OwnerReference
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import Namespace, Node, Secret
from lightkube.types import PatchType

from edgewright.agent.attachment import ANCHOR
from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.objects import (
    FETCH_ANNOTATION,
    GitRepository,
    HelmChart,
    HelmRelease,
    Kustomization,
    SealedSecretKind,
    failed_chart_of,
    fetched_of,
    host_of,
    kustomized_of,
    opening_of,
    released_of,
    sealed_secret_of,
)
from edgewright.agent.observation import Fetched, Host, Kustomized, Released
from edgewright.agent.opening import Opening
from edgewright.agent.passwords import HeldSecret
from edgewright.agent.sealing_controller import SealedSecret
from edgewright.agent.urls import USER_AGENT
from edgewright.errors import Conflict, EdgewrightError, Forbidden, NotFound, Stalled, Unauthenticated, Waiting

Deployment = create_namespaced_resource("apps", "v1", "Deployment", "deployments")
_ADMISSION = ("admissionregistration.k8s.io", "v1")
Policy = create_global_resource(*_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
PolicyBinding = create_global_resource(
    *_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
)
FETCHING = "edgewright-fetching"
"""The policy, and its binding."""
CHART_FAILED = "ChartFailed"
"""Reason of a release whose chart cannot be made."""
MANAGER = "edgewright-agent"
"""Owns the fields of what the agent has changed."""
TIMEOUT = httpx2.Timeout(10.0)
NODES_AT_ONCE = 50
"""A Node names all images on it: some ten kilobytes each."""
SEALED_AT_ONCE = 20
"""A SealedSecret may have a megabyte."""
OBJECTS_AT_ONCE = 50
"""A release holds its values."""
MOST_CHARTS = 10
"""Charts that are asked for after one look."""
_CLIENT_ERRORS = (
    *(httpx2.HTTPError, httpx2.InvalidURL, OSError, ConfigError),
    *(ValueError, KeyError, TypeError, AttributeError),  # it stumbles so over what is no answer of Kubernetes
)


class Kubernetes:
    """The cluster that the agent lives in: that of its pod, or of ``KUBECONFIG``. Proxies are for the centre only.

    Every method raises:
        Waiting: ``kubernetes_away``: the API server does not answer.
        Forbidden: ``kubernetes_forbidden``: a right is missing; ``where`` names what was asked for.
        Unauthenticated: ``kubernetes_unauthenticated``: the token is not taken.
        Stalled: ``kubernetes_unknown``: there is no usable configuration.
    """

    def __init__(self) -> None:
        self._client: AsyncClient | None = None
        self._turn = asyncio.Lock()  # one question at a time: little memory, and no client is closed under another

    def namespace(self) -> str:
        """The pod's own."""
        return str(self._opened().namespace)

    async def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The ``data`` of a Secret, base64; None if there is none."""
        async with self._asking("secrets"):
            try:
                found = await self._opened().get(Secret, name, namespace=namespace)
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    return None
                raise
        return dict(found.data or {})

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        """A Secret with what a change of it needs; None if there is none."""
        async with self._asking("secrets"):
            try:
                return _held(await self._opened().get(Secret, name, namespace=namespace))
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    return None
                raise

    async def change_secret(
        self, namespace: str, name: str, version: str, data: Mapping[str, str | None]
    ) -> HeldSecret:
        """Sets keys of a Secret (base64; None: the key goes), all or none; returns what it is then.

        Raises:
            Conflict: ``secret_changed``: it is not of that version any more.
        """
        wanted = {"metadata": {"resourceVersion": version}, "data": dict(data)}
        async with self._asking("secrets"):
            try:
                changed = await self._opened().patch(
                    Secret, name, wanted, namespace=namespace, patch_type=PatchType.MERGE, field_manager=MANAGER
                )
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.CONFLICT:
                    detail = f"Somebody else has changed the Secret {name} at the same time."
                    raise Conflict(detail, code="secret_changed", where=name) from None
                raise
        return _held(changed)

    async def may_change_secret(self, namespace: str, name: str) -> bool:
        """Whether the service account may patch a Secret; whatever else keeps it from doing so is not looked at."""
        asked = ResourceAttributes(namespace=namespace, verb="patch", resource="secrets", name=name)
        review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resourceAttributes=asked))
        async with self._asking("selfsubjectaccessreviews"):
            answer = await self._opened().create(review)
            return answer.status is not None and answer.status.allowed

    async def hosts(self) -> list[Host]:
        """Describes every Node."""
        async with self._asking("nodes"):
            return [host_of(node) async for node in self._opened().list(Node, chunk_size=NODES_AT_ONCE)]

    async def namespaces(self, *, most: int) -> list[str]:
        """The names of the Namespaces that stay, in their order; at most so many."""
        found: list[str] = []
        async with self._asking("namespaces"):
            async for each in self._opened().list(Namespace, chunk_size=most):
                if each.metadata and each.metadata.name and not each.metadata.deletionTimestamp:
                    found.append(each.metadata.name)
                if len(found) == most:
                    break
        return found

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]:
        """Flux's GitRepositories in a namespace; none if this Kubernetes knows no such kind."""
        found = await self._flux("gitrepositories", GitRepository, namespace)
        return [fetched_of(each, cluster) for each in found]

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]:
        """Flux's Kustomizations in a namespace; none if this Kubernetes knows no such kind."""
        found = await self._flux("kustomizations", Kustomization, namespace)
        return [kustomized_of(each, cluster) for each in found]

    async def releases(self, namespace: str, cluster: str) -> list[Released]:
        """Flux's HelmReleases in a namespace; none if this Kubernetes knows no such kind. One that waits for its
        chart says why that cannot be made, if that is so."""
        found = await self._flux("helmreleases", HelmRelease, namespace)
        releases = [released_of(each, cluster) for each in found]
        waiting = [each for each in releases if each.waits_for][:MOST_CHARTS]
        failed = {each.name: await self._failed_chart(namespace, each.waits_for or "") for each in waiting}
        return [_stopped_by_chart(each, failed.get(each.name)) for each in releases]

    async def _failed_chart(self, namespace: str, chart: str) -> FluxCondition | None:
        """Nothing is known of one that may not be read."""
        try:
            async with self._asking("helmcharts"):
                return failed_chart_of(await self._opened().get(HelmChart, chart, namespace=namespace))
        except EdgewrightError:
            return None

    async def _flux(
        self, where: str, kind: type[GenericNamespacedResource], namespace: str
    ) -> list[GenericNamespacedResource]:
        async with self._asking(where):
            found = self._opened().list(kind, namespace=namespace, chunk_size=OBJECTS_AT_ONCE)
            try:
                return [each async for each in found]
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    return []
                raise

    async def bounds_fetching(self) -> bool:
        """Whether the policy is there by which the agent may change nothing else of a source."""
        async with self._asking("validatingadmissionpolicies"):
            try:
                policy = await self._opened().get(Policy, FETCHING)
                binding = await self._opened().get(PolicyBinding, FETCHING)
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    return False
                raise
        bound, fails = binding.get("spec") or {}, (policy.get("spec") or {}).get("failurePolicy")
        return fails == "Fail" and bound.get("policyName") == FETCHING and bound.get("validationActions") == ["Deny"]

    async def ask_to_fetch(self, namespace: str, source: str, at: datetime) -> None:
        """Has Flux fetch one of its GitRepositories at once.

        Raises:
            NotFound: ``source_missing``: there is none of that name.
        """
        wanted = {"metadata": {"annotations": {FETCH_ANNOTATION: at.isoformat()}}}
        async with self._asking("gitrepositories"):
            try:
                await self._opened().patch(
                    GitRepository,
                    source,
                    wanted,
                    namespace=namespace,
                    patch_type=PatchType.MERGE,
                    field_manager=MANAGER,
                )
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    detail = f"There is no GitRepository {source}."
                    raise NotFound(detail, code="source_missing", where=source) from None
                raise

    async def sealed_secret(self, namespace: str, name: str) -> SealedSecret | None:
        """What is sealed in a SealedSecret; None if there is none, or this Kubernetes knows no such kind."""
        async with self._asking("sealedsecrets"):
            try:
                found = await self._opened().get(SealedSecretKind, name, namespace=namespace)
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    return None
                raise
            return sealed_secret_of(found, namespace, name)

    async def openings(self) -> list[Opening]:
        """The openings of SealedSecrets that the centre has sealed; none if this Kubernetes knows no such kind."""
        openings: list[Opening] = []
        async with self._asking("sealedsecrets"):
            found = self._opened().list(SealedSecretKind, namespace="*", chunk_size=SEALED_AT_ONCE)
            try:
                async for each in found:
                    opening = opening_of(each)
                    if opening is not None:
                        openings.append(opening)
            except httpx2.HTTPStatusError as error:
                if error.response.status_code != httpx2.codes.NOT_FOUND:
                    raise
        return openings

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        """What stands at a path, as that media type; None if nothing does."""
        async with self._asking(where):
            # lightkube asks for whole objects only
            answer = await self._opened()._client._client.get(path, headers={"Accept": accept})
            if answer.status_code == httpx2.codes.NOT_FOUND:
                return None
            answer.raise_for_status()
            found = answer.json()
            if not isinstance(found, dict):
                raise TypeError(type(found))
        return found

    async def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Sets how many pods a Deployment has.

        Raises:
            NotFound: ``deployment_missing``: there is none of that name.
        """
        async with self._asking("deployments/scale"):
            try:
                await self._opened().patch(
                    Deployment.Scale,
                    name,
                    {"spec": {"replicas": replicas}},
                    namespace=namespace,
                    patch_type=PatchType.MERGE,
                    field_manager=MANAGER,
                )
            except httpx2.HTTPStatusError as error:
                if error.response.status_code == httpx2.codes.NOT_FOUND:
                    raise NotFound(f"There is no Deployment {name}.", code="deployment_missing", where=name) from None
                raise

    async def version(self) -> str:
        """The API server's, such as ``v1.33.1``. Reads the configuration anew: certificates change, too."""
        async with self._asking("version"):
            await self._close()
            config = self._opened().config
            async with client_adapter.AsyncClient(
                config, client_adapter.ConnectionParams(timeout=TIMEOUT, trust_env=False)
            ) as http:
                answer = await http.get("/version", headers={"User-Agent": USER_AGENT})
                answer.raise_for_status()
                content: dict[str, Any] = answer.json()
        return str(content.get("gitVersion", ""))

    async def close(self) -> None:
        """Closes its connections; the next question reads the configuration anew."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _opened(self) -> AsyncClient:
        if self._client is None:
            try:
                config = KubeConfig.from_env()
                self._client = AsyncClient(config, timeout=TIMEOUT, trust_env=False)
                # lightkube takes no headers of ours; a test sees this one arrive.
                self._client._client._client.headers["User-Agent"] = USER_AGENT
            except (ConfigError, OSError, KeyError, AssertionError) as error:
                raise Stalled(
                    "There is no usable configuration of Kubernetes.",
                    code="kubernetes_unknown",
                    hint="The agent runs in a pod with a service account's token, or with KUBECONFIG.",
                ) from error
        return self._client

    @asynccontextmanager
    async def _asking(self, where: str) -> AsyncIterator[None]:
        """Translates what the client raises. No text of it is kept: it may repeat what was asked for."""
        try:
            async with self._turn:
                yield
        except _CLIENT_ERRORS as error:
            trouble = trouble_of(error, where)
            if not isinstance(trouble, Forbidden):
                await self.close()  # address, authority and token may be others by now
            raise trouble from None


def _stopped_by_chart(release: Released, chart: FluxCondition | None) -> Released:
    """With what its chart says in the place of *Ready*, which says only that it waits for that."""
    if chart is None:
        return release
    stated = tuple(
        replace(each, reason=CHART_FAILED, message=chart.message) if each.type == "Ready" else each
        for each in release.conditions
    )
    return replace(release, conditions=stated)


def _held(found: Secret) -> HeldSecret:
    metadata = found.metadata
    if metadata is None:
        return HeldSecret(data=dict(found.data or {}), labels={}, version="")
    return HeldSecret(
        data=dict(found.data or {}),
        labels=dict(metadata.labels or {}),
        version=metadata.resourceVersion or "",
        created=metadata.creationTimestamp,
        anchor=next((each.uid for each in metadata.ownerReferences or () if _is_anchor(each)), None),
    )


def _is_anchor(owner: OwnerReference) -> bool:
    return (owner.kind, owner.name) == ("ClusterRole", ANCHOR)


def trouble_of(error: Exception, where: str) -> EdgewrightError:
    """What an error of the client means. No text of it is kept: it may repeat what was asked for."""
    status = _status(error)
    if status == httpx2.codes.UNAUTHORIZED:
        return Unauthenticated("Kubernetes does not take the agent's token.", code="kubernetes_unauthenticated")
    if status == httpx2.codes.FORBIDDEN:
        return Forbidden(
            f"The agent's service account may not use {where}.", code="kubernetes_forbidden", where=where
        )
    if status is not None:
        return Waiting(f"Kubernetes answers with HTTP {status}.", code="kubernetes_away")
    if isinstance(error, ConfigError):
        return Stalled("The agent's token for Kubernetes is not there.", code="kubernetes_unknown")
    if isinstance(error, httpx2.RequestError | OSError):
        return Waiting(f"Kubernetes cannot be reached ({type(error).__name__}).", code="kubernetes_away")
    return Waiting("What Kubernetes answers cannot be read.", code="kubernetes_away")


def _status(error: BaseException | None) -> int | None:
    """The status of the answer that was an error; the client stumbles over some, such as one without content type."""
    while error is not None:
        if isinstance(error, httpx2.HTTPStatusError):
            return error.response.status_code
        error = error.__context__
    return None
