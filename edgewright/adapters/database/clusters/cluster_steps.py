"""What the workflow of a cluster reads and writes: what is wanted, its projection, and its steps' entries."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.clusters.wanted_reading import read_wanted
from edgewright.adapters.database.config_store.entries import delete_entry, put_entry
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import is_recorded, record, record_all
from edgewright.adapters.database.events.feed import insert_if_absent
from edgewright.adapters.database.rows.applied_verbs import forget_applied
from edgewright.adapters.database.rows.cluster_record import ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import hold_fence, open_row, update_row
from edgewright.adapters.database.rows.purge_rows import left_at_end
from edgewright.adapters.database.rows.resealing_rows import forget_resealings
from edgewright.adapters.database.rows.setup_status import says_ready
from edgewright.adapters.database.tables import addresses, clusters, events, labels, projections, rendered_from
from edgewright.domain.cluster import ConditionStatus, ConditionType, Desired, Fence, Phase, StepName, Wanted
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, StoredPlace
from edgewright.domain.projection import Projection
from edgewright.domain.verdicts import Trouble, awaited, health_of, is_blocked, trouble_of
from edgewright.domain.wellknown import (
    APP_CLUSTER_SETTINGS,
    APP_CLUSTER_SETUP_STATUS,
    APP_CLUSTER_STATUS,
    APP_GIT_REPOSITORY,
    APP_SPARKPLUG_ADDRESS,
)
from edgewright.errors import NotFound, Stalled, Superseded
from edgewright.ports.audit import NewEvent, RecordedCommit
from edgewright.ports.git_server import CommitId

_ENTRIES_OF_STEP = {
    StepName.REMOVE_ADDRESS: (APP_SPARKPLUG_ADDRESS, APP_GIT_REPOSITORY),
    StepName.REMOVE_EDGE_STATUS: (APP_CLUSTER_STATUS,),
    StepName.REMOVE_SETUP_STATUS: (APP_CLUSTER_SETUP_STATUS, APP_CLUSTER_SETTINGS),
}


_ADDRESSES = select(addresses.c.group_id, addresses.c.cluster).where(
    or_(addresses.c.cluster == bindparam("cluster"), addresses.c.group_id == bindparam("group_id"))
)
_HOLDER = select(addresses.c.cluster).where(addresses.c.group_id == bindparam("group_id"))
_DROP_SOURCES = delete(rendered_from).where(rendered_from.c.cluster == bindparam("of_cluster"))
_ADD_SOURCES = insert(rendered_from)
_COMMITS: Mapping[EventKind, str] = {
    EventKind.GIT_PUSHED: "new",
    EventKind.SECRET_DELETED: "commit",
    EventKind.SECRET_LABELLED: "commit",
    EventKind.SECRET_PUT: "commit",
    EventKind.SECRET_RESEALED: "commit",
    EventKind.STEP_DONE: "commit",
}
"""Kinds of events that tell of a commit, and where in their detail."""


class CommitEvent(NamedTuple):
    """Columns of ``events``, of one that may tell of a commit; they are selected in this order."""

    position: int
    kind: EventKind
    detail: Mapping[str, Any]


AT_REST: ClusterChanges = {
    "waiting_for": "",
    "blocked": False,
    "synced": ConditionStatus.UNKNOWN,
    "healthy": ConditionStatus.UNKNOWN,
    "trouble": Trouble.NONE,
}
"""What lists say of a deleted cluster."""


class SqlClusterSteps:
    """Implements ``ClusterSteps``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_wanted(self, cluster: UUID) -> Wanted | None:
        return await read_wanted(self._database, cluster)

    async def check_fence(self, fence: Fence) -> None:
        async with self._database.read() as connection:
            await hold_fence(connection, fence, lock=False)

    async def begin_deletion(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            if row.desired != Desired.DELETED:
                raise Superseded(f"The cluster {row.name} is not being deleted.")
            if row.deletion_begun_at is None:
                await update_row(connection, row.uuid, deletion_begun_at=await self._database.now(connection))

    async def project(self, cluster: UUID, projection: Projection, events: Sequence[NewEvent]) -> None:
        failing, body = projection.failing, projection.model_dump(mode="json")
        newer = (clusters.c.uuid == cluster) & (clusters.c.projection_sequence < projection.sequence)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            columns = {
                "phase": projection.phase,
                "ready": projection.ready,
                "available": projection.status_of(ConditionType.AVAILABLE),
                "waiting_for": awaited(projection),
                "blocked": is_blocked(projection),
                "synced": projection.status_of(ConditionType.SYNCED),
                "healthy": health_of(projection),
                "trouble": trouble_of(projection),
                "projection_sequence": projection.sequence,
                "change_done": projection.change_done,
                "lease_epoch_taken": projection.lease_epoch,
                "projected_at": at,
                "failing": failing.state if failing else None,
                "failing_step": failing.step if failing else None,
                "underway": projection.underway,
            }
            told = list(events)
            published = await connection.execute(update(clusters).where(newer).values(**columns))
            if published.rowcount:
                told += await _newly_blocked(connection, cluster, projection)
                here = projections.c.cluster == cluster
                replaced = await connection.execute(update(projections).where(here).values(body=body))
                if not replaced.rowcount:
                    await connection.execute(insert(projections).values(cluster=cluster, body=body))
            else:
                await _hold_projection(connection, cluster, body)
                # Its phase was told with it; who has forgotten that, and comes to it again, would date it anew.
                told = [event for event in told if event.kind is not EventKind.PHASE_CHANGED]
            await record_all(connection, at, told)

    async def publish_setup_status(self, fence: Fence, body: Mapping[str, Any]) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            at = await self._database.now(connection)
            await put_entry(connection, at, APP_CLUSTER_SETUP_STATUS, fence.cluster, body)

    async def withdraw_setup_status(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            if await says_ready(connection, row):
                return
            at = await self._database.now(connection)
            await delete_entry(connection, at, APP_CLUSTER_SETUP_STATUS, fence.cluster)

    async def allocate_address(self, fence: Fence, group_id: str) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            at = await self._database.now(connection)
            mine = {"group_id": group_id, "cluster": fence.cluster}
            there = list((await connection.execute(_ADDRESSES, mine)).mappings())
            if there and there != [mine]:
                await _make_room(connection, at, mine)
            await insert_if_absent(connection, addresses, [mine])
            holder = await connection.scalar(_HOLDER, {"group_id": group_id})
            if holder != fence.cluster:
                raise Stalled(
                    f"The Sparkplug address {group_id} belongs to the cluster {holder}.",
                    code="address_taken",
                    hint="Delete that cluster, or recreate this one under another name.",
                )
            await put_entry(connection, at, APP_SPARKPLUG_ADDRESS, fence.cluster, {"group_id": group_id})

    async def write_git_entry(self, fence: Fence, path: str) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            at = await self._database.now(connection)
            await put_entry(connection, at, APP_GIT_REPOSITORY, fence.cluster, {"path": path})

    async def begin_rendering(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            await update_row(connection, fence.cluster, rendered_digest=None)

    async def record_rendering(
        self, fence: Fence, digest: str, sources: Sequence[tuple[UUID, UUID]], *, commit: CommitId
    ) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            await update_row(connection, fence.cluster, rendered_digest=digest, rendered_commit=commit)
            await connection.execute(_DROP_SOURCES, {"of_cluster": fence.cluster})
            rows = [
                {"cluster": fence.cluster, "app": app, "object": object_} for app, object_ in sorted(set(sources))
            ]
            if rows:
                await connection.execute(_ADD_SOURCES, rows)

    async def recorded_commits(self, cluster: UUID, *, limit: int) -> Sequence[RecordedCommit]:
        told = select(*(events.c[name] for name in CommitEvent._fields)).where(
            events.c.cluster == cluster, events.c.kind.in_(_COMMITS)
        )
        newest = told.order_by(events.c.position.desc()).limit(limit)
        found: list[RecordedCommit] = []
        async with self._database.read() as connection:
            rows = [CommitEvent._make(row) for row in await connection.execute(newest)]
            while rows:
                found += [_recorded(row) for row in rows if row.detail.get(_COMMITS[row.kind])]
                if len(found) >= limit or len(rows) < limit:
                    break
                # Not every step has committed something: fewer than were asked for are not yet all that there are.
                older = newest.where(events.c.position < rows[-1].position)
                rows = [CommitEvent._make(row) for row in await connection.execute(older)]
        return found[:limit]

    async def record_drift(
        self,
        cluster: UUID,
        message: str,
        *,
        event: UUID,
        lost: Mapping[StoredPlace, CommitId] | None = None,
        change: int = 0,
        mended: bool = False,
        secrets_commit: CommitId | None = None,
    ) -> bool:
        async with self._database.write() as connection:
            row = await open_row(connection, cluster)
            if secrets_commit not in (None, row.secrets_commit or ""):
                return False
            is_told = await is_recorded(connection, event)
            if is_told and (mended or row.rendered_digest is None):
                return False
            at = await self._database.now(connection)
            await update_row(
                connection,
                cluster,
                rendered_digest=None,
                drift=message,
                must_reenter=sorted({*row.must_reenter, *(lost or {})}, key=str),
                drift_lost={**(row.drift_lost or {}), **(lost or {})},
                change=change + 1 if change > row.change else row.change,
                news_at=at,
            )
            if not is_told:
                await record(
                    connection,
                    at,
                    cluster=cluster,
                    actor="centre",
                    kind=EventKind.GIT_DRIFTED,
                    message=message,
                    event=event,
                )
            return True

    async def lost_in_drift(self, cluster: UUID) -> Mapping[StoredPlace, CommitId]:
        async with self._database.read() as connection:
            return await connection.scalar(select(clusters.c.drift_lost).where(clusters.c.uuid == cluster)) or {}

    async def end_drift(self, cluster: UUID, *, back: Collection[StoredPlace], mended: bool) -> bool:
        async with self._database.write() as connection:
            row = await open_row(connection, cluster)
            if row.drift is None:
                return False
            at = await self._database.now(connection)
            lost = {place: commit for place, commit in (row.drift_lost or {}).items() if place not in back}
            must_reenter = [place for place in row.must_reenter if place not in back]
            # What new hardware has made to be entered again is no drift. Of an earlier version nobody knows which is.
            is_over = mended and not (set(must_reenter) & set(lost) if row.drift_lost else must_reenter)
            if is_over or back:
                await update_row(
                    connection,
                    cluster,
                    must_reenter=must_reenter,
                    drift=None if is_over else row.drift,
                    drift_lost={} if is_over else lost,
                    news_at=at,
                )
            return is_over

    async def record_reentry(
        self,
        fence: Fence,
        *,
        taken: Collection[SecretPlace] = (),
        there: Collection[SecretPlace] = (),
        secrets_commit: CommitId | None = None,
    ) -> bool:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            if secrets_commit not in (None, row.secrets_commit or ""):
                return False
            listed = sorted({*row.must_reenter, *taken} - set(there), key=str)
            lost = {place: commit for place, commit in (row.drift_lost or {}).items() if place not in taken}
            if listed != list(row.must_reenter) or lost != (row.drift_lost or {}):
                await update_row(connection, fence.cluster, must_reenter=listed, drift_lost=lost)
            return True

    async def remove_central_entries(self, fence: Fence, step: StepName) -> None:
        if step not in _ENTRIES_OF_STEP:
            raise ValueError(f"{step} removes no entries")
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            if row.desired != Desired.DELETED:
                raise Superseded(f"The cluster {row.name} is not being deleted.")
            at = await self._database.now(connection)
            if step is StepName.REMOVE_ADDRESS:
                await connection.execute(delete(addresses).where(addresses.c.cluster == fence.cluster))
            if step is StepName.REMOVE_SETUP_STATUS:
                await _close(connection, at, row)
            for app in _ENTRIES_OF_STEP[step]:
                await delete_entry(connection, at, app, fence.cluster)


def _recorded(event: CommitEvent) -> RecordedCommit:
    kind, detail = event.kind, event.detail
    named = all(detail.get(part) for part in ("namespace", "name", "key"))
    return RecordedCommit(
        commit=detail[_COMMITS[kind]],
        secret=SecretKey(detail["namespace"], detail["name"], detail["key"]) if named else None,
        deletes=kind is EventKind.SECRET_DELETED,
        pushed=kind is EventKind.GIT_PUSHED,
    )


async def _hold_projection(connection: AsyncConnection, cluster: UUID, body: Mapping[str, Any]) -> None:
    """Raises unless the projection is there already: an attempt before this one has published it."""
    there = await connection.scalar(select(projections.c.body).where(projections.c.cluster == cluster))
    if there == body:
        return
    if await connection.scalar(select(clusters.c.uuid).where(clusters.c.uuid == cluster)) is None:
        raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
    raise Superseded(f"A newer projection of {cluster} is there.")


async def _newly_blocked(connection: AsyncConnection, cluster: UUID, projection: Projection) -> list[NewEvent]:
    """The event that a person has to act, if the projection before did not say so, or gave another reason."""
    now = projection.condition(ConditionType.BLOCKED)
    if now is None or now.status is not ConditionStatus.TRUE:
        return []
    body = await connection.scalar(select(projections.c.body).where(projections.c.cluster == cluster))
    before = Projection.model_validate(body).condition(ConditionType.BLOCKED) if body else None
    if before is not None and (before.status, before.message) == (now.status, now.message):
        return []
    return [
        NewEvent(
            id=uuid4(),
            cluster=cluster,
            actor="centre",
            kind=EventKind.CLUSTER_BLOCKED,
            message=f"Action required. {now.message}",
            detail={"reason": now.reason},
        )
    ]


async def _make_room(connection: AsyncConnection, at: datetime, mine: Mapping[str, Any]) -> None:
    """A cluster has one address, and those of deleted clusters are free."""
    group_id = mine["group_id"]
    others = (addresses.c.cluster == mine["cluster"]) & (addresses.c.group_id != group_id)
    await connection.execute(delete(addresses).where(others))
    await _free_of_deleted(connection, at, group_id)


async def _free_of_deleted(connection: AsyncConnection, at: datetime, group_id: str) -> None:
    """Takes an address from a cluster that is deleted for good: its removal was skipped, and the name is free."""
    gone = select(clusters.c.uuid).where(clusters.c.closed_at.is_not(None))
    left = (addresses.c.group_id == group_id) & addresses.c.cluster.in_(gone)
    for cluster in list(await connection.scalars(select(addresses.c.cluster).where(left))):
        await connection.execute(delete(addresses).where(addresses.c.cluster == cluster))
        await delete_entry(connection, at, APP_SPARKPLUG_ADDRESS, cluster)


async def _close(connection: AsyncConnection, at: datetime, row: ClusterRecord) -> None:
    """The end of a deletion: the name is free, and the row stays for those who ask for the UUID."""
    if row.closed_at is not None:
        return
    # Underway until the workflow has published it: if it is forgotten before that, the sweep finds the cluster.
    ended: ClusterChanges = {**AT_REST, "closed_at": at, "phase": Phase.DELETED, "ready": False, "underway": True}
    await update_row(connection, row.uuid, **ended)
    for table in (labels, rendered_from):
        await connection.execute(delete(table).where(table.c.cluster == row.uuid))
    await forget_resealings(connection, row.uuid)
    await forget_applied(connection, row.uuid)
    edge = left_at_end(row)
    if row.purge and row.detached_at is None:
        await record(connection, at, cluster=row.uuid, actor="centre", kind=EventKind.EDGE_NOT_PURGED, message=edge)
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor="centre",
        kind=EventKind.CLUSTER_DELETED,
        message=f"The cluster {row.name} was deleted. Its name is free. {edge}".strip(),
        generation=row.generation,
    )
