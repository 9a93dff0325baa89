"""Looking at one cluster: what it is, and what happened to it."""

import itertools
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.cluster_page import page_lines
from edgewright.cli.commands.event_stream import stream_events
from edgewright.cli.commands.listing import PEOPLES_FORMS, Listing, form_of, show_document, show_listing
from edgewright.cli.commands.naming import NamedCluster, named
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Form, Output, Panel, Watch
from edgewright.cli.commands.screen import (
    Column,
    Document,
    clean,
    moment,
    result,
    room_on_terminal,
    say,
    show_lines,
)
from edgewright.cli.commands.watching import watch
from edgewright.cli.failures import ExitCode
from edgewright.domain.cluster import Phase
from edgewright.domain.events import EventKind

_TIMELINE = Listing(
    columns=(
        Column("when", lambda event: moment(event["at"])),
        Column("who", lambda event: str(event["actor"]), long=True),
        Column("what", lambda event: str(event["message"])),
    ),
    wide=(
        Column("when", lambda event: str(event["at"])),
        Column("position", lambda event: str(event["position"])),
        Column("kind", lambda event: str(event["kind"])),
        Column("who", lambda event: str(event["actor"])),
        Column("what", lambda event: str(event["message"])),
    ),
    name=lambda event: str(event["id"]),
)


def show(cluster: ClusterName, watching: Watch = False, output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """Show everything about one cluster."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        meant = named(gateway, cluster)
        if watching:
            watch(
                lambda: gateway.get(meant.path),
                draw=partial(_page, form=form) if form in PEOPLES_FORMS else None,
                tell=partial(_tell_changed, form=form),
            )
            return
        document = gateway.get(meant.path)
    _show_page(document, form)


def _show_page(document: Document, form: Form, *, one_of_many: bool = False) -> None:
    if not show_document(document, [document["name"]], form, one_of_many=one_of_many):
        show_lines(_page(document, form=form))


def _page(document: Document, *, form: Form) -> list[Text]:
    return page_lines(document, form=form, room=room_on_terminal())


def _tell_changed(before: Document | None, document: Document, *, form: Form) -> None:
    """Prints the page if it is another than before. That the edge was heard again is no change."""
    if before is None or _lasting(before) != _lasting(document):
        if before and form in PEOPLES_FORMS:
            result("")
        _show_page(document, form, one_of_many=True)


def _lasting(document: Document) -> dict[str, Any]:
    return {field: value for field, value in document.items() if field not in {"as_of", "lease"}}


def timeline(
    cluster: ClusterName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Also print new events as they happen.")] = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show what happened to a cluster, by whom and when, even after its deletion."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        meant = named(gateway, cluster, also_deleted=True)
        document = whole_timeline(gateway, meant)
        if follow:
            _show_growing(gateway, meant, document["items"], form)
        elif not show_listing(_TIMELINE, document, document["items"], form, fold=True):
            for step in document["waiting"]:
                say(_waiting(step))


def whole_timeline(gateway: GatewayClient, cluster: NamedCluster) -> dict[str, Any]:
    """The timeline as one document."""
    items: list[Document] = []
    after: int | None = 0
    page: dict[str, Any] = {}
    while after is not None:
        page = gateway.get(f"{cluster.path}/timeline", {"after": after})
        items += page["items"]
        after = page["next"]
    items.sort(key=lambda event: (datetime.fromisoformat(event["at"]), event["position"]))  # each page is, by itself
    return {**page, "items": items}


def _show_growing(gateway: GatewayClient, cluster: NamedCluster, items: list[Document], form: Form) -> None:
    """Shows events line by line until the cluster is deleted, or Ctrl-C."""
    try:
        newest = max((event["position"] for event in items), default=0)
        for event in itertools.chain(items, stream_events(gateway, {"cluster": cluster.uuid}, after=newest)):
            if not show_document(event, [event["id"]], form, one_of_many=True):
                columns = _TIMELINE.wide if form is Form.WIDE else _TIMELINE.columns
                result("  ".join(clean(column.cell(event)) for column in columns))
            if event["kind"] == EventKind.PHASE_CHANGED and event["detail"].get("phase") == Phase.DELETED:
                return  # nothing comes after it
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _waiting(step: Document) -> str:
    when = f", next attempt at {moment(step['next_at'])}" if step.get("next_at") else ""
    because = f": {clean(step['error'])}" if step.get("error") else ""
    hint = f" {clean(step['hint'])}" if step.get("hint") else ""
    return f"{step['name']} is {step['state']} after attempt {step['attempts']}{when}{because}{hint}"


COMMANDS = (
    Command("show", show, Panel.SIGHT, "cluster show press-shop"),
    Command("timeline", timeline, Panel.SIGHT, "cluster timeline press-shop --follow"),
)
