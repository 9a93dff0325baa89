"""What operators and signals want of a cluster, written with its audit event in one transaction."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.clusters.configuration_writes import (
    ConfigurationWrite,
    change_cluster,
    check_chart,
    create_cluster,
    hold_namespace,
    leave_hardware,
    refuse_leaving,
    refuse_other_name,
    refuse_other_namespace,
    refuse_other_settings,
    settings_columns,
)
from edgewright.adapters.database.clusters.deletion_writes import delete_cluster, under_way
from edgewright.adapters.database.config_store.entries import (
    check_precondition,
    delete_entry,
    put_entry,
    read_entry,
)
from edgewright.adapters.database.config_store.schemas import EntrySchemas
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.errors import again_after_collision
from edgewright.adapters.database.events.events import is_recorded, record
from edgewright.adapters.database.rows.access_rows import WORKING, move_credentials
from edgewright.adapters.database.rows.applied_verbs import note_applied
from edgewright.adapters.database.rows.cluster_record import NO_PURGE, ClusterChanges
from edgewright.adapters.database.rows.cluster_rows import (
    find_row,
    must_read_row,
    open_row,
    raise_change,
    refuse_doubled_identity,
    staying_row,
)
from edgewright.adapters.database.rows.label_rows import write_labels
from edgewright.adapters.database.rows.resealing_rows import ask_again
from edgewright.adapters.database.rows.staged_rows import refuse_staged
from edgewright.adapters.database.tables import events
from edgewright.domain.cluster import ClusterSettings, CredentialState, Desired, Workloads
from edgewright.domain.cluster_entries import settings_from, spec_from
from edgewright.domain.configuration_news import changed_fields, names_of, sentence_of
from edgewright.domain.deletion import DeletionRequest, desired_again, refuse_undeletion
from edgewright.domain.events import EventKind
from edgewright.domain.json import same_json
from edgewright.domain.merge_patch import apply_merge_patch
from edgewright.domain.names import check_cluster_name
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS
from edgewright.errors import Conflict
from edgewright.ports.clusters import ClusterRow, Once, Written
from edgewright.ports.config_store import ALWAYS, Entry, Precondition


class SqlClusterWishes:
    """Implements ``ClusterWishes``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schemas = EntrySchemas(database)

    async def write_configuration(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        actor: str,
        settings: ClusterSettings | None = None,
        precondition: Precondition = ALWAYS,
        seen_settings: ClusterSettings | None = None,
        create_object: bool = False,
    ) -> Written:
        documents: dict[UUID, Any] = {APP_CLUSTER_CONFIGURATION: body}
        if settings is not None:
            documents[APP_CLUSTER_SETTINGS] = settings.entry()
        await self._schemas.check_all(documents)
        spec = await asyncio.to_thread(spec_from, body)
        check_cluster_name(spec.name)
        order = ConfigurationWrite(cluster, body, spec, settings, precondition, seen_settings, create_object, actor)
        return await self._carry_out(order)

    @again_after_collision
    async def _carry_out(self, order: ConfigurationWrite) -> Written:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await find_row(connection, order.cluster)
            if row is None:
                check_precondition(order.precondition, None)
                return await create_cluster(connection, at, order)
            refuse_leaving(row)
            before = await read_entry(connection, APP_CLUSTER_CONFIGURATION, order.cluster)
            check_precondition(order.precondition, before)
            refuse_other_settings(row, order.seen_settings)
            return await change_cluster(connection, at, order, row, before)

    async def write_settings(
        self, cluster: UUID, body: Mapping[str, Any], *, actor: str, precondition: Precondition = ALWAYS
    ) -> Entry:
        await self._schemas.check(APP_CLUSTER_SETTINGS, body)
        settings = settings_from(body)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await staying_row(connection, cluster)
            before = await read_entry(connection, APP_CLUSTER_SETTINGS, cluster)
            check_precondition(precondition, before)
            if before is not None and same_json(before.body, body):
                return before
            await raise_change(connection, row, **settings_columns(row, settings))
            await write_labels(connection, cluster, settings.labels)
            entry, _ = await put_entry(connection, at, APP_CLUSTER_SETTINGS, cluster, body)
            changes = changed_fields(row.settings, settings.entry())
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_CHANGED,
                message=sentence_of(f"The settings entry of {row.name}", changes),
                fields=names_of(changes),
                etag=entry.etag,
            )
            return entry

    async def request_removal(self, cluster: UUID, *, actor: str, precondition: Precondition = ALWAYS) -> bool:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            before = await read_entry(connection, APP_CLUSTER_CONFIGURATION, cluster)
            check_precondition(precondition, before)
            if before is None:
                return False
            await raise_change(connection, row, desired=Desired.REMOVED)
            await ask_again(connection, at, cluster)
            await refuse_staged(connection, cluster, "removed", f"The cluster {row.name} was removed.")
            await delete_entry(connection, at, APP_CLUSTER_CONFIGURATION, cluster)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_REMOVED,
                message=f"The configuration of {row.name} was deleted. Its edge is left untouched.",
            )
            return True

    async def request_recreation(
        self,
        cluster: UUID,
        *,
        actor: str,
        new_hardware: bool,
        changes: Mapping[str, Any] | None = None,
        request: UUID | None = None,
    ) -> ClusterRow:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await staying_row(connection, cluster)
            if request is not None and await is_recorded(connection, request):
                return await must_read_row(connection, cluster)
            patched = apply_merge_patch(row.spec, changes or {})
            check = await self._schemas.check_until_the_end(connection, APP_CLUSTER_CONFIGURATION)
            await asyncio.to_thread(check, patched)
            body = patched if isinstance(patched, Mapping) else {}  # the schema wants an object
            spec = await asyncio.to_thread(spec_from, body)
            refuse_other_name(row, spec)
            refuse_other_namespace(row, spec)
            if not same_json(row.spec, body):
                await check_chart(connection, spec)
            new: ClusterChanges = {
                "spec": body,
                "desired": Desired.PRESENT,
                "commissioning": row.commissioning + 1,
            }
            if new_hardware:
                new |= await leave_hardware(connection, at, row)
            else:
                await hold_namespace(connection, row, spec)
                await refuse_doubled_identity(connection, cluster, row.kube_system_uid)
            await raise_change(connection, row, **new)
            await put_entry(connection, at, APP_CLUSTER_CONFIGURATION, cluster, body)
            where = "for new hardware" if new_hardware else "on the same hardware"
            differing = await asyncio.to_thread(changed_fields, row.spec, body)
            told = f" {sentence_of('Its configuration', differing)}" if differing else ""
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_RECREATED,
                message=f"The cluster {row.name} is being commissioned again {where}.{told}",
                fields=names_of(differing),
                event=request,
                generation=new.get("generation", row.generation),
                commissioning=row.commissioning + 1,
            )
            return await must_read_row(connection, cluster)

    async def request_deletion(
        self,
        cluster: UUID,
        *,
        actor: str,
        force: bool = False,
        deadline: timedelta | None = None,
        workloads: Workloads = Workloads.REMOVE,
        purge: bool = False,
        once: Once | None = None,
    ) -> ClusterRow:
        request = DeletionRequest(force, deadline, workloads, purge).check()
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            if not await note_applied(connection, at, cluster, once):
                return await must_read_row(connection, cluster)
            return await delete_cluster(connection, at, row, request, actor=actor)

    async def undelete(self, cluster: UUID, *, actor: str) -> ClusterRow:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            refuse_undeletion(row.name, under_way(row))
            before = desired_again(row.desired_before)
            if before is Desired.PRESENT:
                await refuse_doubled_identity(connection, cluster, row.kube_system_uid)
            staying: ClusterChanges = {
                **NO_PURGE,
                "desired": before,
                "desired_before": None,
                "force": False,
                "deadline": None,
                "workloads": Workloads.REMOVE,
                "inventory_empty_at": None,
                "detached_at": None,
            }
            await raise_change(connection, row, **staying)
            if before is Desired.PRESENT:
                await put_entry(connection, at, APP_CLUSTER_CONFIGURATION, cluster, row.spec)
            else:
                # The deletion let them in to detach with; a removed cluster has no business here.
                await move_credentials(connection, cluster, CredentialState.SUSPENDED, of=WORKING)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_UNDELETED,
                message=f"The deletion of {row.name} was cancelled.",
                desired=before,
            )
            return await must_read_row(connection, cluster)

    async def set_paused(
        self,
        cluster: UUID,
        *,
        paused: bool,
        reason: str,
        actor: str,
        seen: int | None = None,
        once: Once | None = None,
    ) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            if not await note_applied(connection, at, cluster, once):
                return
            reason = reason if paused else ""
            if (row.paused, row.paused_reason) == (paused, reason):
                return
            if seen is not None and await _paused_or_resumed_at(connection, cluster) > seen:
                raise Conflict(
                    f"The cluster {row.name} was paused or resumed by a later wish.",
                    code="overtaken",
                    hint="See how it is now, and decide again.",
                )
            await raise_change(connection, row, paused=paused, paused_reason=reason)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_PAUSED if paused else EventKind.CLUSTER_RESUMED,
                message=f"Commits for {row.name} are paused: {reason}"
                if paused
                else f"Commits for {row.name} have resumed.",
                reason=reason,
                change=row.change + 1,
            )


async def _paused_or_resumed_at(connection: AsyncConnection, cluster: UUID) -> int:
    """The ``change`` that the newest pause or resume has raised the row to; 0 if nobody knows of one."""
    newest = (
        select(events.c.detail)
        .where(events.c.cluster == cluster, events.c.kind.in_([EventKind.CLUSTER_PAUSED, EventKind.CLUSTER_RESUMED]))
        .order_by(events.c.position.desc())
        .limit(1)
    )
    detail = await connection.scalar(newest)
    return int(detail.get("change") or 0) if detail else 0
