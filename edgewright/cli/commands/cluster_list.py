"""The list of clusters."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.listing import (
    PEOPLES_FORMS,
    Listing,
    form_of,
    listing_lines,
    show_document,
    show_listing,
)
from edgewright.cli.commands.naming import pages
from edgewright.cli.commands.options import AsJson, Command, Form, Output, Panel, Watch, labels_of
from edgewright.cli.commands.screen import (
    Column,
    Document,
    alarm,
    clean,
    moment,
    pairs,
    room_on_terminal,
    say,
    show_lines,
    yes_no,
)
from edgewright.cli.commands.watching import watch
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import ConditionStatus, Phase, StepState

_PHASES = f"Is in this phase: {', '.join(Phase)}. Without it, the last two are left out."


class Sort(StrEnum):
    """What the list is sorted by; with ``-`` downwards."""

    NAME = "name"
    PHASE = "phase"
    CREATED = "created"
    LAST_HEARD = "last_heard"
    TROUBLE = "trouble"
    BLOCKED = "blocked"
    HEALTHY = "healthy"
    SYNCED = "synced"
    PAUSED = "paused"
    NAME_DOWN = "-name"
    PHASE_DOWN = "-phase"
    CREATED_DOWN = "-created"
    LAST_HEARD_DOWN = "-last_heard"
    TROUBLE_DOWN = "-trouble"
    BLOCKED_DOWN = "-blocked"
    HEALTHY_DOWN = "-healthy"
    SYNCED_DOWN = "-synced"
    PAUSED_DOWN = "-paused"


def list_clusters(
    *,
    phase: Annotated[
        Phase | None,
        typer.Option("--phase", metavar="PHASE", case_sensitive=False, help=_PHASES),
    ] = None,
    ready: Annotated[bool | None, typer.Option("--ready/--not-ready", help="Is commissioned, or is not.")] = None,
    available: Annotated[
        bool | None,
        typer.Option("--available/--not-available", help="Called within its lease, or did not."),
    ] = None,
    blocked: Annotated[
        bool | None,
        typer.Option("--blocked/--not-blocked", help="Needs a person to act, or does not."),
    ] = None,
    healthy: Annotated[
        ConditionStatus | None,
        typer.Option(
            "--healthy", metavar="STATUS", case_sensitive=False, help="true, false (something is wrong) or unknown."
        ),
    ] = None,
    synced: Annotated[
        ConditionStatus | None,
        typer.Option(
            "--synced",
            metavar="STATUS",
            case_sensitive=False,
            help="Has applied the newest commit: true, false or unknown.",
        ),
    ] = None,
    paused: Annotated[
        bool | None,
        typer.Option("--paused/--not-paused", help="Has its commits held back, or has not."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Has this label; repeat the option for several."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Has this text in its name.", show_default=False)] = None,
    sort: Annotated[
        Sort,
        typer.Option(
            "--sort",
            metavar="[-]FIELD",
            help="Sort by name, phase, created or last_heard; or show trouble first by trouble, blocked, healthy,"
            " synced or paused. A - in front reverses the order.",
        ),
    ] = Sort.TROUBLE,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most N clusters.", show_default="all")
    ] = None,
    watching: Watch = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """List clusters, one per line, those in trouble first."""
    form = form_of(output, as_json=as_json)
    wish: dict[str, Any] = {
        "phase": phase,
        "ready": ready,
        "available": available,
        "blocked": blocked,
        "healthy": healthy,
        "synced": synced,
        "paused": paused,
        "label": [f"{key}={value}" for key, value in labels_of(label or []).items()] or None,
        "name": name,
        "sort": sort,
    }
    filters = {field: value for field, value in wish.items() if value is not None}
    with connect() as gateway:
        if watching:
            watch(
                lambda: _fetched(gateway, filters, limit),
                draw=partial(_drawn, form=form) if form in PEOPLES_FORMS else None,
                tell=partial(_tell_changed, form=form),
            )
            return
        document = _fetched(gateway, filters, limit)
    if show_listing(CLUSTERS, document, document["items"], form):
        return
    if not document["items"]:
        hint = f"`{typed('cluster create NAME --wait')}` commissions one."
        filtered = filters.keys() != {"sort"}
        say("No cluster matches these filters." if filtered else f"There is no cluster. {hint}")
    elif document["next"]:
        say(f"There are more than these {limit}.")


def _fetched(gateway: GatewayClient, filters: Mapping[str, Any], limit: int | None) -> Document:
    found = list(pages(gateway, filters, limit=limit))
    return {"items": [item for page in found for item in page["items"]], "next": found[-1]["next"]}


def _drawn(document: Document, *, form: Form) -> list[Text]:
    return listing_lines(CLUSTERS, document["items"], form, room=room_on_terminal())


def _tell_changed(before: Document | None, document: Document, *, form: Form) -> None:
    """Prints the clusters that are another than before. That one was heard again is no change."""
    known = {item["uuid"]: _lasting(item) for item in before["items"]} if before else {}
    items: list[Document] = document["items"]
    changed = [place for place, item in enumerate(items) if known.get(item["uuid"]) != _lasting(item)]
    if form in PEOPLES_FORMS:
        title, *lines = listing_lines(CLUSTERS, items, form, room=None)
        show_lines([*([] if before else [title]), *(lines[place] for place in changed)])
    else:
        for place in changed:
            show_document(items[place], [CLUSTERS.name(items[place])], form, one_of_many=True)
    listed = {item["uuid"] for item in items}
    for item in before["items"] if before else ():
        if item["uuid"] not in listed:
            say(f"{clean(item['name'])} is no longer in the list.")


def _lasting(item: Document) -> dict[str, Any]:
    return {field: value for field, value in item.items() if field != "last_heard"}


def _held(item: Document) -> str:
    return ", ".join(word for word in (StepState.BLOCKED, "paused") if item[word])


def _held_and_waiting(item: Document) -> str:
    """What a cluster waits for, after the reason why it goes no further by itself."""
    return ": ".join(filter(None, (_held(item), str(item["waiting_for"]))))


def _alarm_of_absence(item: Document) -> str:
    return "yellow" if item["available"] == ConditionStatus.FALSE else ""


def _alarm_of_trouble(item: Document) -> str:
    return alarm(StepState.BLOCKED) if item["blocked"] else ""


_NAME = Column("name", lambda item: str(item["name"]), long=True)
_PHASE = Column("phase", lambda item: str(item["phase"]))
_AVAILABLE = Column("available", lambda item: str(item["available"]), style=_alarm_of_absence)

CLUSTERS = Listing(
    columns=(
        _NAME,
        _PHASE,
        _AVAILABLE,
        Column("heard", lambda item: ago(item["last_heard"]) or "never"),
        Column("waiting for", _held_and_waiting, style=_alarm_of_trouble),
    ),
    wide=(
        _NAME,
        _PHASE,
        Column("ready", lambda item: yes_no(item["ready"])),
        Column("healthy", lambda item: str(item["healthy"])),
        _AVAILABLE,
        Column("synced", lambda item: str(item["synced"])),
        Column("held", _held, style=_alarm_of_trouble),
        Column("heard", lambda item: moment(item["last_heard"]) or "never"),
        Column("labels", lambda item: pairs(item["labels"])),
        Column("uuid", lambda item: str(item["uuid"])),
        Column("waiting for", lambda item: str(item["waiting_for"])),
    ),
    name=lambda item: str(item["name"]),
)

COMMANDS = (Command("list", list_clusters, Panel.SIGHT, "cluster list --label site=sheffield --sort -last_heard"),)
