"""What happens to all clusters, and what deletions have left behind."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import ago, is_duration, seconds_of
from edgewright.cli.commands.event_stream import stream_events
from edgewright.cli.commands.naming import did_you_mean, named
from edgewright.cli.commands.options import AsJson
from edgewright.cli.commands.screen import Document, clean, moment, result, say, show_json, show_table
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.events import EventKind

_LOOKED_BACK = "24h"
_EVERYTHING = "all"


def events(
    *,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", metavar="CLUSTER", help="Only of this cluster; may be given several times."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="KIND", help="Only of this kind, such as step.blocked, or step for all that begin so."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DURATION|TIME",
            help="How far back: 2h, 2031-02-03T04:05 (UTC), or all.",
            show_default="24h; from now on with --follow",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what happens to clusters, one event a line; --json prints one document a line."""
    filters: dict[str, Any] = {}
    if kind:
        filters["kind"] = _kinds(kind)
    begin = _moment_of(since or ("" if follow else _LOOKED_BACK))
    if begin is not None:
        filters["since"] = begin.isoformat()
    after = 0 if since == _EVERYTHING else None
    with connect() as gateway:
        if cluster:
            filters["cluster"] = [named(gateway, each, also_deleted=True).uuid for each in cluster]
        names = _Names(gateway)
        found = False
        try:
            for event in stream_events(gateway, filters, after=after, follow=follow):
                found = True
                if as_json:
                    show_json(event, indent=None)
                else:
                    who = names.of(event["cluster"])
                    result(f"{moment(event['at'])}  {who}  {clean(event['actor'])}  {clean(event['message'])}")
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    if not found and since:
        say("No event passes these filters.")
    elif not found:
        say("No event in the last 24 h passes these filters; --since 7d looks further back.")


def residue(as_json: AsJson = False) -> None:
    """Show what deletions could not clean up yet, and why."""
    with connect() as gateway:
        document = gateway.get("/v1/residue")
    if as_json:
        show_json(document)
        return
    rows = [
        (each["name"], left["step"], ago(left["since"]), left["reason"])
        for each in document["items"]
        for left in each["residue"]
    ]
    if rows:
        show_table(("cluster", "step", "since", "what is left"), rows, long=("cluster",))
    else:
        say("Deletions have left nothing behind.")


class _Names:
    """The names of clusters, each asked for once."""

    def __init__(self, gateway: GatewayClient) -> None:
        self._gateway = gateway
        self._known: dict[str, str] = {}

    def of(self, cluster: str | None) -> str:
        """The name; the UUID of a cluster that was deleted; ``-`` for an event of none."""
        if cluster is None:
            return "-"
        if cluster in self._known:
            return self._known[cluster]
        name = cluster
        try:
            document: Document = self._gateway.get(f"/v1/cluster/{cluster}")
        except CliError as error:
            if error.exit_code is ExitCode.UNAVAILABLE:
                return clean(cluster)  # the events go on when the gateway is back
            if error.exit_code is not ExitCode.NOT_FOUND:
                raise
        else:
            name = document["name"]
        self._known[cluster] = clean(name)
        return self._known[cluster]


def _kinds(texts: Iterable[str]) -> list[str]:
    """The kinds of events that were named, by themselves or by their first word.

    Raises:
        CliError: there is none of that name.
    """
    found: list[str] = []
    for text in texts:
        wanted = text.lower().removesuffix(".*").removesuffix(".")
        kinds = [kind.value for kind in EventKind if wanted in {kind.value, kind.value.partition(".")[0]}]
        if not kinds:
            groups = {kind.value.partition(".")[0] for kind in EventKind}
            hint = did_you_mean(wanted, [*EventKind, *sorted(groups)]) or f"Groups: {', '.join(sorted(groups))}."
            raise CliError(f"There is no kind of event called {clean(text)}.", hint, ExitCode.USAGE)
        found += kinds
    return found


def _moment_of(since: str) -> datetime | None:
    """When that was; None: at no particular moment."""
    if since in {"", _EVERYTHING}:
        return None
    if is_duration(since):
        try:
            return datetime.now(UTC) - timedelta(seconds=seconds_of(since, "--since"))
        except OverflowError:
            return None  # before there were clusters
    try:
        found = datetime.fromisoformat(since)
    except ValueError:
        raise CliError(
            "--since takes a duration, a time, or all.",
            "For example --since 2h, or --since 2031-02-03T04:05:06Z.",
            ExitCode.USAGE,
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
