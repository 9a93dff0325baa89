"""What the commands that change Secrets share: their arguments, and one request for all that belongs together."""

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import seconds_of, spoken
from edgewright.cli.commands.naming import NamedCluster, named
from edgewright.cli.commands.screen import clean, result, say, show_json
from edgewright.cli.commands.secret_waiting import wait_until_opened
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.opened_secrets import EdgeState
from edgewright.domain.secret_template import TemplateChange, check_template_change

COMMIT_HEADER, WARNING_HEADER = "Edgewright-Commit", "Edgewright-Warning"

SecretName = Annotated[
    str,
    typer.Argument(metavar="NAMESPACE/NAME", help="Namespace and name of the Kubernetes Secret.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and seal, but store nothing.")]
CreateNamespace = Annotated[
    bool, typer.Option("--create-namespace", help="Also create the namespace on the edge, in the same commit.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the edge has opened it, and show progress.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="Label of the whole Secret, not encrypted; NAME- removes one.",
        show_default=False,
    ),
]
Annotations = Annotated[
    list[str] | None,
    typer.Option(
        "--annotation",
        metavar="NAME=VALUE",
        help="Annotation of the whole Secret, not encrypted; NAME- removes one.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class How:
    """How values are set.

    Args:
        wait_seconds: for so long it waits for the edge to open them; None: not at all.
    """

    dry_run: bool
    create_namespace: bool
    wait_seconds: float | None
    as_json: bool
    allow_empty: bool = False

    @property
    def params(self) -> dict[str, str] | None:
        """Query parameters of the request."""
        namespace = {"create_namespace": self.create_namespace}
        return _switched_on({"dryrun": self.dry_run, **namespace, "allow_empty": self.allow_empty})

    @property
    def params_of_many(self) -> dict[str, str] | None:
        """Query parameters where a request sets many keys, and each says itself whether its namespace is created."""
        return _switched_on({"dryrun": self.dry_run, "allow_empty": self.allow_empty})


def _switched_on(flags: Mapping[str, bool]) -> dict[str, str] | None:
    return {name: "true" for name, is_on in flags.items() if is_on} or None


def how_of(
    *,
    dry_run: bool,
    wait: bool,
    timeout: str,
    as_json: bool,
    create_namespace: bool = False,
    allow_empty: bool = False,
) -> How:
    """What options say.

    Raises:
        CliError: they do not go together, or ``timeout`` is no time.
    """
    if wait and dry_run:
        raise CliError(
            "A dry run stores nothing, so there is nothing to wait for.",
            "Leave out --dry-run or --wait.",
            ExitCode.USAGE,
        )
    seconds = seconds_of(timeout, "--timeout")
    return How(dry_run, create_namespace, seconds if wait else None, as_json, allow_empty)


def place_of(secret: str) -> SecretReference:
    """The Secret, by names that Kubernetes would take: only then may they become a path.

    Raises:
        CliError: there is no ``/`` in between.
        Invalid: see ``edgewright.domain.kubernetes_names``.
    """
    namespace, slash, name = secret.partition("/")
    if not slash:
        raise CliError("A Secret is given as NAMESPACE/NAME.", "For example default/db.", ExitCode.USAGE)
    return SecretReference(namespace, name).check()


def template_of(
    secret_type: str | None, labels: Sequence[str] | None, annotations: Sequence[str] | None
) -> TemplateChange:
    """What options want to change of a Secret.

    Raises:
        CliError: a label or annotation is not ``NAME=VALUE`` or ``NAME-``, or is there twice.
        Invalid: Kubernetes or the centre would refuse it.
    """
    return check_template_change(
        TemplateChange(secret_type, pairs_of(labels or (), "--label"), pairs_of(annotations or (), "--annotation"))
    )


def secret_url(cluster: NamedCluster, place: SecretReference) -> str:
    """The path of one Secret at the gateway."""
    return "/".join([cluster.path, "secret", quote(place.namespace, safe=""), quote(place.name, safe="")])


def key_path(cluster: NamedCluster, place: SecretReference, key: str) -> str:
    """The path of one key at the gateway."""
    return f"{secret_url(cluster, place)}/{quote(key, safe='')}"


def put_value(gateway: GatewayClient, path: str, value: bytes, how: How) -> httpx.Response:
    """Sets the key at ``path``."""
    octets = {"Content-Type": "application/octet-stream"}
    return send_once(gateway, "PUT", path, params=how.params, content=value, headers=octets)


def set_values(
    gateway: GatewayClient,
    meant: NamedCluster,
    place: SecretReference,
    values: Mapping[str, bytes],
    *,
    template: TemplateChange,
    how: How,
) -> httpx.Response:
    """Sets keys of one Secret in one request."""
    secret = {"namespace": place.namespace, "name": place.name}
    more = {"type": template.type, "labels": dict(template.labels), "annotations": dict(template.annotations)}
    # A centre of an earlier version does not know the later words, and can do what does not need them.
    created = {"create_namespace": True} if how.create_namespace else {}
    body: dict[str, Any] = {
        "changes": [
            {**secret, "key": key, "value_base64": b64encode(value).decode(), **created}
            for key, value in values.items()
        ],
        **({"secrets": [{**secret, **more}]} if template else {}),
    }
    return _change(gateway, meant, body, how.params_of_many)


def delete_keys(
    gateway: GatewayClient, meant: NamedCluster, place: SecretReference, keys: Sequence[str]
) -> str | None:
    """Deletes keys of one Secret in one request; returns the commit."""
    secret = {"namespace": place.namespace, "name": place.name}
    answer = _change(gateway, meant, {"changes": [{**secret, "key": key, "delete": True} for key in keys]})
    commit: str | None = answer.headers.get(COMMIT_HEADER)
    return commit


def seal_secret(cluster: str, secret: str, values: Mapping[str, bytes], template: TemplateChange, how: How) -> None:
    """Sets keys of one Secret, and says so."""
    place = place_of(secret)
    with connect() as gateway:
        meant = named(gateway, cluster)
        answer = set_values(gateway, meant, place, values, template=template, how=how)
        keys = f"{len(values)} keys" if len(values) > 1 else next(iter(values))
        tell_sealed(gateway, meant, answer, secret=secret, keys=keys, how=how)


def tell_sealed(
    gateway: GatewayClient, meant: NamedCluster, answer: httpx.Response, *, secret: str, keys: str, how: How
) -> None:
    """Says what has become of values of a Secret; waits for the edge if that is asked for.

    Raises:
        CliError: see ``secret_waiting.wait_until_opened``.
    """
    warning = answer.headers.get(WARNING_HEADER)
    if warning:
        say(f"Warning: {clean(warning)}")
    commit, what = answer.headers.get(COMMIT_HEADER), f"{secret} {keys} of {meant.text}"
    if how.wait_seconds is None:
        show_commit(commit, what, "is sealed", secret=secret, as_json=how.as_json)
        return
    (say if how.as_json else result)(f"{what} is sealed, commit {commit}.")
    began = time.monotonic()
    wait_until_opened(gateway, meant, place_of(secret), seconds=how.wait_seconds)
    _show_opened(commit, f"{meant.text} has opened {secret}", began, secret=secret, as_json=how.as_json)


def tell_changed(
    gateway: GatewayClient, meant: NamedCluster, answer: httpx.Response, *, secret: str, names: str, how: How
) -> None:
    """Says what has become of labels or annotations of a Secret; waits for the edge if that is asked for.

    Raises:
        CliError: see ``secret_waiting.wait_until_opened``.
    """
    commit, what = answer.headers.get(COMMIT_HEADER), f"{secret} {names} of {meant.text}"
    if how.wait_seconds is None:
        show_commit(commit, what, "is changed", secret=secret, as_json=how.as_json, could="changed")
        return
    (say if how.as_json else result)(f"{what} is changed, commit {commit}.")
    began = time.monotonic()
    wait_until_opened(gateway, meant, place_of(secret), seconds=how.wait_seconds, values_stay=True)
    _show_opened(commit, f"{meant.text} has changed {secret}", began, secret=secret, as_json=how.as_json)


def _show_opened(commit: str | None, done: str, began: float, *, secret: str, as_json: bool) -> None:
    if as_json:
        show_json({"commit": commit, "edge_state": EdgeState.OPENED}, names=[secret])
    else:
        result(f"{done} after {spoken(time.monotonic() - began)}.")


def show_commit(
    commit: str | None, what: str, done: str, *, secret: str, as_json: bool, could: str = "sealed"
) -> None:
    """Says what was done, and in which commit; after a dry run, what could be."""
    if as_json:
        show_json({"commit": commit}, names=[secret])
    elif commit is None:
        result(f"{what} could be {could}; nothing was stored.")
    else:
        result(f"{what} {done}, commit {commit}.")


def _change(
    gateway: GatewayClient, meant: NamedCluster, body: Mapping[str, Any], params: Mapping[str, str] | None = None
) -> httpx.Response:
    return send_once(gateway, "POST", f"{meant.path}/secret", params=params, body=body)


def pairs_of(texts: Sequence[str], option: str) -> dict[str, str | None]:
    """What texts such as ``NAME=VALUE`` say; None for ``NAME-``.

    Args:
        option: that takes them.

    Raises:
        CliError: one of them is something else, or is there twice.
    """
    pairs: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and not name.endswith("-"):
            raise CliError(
                f"{option} takes NAME=VALUE, or NAME- to remove one.",
                "For example team=press, or team-.",
                ExitCode.USAGE,
            )
        name = name if equals else name.removesuffix("-")
        if name in pairs:
            raise CliError(f"{option} is there twice for one name.", "Give each name once.", ExitCode.USAGE)
        pairs[name] = value if equals else None
    return pairs
