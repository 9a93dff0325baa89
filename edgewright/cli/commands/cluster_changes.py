"""What a cluster is to be: changed field by field, or label by label, without undoing what somebody else changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import seconds_of
from edgewright.cli.commands.naming import NamedCluster, named
from edgewright.cli.commands.options import AsJson, Chart, ClusterName, Command, Panel, labels_of, values_of
from edgewright.cli.commands.screen import Document, clean, result, say, show_json
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import AcceptancePolicy
from edgewright.domain.json import same_json

FIELDS = ("namespace", "chart", "bare", "values", "labels", "accept", "lease_seconds", "check_in")
"""What can be changed of a cluster, as the API calls it."""
_RENDERED = frozenset({"namespace", "chart", "bare", "values"})
"""A change of one of these gives the edge new files."""
_SHORTEST_LEASE, _LONGEST_LEASE = 10, 30 * 86400
_ATTEMPTS = 5
_OVERTAKEN = "precondition_failed"


class ClusterField(StrEnum):
    """A field that can go back to its default, as the options are called."""

    NAMESPACE = "namespace"
    CHART = "chart"
    BARE = "bare"
    VALUES = "values"
    LABELS = "labels"
    ACCEPT = "accept"
    LEASE = "lease"
    CHECK_IN = "check-in"

    @property
    def in_api(self) -> str:
        """As the API calls it."""
        return "lease_seconds" if self is ClusterField.LEASE else self.value.replace("-", "_")


@dataclass(frozen=True)
class SeenCluster:
    """A cluster as it was when a change of it was decided. ``etag``: its revision; None: it has none."""

    cluster: NamedCluster
    document: Document
    etag: str | None


def see_cluster(gateway: GatewayClient, text: str) -> SeenCluster:
    """The cluster with that name or UUID, as it is now."""
    answer = gateway.request("GET", named(gateway, text).path)
    document = answer.json()
    return SeenCluster(NamedCluster(document["uuid"], document["name"]), document, answer.headers.get("ETag"))


def send_change(gateway: GatewayClient, seen: SeenCluster, patch: Document) -> Document:
    """Sends a merge patch of what was seen; returns the cluster as it is then.

    Raises:
        CliError: it is refused; code ``precondition_failed``: somebody else has changed the cluster meanwhile.
    """
    try:
        changed: Document = gateway.patch(
            seen.cluster.path, dict(patch), headers={"If-Match": seen.etag} if seen.etag else None
        )
    except CliError as error:
        if error.code != _OVERTAKEN:
            raise
        name = seen.cluster.text
        raise CliError(
            f"Somebody else has changed {name} in the meantime; your change was not made.",
            f"`{typed(f'cluster show {name}')}` shows the cluster as it is now. Then decide again.",
            ExitCode.REFUSED,
            code=error.code,
        ) from None
    return changed


def changed_fields(before: Document, after: Document) -> list[str]:
    """The names of the fields in which two documents of a cluster differ."""
    return [field for field in FIELDS if not same_json(field_of(before, field), field_of(after, field))]


def field_of(document: Document, field: str) -> Any:
    """A field of a cluster, as it can be sent back."""
    value = document.get(field)
    if field == "check_in" and value is not None:
        return {"windows": value["windows"], "time_zone": value["time_zone"]}
    return value


def show_change(before: Document, after: Document, *, as_json: bool) -> None:
    """Says what is different now."""
    if as_json:
        show_json(after)
        return
    name = clean(after["name"])
    fields = changed_fields(before, after)
    if not fields:
        result(f"{name} was like that already; nothing was changed.")
        return
    result(f"Changed {', '.join(fields)} of {name}.")
    if not _RENDERED.isdisjoint(fields) and after["hosts"]:
        say(f"`{typed(f'cluster wait {name} --for synced')}` waits until the edge has it.")


def set_fields(
    *,
    cluster: ClusterName,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Namespace on the edge.", show_default=False)
    ] = None,
    chart: Chart = None,
    bare: Annotated[
        bool | None, typer.Option("--bare/--no-bare", help="The edge has its own Flux, or gets ours.")
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--values",
            metavar="FILE",
            help="A YAML or JSON file, merged into the present values; null removes a value.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Set a label; others stay. May be given several times."),
    ] = None,
    accept: Annotated[
        AcceptancePolicy | None,
        typer.Option("--accept", help="Who accepts it when it registers.", show_default=False),
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease", metavar="DURATION", help="Unavailable after this long without a heartbeat, 10s to 30d."
        ),
    ] = None,
    check_in: Annotated[
        list[str] | None,
        typer.Option("--check-in", metavar="WINDOW", help="When the edge calls, such as 'Mon-Fri 22:00-06:00'."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option("--time-zone", help="Time zone of the windows.", show_default="UTC")
    ] = None,
    unset: Annotated[
        list[ClusterField] | None,
        typer.Option(
            "--unset",
            metavar="FIELD",
            help="Return a field to its default. Fields: " + ", ".join(ClusterField) + ".",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change what a cluster is to be; fields that you do not name stay as they are."""
    if time_zone is not None and not check_in:
        raise CliError(
            "--time-zone belongs to --check-in; give both.",
            "For example --check-in '22:00-06:00' --time-zone Europe/London.",
            ExitCode.USAGE,
        )
    wish: dict[str, Any] = {
        "namespace": namespace,
        "chart": chart,
        "bare": bare,
        "values": values_of(values) if values else None,
        "labels": labels_of(label or []) or None,
        "accept": accept,
        "lease_seconds": lease and seconds_of(lease, "--lease", shortest=_SHORTEST_LEASE, longest=_LONGEST_LEASE),
        "check_in": {"windows": check_in, "time_zone": time_zone or "UTC"} if check_in else None,
    }
    patch = {field: value for field, value in wish.items() if value is not None}
    for field in unset or []:
        if field.in_api in patch:
            raise CliError(
                f"--{field} and --unset {field} contradict each other.", "Give only one of them.", ExitCode.USAGE
            )
        patch[field.in_api] = None
    if not patch:
        raise CliError("Say what to change.", "For example --lease 10m, or --unset values.", ExitCode.USAGE)
    with connect() as gateway:
        seen = see_cluster(gateway, cluster)
        show_change(seen.document, send_change(gateway, seen, patch), as_json=as_json)


def label_cluster(
    *,
    cluster: ClusterName,
    changes: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE|KEY-...", help="KEY- removes a label.", show_default=False),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Change labels that have another value.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set and remove labels of a cluster."""
    wanted = _wanted_labels(changes)
    with connect() as gateway:
        for attempt in range(_ATTEMPTS):
            seen = see_cluster(gateway, cluster)
            present: dict[str, str] = seen.document["labels"]
            _refuse_other_values(present, wanted, overwrite=overwrite)
            try:
                after = send_change(gateway, seen, {"labels": wanted})
                break
            except CliError as error:
                # Whoever has changed something else does not contradict us.
                if error.code != _OVERTAKEN or attempt == _ATTEMPTS - 1:
                    raise
    if not as_json:
        for key in (key for key, value in wanted.items() if value is None and key not in present):
            say(f"{seen.cluster.text} has no label {clean(key)}.")
    show_change(seen.document, after, as_json=as_json)


def _wanted_labels(changes: Sequence[str]) -> dict[str, str | None]:
    """Labels by key; None: it is to go."""
    gone = [text.removesuffix("-") for text in changes if "=" not in text and text.endswith("-")]
    if "" in gone:
        raise CliError("`-` names no label to remove.", "For example site-.", ExitCode.USAGE)
    wanted: dict[str, str | None] = {}
    wanted |= labels_of([text for text in changes if "=" in text or not text.endswith("-")])
    for key in gone:
        if key in wanted:
            raise CliError(f"The label {clean(key)} is there twice.", "Name each label once.", ExitCode.USAGE)
        wanted[key] = None
    return wanted


def _refuse_other_values(present: dict[str, str], wanted: dict[str, str | None], *, overwrite: bool) -> None:
    other = [key for key, value in wanted.items() if value is not None and present.get(key, value) != value]
    if other and not overwrite:
        said = ", ".join(f"{clean(key)}={clean(present[key])}" for key in other)
        raise CliError(
            f"There is already {said}; nothing was changed.", "Use --overwrite to change it.", ExitCode.REFUSED
        )


COMMANDS = (
    Command("set", set_fields, Panel.LIFE, "cluster set press-shop --values values.yaml --lease 10m"),
    Command("label", label_cluster, Panel.LIFE, "cluster label press-shop site=sheffield line-"),
)
