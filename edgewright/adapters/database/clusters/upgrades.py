"""Upgrades: admission under a limit, and the judgement of those under way."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Select, case, delete, func, insert, literal, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.columns import MOMENT
from edgewright.adapters.database.config_store.config_store import delete_and_tell
from edgewright.adapters.database.config_store.entries import read_entry
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import find_row, present_row, raise_change, wanted_from
from edgewright.adapters.database.rows.upgrade_rows import (
    UpgradeRecord,
    call_off,
    fall_back,
    note_proof,
    read_upgrade,
)
from edgewright.adapters.database.tables import clusters, entries, upgrades
from edgewright.adapters.database.upkeep.presence import listens, read_presence
from edgewright.domain.cluster import Acceptance, Desired, LeaseState
from edgewright.domain.edge_status import EdgeStatus, read_edge_status
from edgewright.domain.events import EventKind
from edgewright.domain.imported_flux import release_object, release_unknown
from edgewright.domain.json import JsonObject
from edgewright.domain.upgrades import (
    PATIENCE,
    Component,
    FluxTarget,
    Upgrade,
    UpgradeState,
    WantedComponents,
    trouble_of,
)
from edgewright.domain.wellknown import APP_CLUSTER_STATUS, APP_FLUX_BUNDLE
from edgewright.errors import Conflict, Invalid
from edgewright.ports.upgrades import UpgradeFilter, UpgradePage, UpgradeWish

ADMISSION_LOCK = 0x65647570
"""Key of the PostgreSQL advisory lock that lets one transaction count and admit at a time."""
LARGEST_PAGE = 500
_NOT_UNDER_WAY = "upgrade_not_under_way"


class ShownUpgrade(NamedTuple):
    """What a page shows; the columns are selected in this order."""

    cluster: UUID
    name: str
    component: Component
    version: str
    before: str | None
    state: UpgradeState
    since: datetime
    ended_at: datetime | None
    reason: str


class SqlUpgrades:
    """Implements ``Upgrades``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, wish: UpgradeWish, *, actor: str) -> tuple[Upgrade, bool]:
        async with self._database.write() as connection:
            await _take_turn(connection)
            at = await self._database.now(connection)
            row = await present_row(connection, wish.cluster)
            present = wanted_from(row)
            wanted = present.with_target(wish.target)
            last = await read_upgrade(connection, row, wish.component)
            if last is not None and wanted == present and _stands(row, last):
                return _told(row, last), False
            _demand_room(row, wish)
            await _demand_turn(connection, wish)
            if isinstance(wish.target, FluxTarget) and not await _is_kept(connection, wish.target):
                raise release_unknown(wish.target.version)
            components = wanted.model_dump(mode="json", exclude_none=True)
            await raise_change(connection, row, components=components, upgrading=wish.component)
            begun = UpgradeRecord(
                cluster=row.uuid,
                component=wish.component,
                version=wish.target.version,
                before=wish.before,
                fallback=_fallback_of(wish, present, last),
                state=UpgradeState.UNDER_WAY,
                since=at,
                deadline=at + PATIENCE if row.lease_state is LeaseState.CURRENT else None,
                ended_at=None,
                reason="",
            )
            mine = (upgrades.c.cluster == row.uuid) & (upgrades.c.component == wish.component)
            await connection.execute(delete(upgrades).where(mine))
            await connection.execute(insert(upgrades).values(begun._asdict()))
            await record(
                connection,
                at,
                cluster=row.uuid,
                actor=actor,
                kind=EventKind.UPGRADE_BEGUN,
                message=f"{wish.component.titled} of {row.name} is to be upgraded to {begun.version}.",
                component=wish.component,
                version=begun.version,
                before=begun.before,
            )
            return _told(row, begun), True

    async def cancel(self, cluster: UUID, component: Component | None = None, *, actor: str) -> Upgrade:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            if row.upgrading is None or component not in {None, row.upgrading}:
                raise await _not_under_way(connection, row, component)
            status = await _status_of(connection, cluster)
            is_proven = await note_proof(connection, at, row, status)
            last = await read_upgrade(connection, row, row.upgrading)
            if last is not None and not is_proven:
                await call_off(connection, at, row, last, status, actor=actor)
                last = await read_upgrade(connection, row, row.upgrading)
        if last is None or is_proven:  # what is proven is noted, so this is no matter of the transaction
            raise _has_ended(row, last)
        return _told(row, last)

    async def under_way(self) -> Sequence[UUID]:
        statement = (
            select(clusters.c.uuid)
            .where(clusters.c.upgrading.is_not(None), clusters.c.closed_at.is_(None))
            .order_by(clusters.c.uuid)
        )
        async with self._database.read(long=True) as connection:
            return list(await connection.scalars(statement))

    async def judge(self, cluster: UUID) -> bool:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await find_row(connection, cluster)
            if row is None or row.upgrading is None or row.closed_at is not None:
                return False
            last = await read_upgrade(connection, row, row.upgrading)
            if last is None:
                return False
            status = await _status_of(connection, cluster)
            if await note_proof(connection, at, row, status):
                return True
            presence = await read_presence(connection)
            if presence is None or not listens(presence.listening_since, presence.listening_until, at):
                return False
            if not _could_have_it(row, last):
                await _set_deadline(connection, last, None)
            elif last.deadline is None:
                if row.lease_state is LeaseState.CURRENT:
                    await _set_deadline(connection, last, at + PATIENCE)
            elif at >= max(last.deadline, presence.listening_since + PATIENCE):
                return await fall_back(connection, at, row, last, _reason(row, last, status))
            return False

    async def drop_flux(self, sha256: str, *, actor: str) -> bool:
        async with self._database.write() as connection:
            await _take_turn(connection)
            if (await connection.execute(_wanting(sha256))).first() is not None:
                return False
            at = await self._database.now(connection)
            return await delete_and_tell(connection, at, APP_FLUX_BUNDLE, release_object(sha256), actor=actor)

    async def page(self, filter_: UpgradeFilter) -> UpgradePage:
        if not 1 <= filter_.limit <= LARGEST_PAGE:
            raise Invalid(f"A page has 1 to {LARGEST_PAGE} lines.", code="limit_invalid", where="limit")
        columns = [clusters.c.name if name == "name" else upgrades.c[name] for name in ShownUpgrade._fields]
        ended = case((upgrades.c.state == UpgradeState.UNDER_WAY, 0), else_=1)
        statement = select(*columns).join(clusters, clusters.c.uuid == upgrades.c.cluster)
        statement = statement.where(clusters.c.closed_at.is_(None))
        if filter_.component is not None:
            statement = statement.where(upgrades.c.component == filter_.component)
        if filter_.state is not None:
            statement = statement.where(upgrades.c.state == filter_.state)
        if filter_.cluster is not None:
            statement = statement.where(upgrades.c.cluster == filter_.cluster)
        if filter_.after is not None:
            last_ended, last_since, last_cluster, last_component = _position(filter_.after)
            behind = tuple_(upgrades.c.since, upgrades.c.cluster, upgrades.c.component) < tuple_(
                literal(last_since, MOMENT),
                literal(last_cluster, upgrades.c.cluster.type),
                literal(last_component, upgrades.c.component.type),
            )
            statement = statement.where((ended > last_ended) | ((ended == last_ended) & behind))
        statement = statement.order_by(
            ended, upgrades.c.since.desc(), upgrades.c.cluster.desc(), upgrades.c.component.desc()
        ).limit(filter_.limit + 1)
        async with self._database.read(long=True) as connection:
            rows = [ShownUpgrade._make(row) for row in await connection.execute(statement)]
        shown = rows[: filter_.limit]
        more = len(rows) > filter_.limit
        return UpgradePage([Upgrade(**row._asdict()) for row in shown], _cursor(shown[-1]) if more else None)


async def _take_turn(connection: AsyncConnection) -> None:
    """Lets nobody else admit an upgrade, or drop a release, before this transaction ends. SQLite has one writer."""
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(ADMISSION_LOCK)))


async def _is_kept(connection: AsyncConnection, target: FluxTarget) -> bool:
    """Whether the centre has the release, as the one that edges get or as a kept one."""
    there = select(entries.c.object).where(
        entries.c.app == APP_FLUX_BUNDLE, entries.c.body["sha256"].as_string() == target.sha256
    )
    return (await connection.execute(there.limit(1))).first() is not None


def _wanting(sha256: str) -> Select[tuple[UUID]]:
    """A cluster that is to have a release of Flux, or goes back to it if its upgrade is called off."""
    under_way = (upgrades.c.cluster == clusters.c.uuid) & (upgrades.c.state == UpgradeState.UNDER_WAY)
    of_flux = under_way & (upgrades.c.component == Component.FLUX)
    wanted = clusters.c.components["flux"]["sha256"].as_string() == sha256
    before = upgrades.c.fallback["sha256"].as_string() == sha256
    return (
        select(clusters.c.uuid)
        .select_from(clusters.outerjoin(upgrades, of_flux))
        .where(clusters.c.closed_at.is_(None), wanted | before)
        .limit(1)
    )


async def _not_under_way(connection: AsyncConnection, row: ClusterRecord, component: Component | None) -> Conflict:
    if row.upgrading is not None:
        return Conflict(
            f"{row.upgrading.titled} of {row.name} is what is being upgraded.",
            code=_NOT_UNDER_WAY,
            hint=f"Name the component {row.upgrading}, or none, to call that off.",
        )
    known = [await read_upgrade(connection, row, each) for each in Component if component in {None, each}]
    ended = [each for each in known if each is not None]
    return _has_ended(row, max(ended, key=lambda each: each.since, default=None))


def _has_ended(row: ClusterRecord, last: UpgradeRecord | None) -> Conflict:
    if last is None:
        sentence = f"{row.name} is not being upgraded."
    elif last.state is UpgradeState.CANCELLED:
        sentence = f"The upgrade of {row.name} to {last.component} {last.version} was called off already."
    elif last.state in {UpgradeState.DONE, UpgradeState.UNDER_WAY}:
        sentence = f"{row.name} has {last.component} {last.version} already: its edge has proven it."
    else:
        sentence = f"The upgrade of {row.name} to {last.component} {last.version} has ended: {last.state}."
    hint = "There is nothing to call off; `edgewright upgrade list` shows what is under way."
    return Conflict(sentence, code=_NOT_UNDER_WAY, hint=hint)


def _stands(row: ClusterRecord, last: UpgradeRecord) -> bool:
    """Whether what is asked for is under way already, or proven."""
    return row.upgrading is last.component or last.state is UpgradeState.DONE


def _demand_room(row: ClusterRecord, wish: UpgradeWish) -> None:
    if row.upgrading is not None:
        raise Conflict(
            f"An upgrade of {row.name} is under way: {row.upgrading}.",
            code="upgrade_under_way",
            hint="Wait for its end; `edgewright upgrade list` shows it.",
        )
    if row.paused:
        raise Conflict(
            f"Commits for {row.name} are paused, so an upgrade would not reach it.",
            code="paused",
            hint=f"Resume it first: edgewright cluster resume {row.name}.",
        )
    if row.acceptance is not Acceptance.ACCEPTED or row.edge_reported_at is None:
        raise Conflict(
            f"No edge of {row.name} has reported yet, so there is nothing to upgrade.",
            code="edge_not_attached",
            hint="A bootstrap line installs the newest versions.",
        )
    if row.lease_state is not LeaseState.CURRENT and not wish.even_if_silent:
        raise Conflict(
            f"The edge of {row.name} is silent, so nobody could see whether an upgrade works.",
            code="edge_silent",
            hint="Upgrade it once it is heard again, or say even_if_silent.",
        )


def _fallback_of(wish: UpgradeWish, present: WantedComponents, last: UpgradeRecord | None) -> JsonObject | None:
    """What the cluster is to have again if nothing comes of it."""
    if wish.component is Component.AGENT:
        return None if wish.fallback is None else wish.fallback.model_dump(mode="json", exclude_none=True)
    if present.flux == wish.target:  # it is tried again
        return None if last is None else last.fallback
    return None if present.flux is None else present.flux.model_dump(mode="json", exclude_none=True)


async def _demand_turn(connection: AsyncConnection, wish: UpgradeWish) -> None:
    if wish.at_once is None:
        return
    counted = select(func.count()).where(
        clusters.c.upgrading.is_not(None), clusters.c.closed_at.is_(None), clusters.c.uuid != wish.cluster
    )
    under_way = await connection.scalar(counted) or 0
    if under_way >= wish.at_once:
        raise Conflict(
            f"{under_way} upgrades are under way, and no more than {wish.at_once} may be at once.",
            code="upgrade_limit_reached",
            hint="Ask again when one has ended; `edgewright upgrade list` shows them.",
        )


async def _status_of(connection: AsyncConnection, cluster: UUID) -> EdgeStatus:
    entry = await read_entry(connection, APP_CLUSTER_STATUS, cluster)
    return read_edge_status(entry.body if entry else {})


def _could_have_it(row: ClusterRecord, last: UpgradeRecord) -> bool:
    """Whether the version is in the repository, and the edge was heard since somebody wants it."""
    is_committed = row.change_done >= row.change and row.rendered_digest is not None
    has_called = row.last_heard is not None and row.last_heard > last.since
    return row.desired is Desired.PRESENT and not row.paused and is_committed and has_called


async def _set_deadline(connection: AsyncConnection, last: UpgradeRecord, deadline: datetime | None) -> None:
    """Writes it if it differs. None: the time of the upgrade has not begun."""
    if last.deadline != deadline:
        mine = (upgrades.c.cluster == last.cluster) & (upgrades.c.component == last.component)
        await connection.execute(update(upgrades).where(mine).values(deadline=deadline))


def _reason(row: ClusterRecord, last: UpgradeRecord, status: EdgeStatus) -> str:
    waited = f"Nothing has proven {last.version} within {PATIENCE.seconds // 60} minutes"
    if row.lease_state is not LeaseState.CURRENT:
        return f"{waited}, and the edge is silent."
    said = trouble_of(wanted_from(row), last.component, status)
    return f"{waited}. Flux says: {said[:500]}" if said else f"{waited}."


def _told(row: ClusterRecord, last: UpgradeRecord) -> Upgrade:
    return Upgrade(
        cluster=row.uuid,
        name=row.name,
        component=last.component,
        version=last.version,
        before=last.before,
        state=last.state,
        since=last.since,
        ended_at=last.ended_at,
        reason=last.reason,
    )


def _cursor(last: ShownUpgrade) -> str:
    ended = int(last.state is not UpgradeState.UNDER_WAY)
    position = [ended, last.since.isoformat(), str(last.cluster), last.component.value]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _position(cursor: str) -> tuple[int, datetime, UUID, Component]:
    try:
        ended, since, cluster, component = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        moment = datetime.fromisoformat(since).astimezone(UTC)
        return int(bool(ended)), moment, UUID(cluster), Component(component)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Invalid(
            "This is no continuation of this list.",
            code="after_invalid",
            hint="Use `next` of the page before.",
            where="after",
        ) from None
