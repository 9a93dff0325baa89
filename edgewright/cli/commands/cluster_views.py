"""Looking at clusters: the list, one of them, and what happened to it."""

import itertools
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.cluster_page import show_page
from edgewright.cli.commands.event_stream import stream_events
from edgewright.cli.commands.naming import NamedCluster, named, pages
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel, labels_of
from edgewright.cli.commands.screen import (
    Document,
    clean,
    moment,
    pairs,
    result,
    say,
    show_json,
    show_table,
    yes_no,
)
from edgewright.cli.failures import ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import ConditionStatus, Phase
from edgewright.domain.events import EventKind


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
        typer.Option("--phase", case_sensitive=False, help="Removed and Deleted show only if asked for."),
    ] = None,
    ready: Annotated[bool | None, typer.Option("--ready/--not-ready", help="Commissioned, or not.")] = None,
    available: Annotated[
        bool | None, typer.Option("--available/--not-available", help="Heard within the lease, or not.")
    ] = None,
    blocked: Annotated[bool | None, typer.Option("--blocked/--not-blocked", help="A person has to act.")] = None,
    healthy: Annotated[
        ConditionStatus | None, typer.Option("--healthy", case_sensitive=False, help="False: something is wrong.")
    ] = None,
    synced: Annotated[
        ConditionStatus | None, typer.Option("--synced", case_sensitive=False, help="Has the newest commit, or not.")
    ] = None,
    paused: Annotated[bool | None, typer.Option("--paused/--not-paused", help="Commits are held back.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="May be given several times.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="A part of the name.", show_default=False)] = None,
    sort: Annotated[
        Sort,
        typer.Option(
            "--sort",
            metavar="[-]name|phase|created|last_heard|trouble|blocked|healthy|synced|paused",
            help="The last five: trouble first, then by name. - in front: downwards.",
        ),
    ] = Sort.TROUBLE,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.", show_default="all")] = None,
    as_json: AsJson = False,
) -> None:
    """List clusters, one line each, those in trouble first."""
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
        found = list(pages(gateway, filters, limit=limit))
    items, more = [item for page in found for item in page["items"]], found[-1]["next"]
    if as_json:
        show_json({"items": items, "next": more})
    elif items:
        show_table(
            (
                "name",
                "phase",
                "ready",
                "healthy",
                "available",
                "synced",
                "held",
                "heard",
                "labels",
                "uuid",
                "waiting for",
            ),
            [_line(item) for item in items],
        )
        if more:
            say(f"There are more than these {limit}.")
    else:
        filtered = filters.keys() != {"sort"}
        hint = f"`{typed('cluster create NAME --wait')}` commissions one."
        say("No cluster passes these filters." if filtered else f"There is no cluster. {hint}")


def show(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Show everything about one cluster."""
    with connect() as gateway:
        document = gateway.get(named(gateway, cluster).path)
    if as_json:
        show_json(document)
    else:
        show_page(document)


def timeline(
    cluster: ClusterName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what happened to a cluster, by whom and when; also after its deletion."""
    with connect() as gateway:
        meant = named(gateway, cluster, also_deleted=True)
        document = whole_timeline(gateway, meant)
        if follow:
            _show_growing(gateway, meant, document["items"], as_json=as_json)
        elif as_json:
            show_json(document)
        else:
            rows = [(moment(event["at"]), event["actor"], event["message"]) for event in document["items"]]
            show_table(("when", "who", "what"), rows)
            for step in document["waiting"]:
                say(_waiting(step))


def _line(item: Document) -> tuple[str, ...]:
    return (
        str(item["name"]),
        str(item["phase"]),
        yes_no(item["ready"]),
        str(item["healthy"]),
        str(item["available"]),
        str(item["synced"]),
        ", ".join(word for word in ("blocked", "paused") if item[word]),
        moment(item["last_heard"]),
        pairs(item["labels"]),
        str(item["uuid"]),
        str(item["waiting_for"]),
    )


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


def _show_growing(gateway: GatewayClient, cluster: NamedCluster, items: list[Document], *, as_json: bool) -> None:
    """Shows events line by line until the cluster is deleted, or Ctrl-C."""
    try:
        newest = max((event["position"] for event in items), default=0)
        for event in itertools.chain(items, stream_events(gateway, {"cluster": cluster.uuid}, after=newest)):
            if as_json:
                show_json(event, indent=None)
            else:
                result(f"{moment(event['at'])}  {clean(event['actor'])}  {clean(event['message'])}")
            if event["kind"] == EventKind.PHASE_CHANGED and event["detail"].get("phase") == Phase.DELETED:
                return  # nothing comes after it
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _waiting(step: Document) -> str:
    when = f", next attempt at {moment(step['next_at'])}" if step.get("next_at") else ""
    because = f", because {clean(step['error'])}" if step.get("error") else ""
    hint = f" {clean(step['hint'])}" if step.get("hint") else ""
    return f"{step['name']} is {step['state']} after attempt {step['attempts']}{when}{because}{hint}"


COMMANDS = (
    Command("list", list_clusters, Panel.SIGHT, "cluster list --label site=sheffield --sort -last_heard"),
    Command("show", show, Panel.SIGHT, "cluster show press-shop"),
    Command("timeline", timeline, Panel.SIGHT, "cluster timeline press-shop --follow"),
)
