"""`edgewright upgrade`: what is being upgraded on edges, and how it ended."""

from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from edgewright.cli.client import connect
from edgewright.cli.commands import completion
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.listing import (
    PEOPLES_FORMS,
    Listing,
    form_of,
    listing_lines,
    show_document,
    show_listing,
)
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, Form, Output, Watch, example
from edgewright.cli.commands.screen import Column, Document, moment, room_on_terminal, say, show_lines
from edgewright.cli.commands.upgrade_cancel import cancel_upgrades
from edgewright.cli.commands.upgrading import upgrades
from edgewright.cli.commands.watching import watch
from edgewright.cli.invocation import typed
from edgewright.domain.upgrades import Component, UpgradeState

app = typer.Typer(no_args_is_help=True)


def _alarm_of_state(item: Document) -> str:
    return (
        "bold red" if item["state"] in {UpgradeState.FELL_BACK, UpgradeState.FAILED, UpgradeState.CANCELLED} else ""
    )


_NAME = Column("name", lambda item: str(item["name"]), long=True)
_COMPONENT = Column("what", lambda item: str(item["component"]))
_FROM = Column("from", lambda item: str(item["before"] or ""), long=True)
_TO = Column("to", lambda item: str(item["version"]), long=True)
_STATE = Column("state", lambda item: str(item["state"]), style=_alarm_of_state)
_REASON = Column("reason", lambda item: str(item["reason"]))
_UPGRADES = Listing(
    columns=(_NAME, _COMPONENT, _TO, _STATE, Column("since", lambda item: ago(_latest(item))), _REASON),
    wide=(
        _NAME,
        _COMPONENT,
        _FROM,
        _TO,
        _STATE,
        Column("begun", lambda item: moment(item["since"])),
        Column("ended", lambda item: moment(item["ended_at"])),
        Column("uuid", lambda item: str(item["cluster"])),
        _REASON,
    ),
    name=lambda item: str(item["name"]),
)


def _latest(item: Document) -> str:
    """When it came into the state that it is in."""
    return str(item["ended_at"] or item["since"])


@app.command("list", epilog=example("upgrade list --state under_way --watch"))
def list_upgrades(
    *,
    component: Annotated[
        Component | None,
        typer.Option("--component", case_sensitive=False, help="Only of the agent, or only of Flux."),
    ] = None,
    state: Annotated[
        UpgradeState | None,
        typer.Option(
            "--state", metavar="STATE", case_sensitive=False, help=f"In this state: {', '.join(UpgradeState)}."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="CLUSTER",
            help="Only of this cluster.",
            show_default=False,
            autocompletion=completion.clusters,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most N upgrades.", show_default="all")
    ] = None,
    watching: Watch = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """List the last upgrade of each cluster's agent and Flux: those under way, then the newest."""
    form = form_of(output, as_json=as_json)
    filters: dict[str, str] = {}
    if component is not None:
        filters["component"] = component.value
    if state is not None:
        filters["state"] = state.value
    with connect() as gateway:
        if cluster is not None:
            filters["cluster"] = gateway.get(named(gateway, cluster).path)["uuid"]

        def look() -> Document:
            return {"items": list(upgrades(gateway, filters, limit=limit))}

        if watching:
            draw = partial(_drawn, form=form) if form in PEOPLES_FORMS else None
            watch(look, draw=draw, tell=partial(_tell_changed, form=form))
            return
        document = look()
    if not show_listing(_UPGRADES, document, document["items"], form, fold=True) and not document["items"]:
        say("No upgrade passes these filters." if filters else f"Nothing was upgraded yet. {_how_to_begin()}")


def _how_to_begin() -> str:
    return f"`{typed('agent upgrade CLUSTER')}` and `{typed('flux upgrade CLUSTER')}` begin one."


def _drawn(document: Document, *, form: Form) -> list[Text]:
    return listing_lines(_UPGRADES, document["items"], form, room=room_on_terminal(), fold=True)


def _tell_changed(before: Document | None, document: Document, *, form: Form) -> None:
    """Prints the upgrades that are others than before."""
    known = before["items"] if before else ()
    changed = [item for item in document["items"] if item not in known]
    if form in PEOPLES_FORMS:
        title, *lines = listing_lines(_UPGRADES, changed, form, room=None)
        show_lines([*([] if before else [title]), *lines])
    else:
        for item in changed:
            show_document(item, [_UPGRADES.name(item)], form, one_of_many=True)


app.command("cancel", epilog=example("upgrade cancel press-shop line-4"))(cancel_upgrades)
