"""How an upgrade ends, inside a transaction that somebody else began."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.cluster_record import NOTHING_WANTED, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import raise_change, update_row, wanted_from
from edgewright.adapters.database.tables import upgrades
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.events import EventKind
from edgewright.domain.json import JsonObject
from edgewright.domain.upgrades import Component, FluxTarget, UpgradeState, has_begun, is_proven

KINDS = {
    UpgradeState.UNDER_WAY: EventKind.UPGRADE_BEGUN,
    UpgradeState.DONE: EventKind.UPGRADE_DONE,
    UpgradeState.FELL_BACK: EventKind.UPGRADE_FELL_BACK,
    UpgradeState.FAILED: EventKind.UPGRADE_FAILED,
    UpgradeState.REPLACED: EventKind.UPGRADE_REPLACED,
    UpgradeState.CANCELLED: EventKind.UPGRADE_CANCELLED,
}


class UpgradeRecord(NamedTuple):
    """One row of ``upgrades``, in the order of its columns."""

    cluster: object
    component: Component
    version: str
    before: str | None
    fallback: JsonObject | None
    state: UpgradeState
    since: datetime
    deadline: datetime | None
    ended_at: datetime | None
    reason: str


async def read_upgrade(connection: AsyncConnection, row: ClusterRecord, component: Component) -> UpgradeRecord | None:
    """The last upgrade of a component; None: there was none."""
    mine = (upgrades.c.cluster == row.uuid) & (upgrades.c.component == component)
    found = (await connection.execute(select(upgrades).where(mine))).one_or_none()
    return None if found is None else UpgradeRecord._make(found)


async def note_proof(connection: AsyncConnection, at: datetime, row: ClusterRecord, status: EdgeStatus) -> bool:
    """Ends the upgrade that is under way, if the edge says that it has what is wanted; whether it did."""
    component = row.upgrading
    if component is None or not is_proven(wanted_from(row), component, status):
        return False
    await update_row(connection, row.uuid, upgrading=None)
    await end_upgrade(connection, at, row, component, UpgradeState.DONE)
    return True


async def note_anchor(connection: AsyncConnection, row: ClusterRecord, status: EdgeStatus) -> None:
    """Keeps what the edge says of its anchor; what is applied there for a wanted version is rendered with it."""
    if status.anchor is None or status.anchor == row.anchor:
        return
    if row.components is None:
        await update_row(connection, row.uuid, anchor=status.anchor)
    else:
        await raise_change(connection, row, anchor=status.anchor)


async def drop_wanted(connection: AsyncConnection, at: datetime, row: ClusterRecord, reason: str) -> ClusterChanges:
    """Ends the upgrade that is under way; returns what the row says once the cluster wants no version any more."""
    if row.upgrading is not None:
        await end_upgrade(connection, at, row, row.upgrading, UpgradeState.REPLACED, reason=reason)
    return NOTHING_WANTED if row.upgrading is not None or row.components is not None else {}


async def end_upgrade(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    component: Component,
    state: UpgradeState,
    *,
    reason: str = "",
    actor: str = "centre",
) -> None:
    """Notes the end of an upgrade, and tells of it; the row of the cluster is left to the caller.

    Args:
        actor: who ended it, where not the edge with its proof.
    """
    mine = (upgrades.c.cluster == row.uuid) & (upgrades.c.component == component)
    last = await read_upgrade(connection, row, component)
    if last is None or last.state is not UpgradeState.UNDER_WAY:
        return
    await connection.execute(update(upgrades).where(mine).values(state=state, ended_at=at, reason=reason))
    sentence = {
        UpgradeState.DONE: f"{component.titled} of {row.name} runs in version {last.version}.",
        UpgradeState.FELL_BACK: f"{component.titled} of {row.name} goes back to {last.before}.",
        UpgradeState.FAILED: f"{component.titled} of {row.name} was not upgraded to {last.version}.",
        UpgradeState.REPLACED: f"The upgrade of {row.name} to {last.version} has no more meaning.",
        UpgradeState.CANCELLED: f"{component.titled} of {row.name} is no longer upgraded to {last.version}.",
    }[state]
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor="agent" if state is UpgradeState.DONE else actor,
        kind=KINDS[state],
        message=f"{sentence} {reason}".strip(),
        component=component,
        version=last.version,
        before=last.before,
    )


async def fall_back(
    connection: AsyncConnection, at: datetime, row: ClusterRecord, last: UpgradeRecord, reason: str
) -> bool:
    """Gives an upgrade up; an agent goes back to what it was, if that is known. Whether a commit is needed."""
    component = last.component
    if component is not Component.AGENT or last.fallback is None:
        await update_row(connection, row.uuid, upgrading=None)
        await end_upgrade(connection, at, row, component, UpgradeState.FAILED, reason=reason)
        return False
    components = {**(row.components or {}), component.value: last.fallback}
    await raise_change(connection, row, components=components, upgrading=None)
    await end_upgrade(connection, at, row, component, UpgradeState.FELL_BACK, reason=reason)
    return True


async def call_off(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    last: UpgradeRecord,
    status: EdgeStatus,
    *,
    actor: str,
) -> None:
    """Ends an upgrade because somebody wants it to; the cluster is to have what it had before, if that is known.

    What the edge applies of Flux stays there, and the cluster wants no release any more: going back is not possible.
    """
    component = last.component
    components = {name: target for name, target in (row.components or {}).items() if name != component.value}
    goes_back = last.fallback is not None and not has_begun(wanted_from(row), component, status)
    if goes_back:
        components[component.value] = last.fallback
    await raise_change(connection, row, components=components or None, upgrading=None)
    if not goes_back:
        rest = "what the edge has taken of it stays"
    elif component is Component.AGENT:
        rest = f"the edge goes back to {last.before}"
    else:
        rest = f"the cluster is to have {FluxTarget.model_validate(last.fallback).version} again"
    reason = f"Called off by {actor}; {rest}."
    await end_upgrade(connection, at, row, component, UpgradeState.CANCELLED, reason=reason, actor=actor)
