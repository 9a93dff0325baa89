"""How a written configuration becomes, changes or recreates a cluster, inside one transaction."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import (
    check_object,
    delete_entry,
    put_entry,
    read_entry,
    register_object,
    write_entry,
)
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import end_tokens, living_credentials, move_credentials
from edgewright.adapters.database.rows.cluster_record import HARDWARE_UNKNOWN, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    must_read_row,
    raise_change,
    refuse_deleted,
    refuse_doubled_identity,
    refuse_while_deleting,
)
from edgewright.adapters.database.rows.label_rows import add_labels, write_labels
from edgewright.adapters.database.rows.lease_rows import lease_end
from edgewright.adapters.database.rows.staged_rows import refuse_staged
from edgewright.adapters.database.rows.upgrade_rows import drop_wanted
from edgewright.adapters.database.tables import clusters, credentials
from edgewright.adapters.time_zones import timetable_of
from edgewright.domain.cluster import (
    ClusterSettings,
    ClusterSpec,
    ConditionStatus,
    CredentialState,
    Desired,
    Phase,
    Workloads,
)
from edgewright.domain.configuration_news import changed_fields, names_of, sentence_of
from edgewright.domain.events import EventKind
from edgewright.domain.json import same_json
from edgewright.domain.kubernetes_names import check_cluster_namespace
from edgewright.domain.names import check_new_cluster_name, name_key
from edgewright.domain.verdicts import NOT_BEGUN, Trouble
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_SETTINGS,
    APP_CLUSTER_STATUS,
    APP_HELM_CHART_TEMPLATE,
    CLASS_EDGE_CLUSTER,
)
from edgewright.errors import Conflict, Invalid, PreconditionFailed
from edgewright.ports.clusters import Written
from edgewright.ports.config_store import Entry, Precondition


@dataclass(frozen=True)
class ConfigurationWrite:
    """One request to write a configuration, checked as far as that goes without the row."""

    cluster: UUID
    body: Mapping[str, Any]
    spec: ClusterSpec
    settings: ClusterSettings | None
    precondition: Precondition
    seen_settings: ClusterSettings | None
    create_object: bool
    actor: str


async def create_cluster(connection: AsyncConnection, at: datetime, order: ConfigurationWrite) -> Written:
    """A cluster that did not exist before.

    Raises:
        NotFound: ``object_unknown``.
        Conflict: ``wrong_class``, ``name_taken``.
        Invalid: ``chart_unknown``, ``name_invalid``, ``namespace_reserved``.
    """
    check_new_cluster_name(order.spec.name)
    check_cluster_namespace(order.spec.namespace)
    if order.create_object:
        await register_object(connection, CLASS_EDGE_CLUSTER, order.cluster)
    else:
        await check_object(connection, APP_CLUSTER_CONFIGURATION, order.cluster)
    await check_chart(connection, order.spec)
    key = name_key(order.spec.name)
    holder = await connection.scalar(
        select(clusters.c.uuid).where(clusters.c.name_key == key, clusters.c.closed_at.is_(None))
    )
    if holder is not None:
        raise Conflict(
            f"Another cluster is called {order.spec.name}.",
            code="name_taken",
            hint="Choose another name; the name of a removed cluster is free once it is deleted.",
        )
    settings = order.settings or ClusterSettings()
    await connection.execute(insert(clusters).values(uuid=order.cluster, **_first_row(at, order, key, settings)))
    await add_labels(connection, order.cluster, settings.labels)
    if order.settings is not None:
        document = settings.entry()
        await write_entry(connection, at, APP_CLUSTER_SETTINGS, order.cluster, document, new=True)
    entry = await write_entry(connection, at, APP_CLUSTER_CONFIGURATION, order.cluster, order.body, new=True)
    await record(
        connection,
        at,
        cluster=order.cluster,
        actor=order.actor,
        kind=EventKind.CLUSTER_CREATED,
        message=f"The cluster {order.spec.name} was created.",
        name=order.spec.name,
        etag=entry.etag,
    )
    row = await must_read_row(connection, order.cluster)
    return Written(row, entry, created=True, recreated=False, changed=True)


async def change_cluster(
    connection: AsyncConnection, at: datetime, order: ConfigurationWrite, row: ClusterRecord, before: Entry | None
) -> Written:
    """A cluster that exists: its change, its recreation if it was removed, or nothing if nothing differs.

    Raises:
        Conflict: ``name_immutable``, ``namespace_immutable``, ``duplicate_identity``.
        Invalid: ``chart_unknown``, ``namespace_reserved``.
    """
    refuse_other_name(row, order.spec)
    refuse_other_namespace(row, order.spec)
    same_body = before is not None and same_json(before.body, order.body)
    same_settings = order.settings is None or same_json(row.settings, order.settings.entry())
    if before is not None and same_body and same_settings:
        return Written(await must_read_row(connection, order.cluster), before, False, False, changed=False)
    if not same_body and not same_json(row.spec.get("chart"), order.body.get("chart")):
        await check_chart(connection, order.spec)
    await hold_namespace(connection, row, order.spec)
    recreated = row.desired == Desired.REMOVED
    if recreated:
        await refuse_doubled_identity(connection, order.cluster, row.kube_system_uid)
    commissioning = row.commissioning + int(recreated)
    new: ClusterChanges = {"spec": order.body, "desired": Desired.PRESENT, "commissioning": commissioning}
    if order.settings is not None:
        new |= settings_columns(row, order.settings)
    await raise_change(connection, row, **new)
    if order.settings is not None:
        await _keep_settings(connection, at, order.cluster, order.settings)
    entry, _ = await put_entry(connection, at, APP_CLUSTER_CONFIGURATION, order.cluster, order.body)
    changes = list(await asyncio.to_thread(changed_fields, row.spec, dict(order.body)))
    if order.settings is not None:
        changes = [*changes, *changed_fields(row.settings, order.settings.entry())]
    anew = f"The removed cluster {row.name} is being commissioned again."
    told = sentence_of(f"The configuration of {row.name}", changes)
    await record(
        connection,
        at,
        cluster=order.cluster,
        actor=order.actor,
        kind=EventKind.CLUSTER_RECREATED if recreated else EventKind.CLUSTER_CHANGED,
        message=told if not recreated else f"{anew} {told}" if changes else anew,
        fields=names_of(changes),
        commissioning=commissioning,
        etag=entry.etag,
    )
    changed = await must_read_row(connection, order.cluster)
    return Written(changed, entry, created=False, recreated=recreated, changed=True)


def refuse_leaving(row: ClusterRecord) -> None:
    """Raises ``Gone`` (``cluster_deleted``) after a deletion, ``Conflict`` (``deleting``) during one."""
    refuse_deleted(row)
    refuse_while_deleting(row)


def refuse_other_name(row: ClusterRecord, spec: ClusterSpec) -> None:
    """Raises ``Conflict``, code ``name_immutable``."""
    if row.name != spec.name:
        raise Conflict(
            f"The cluster is called {row.name} for life; it cannot become {spec.name}.",
            code="name_immutable",
            hint="Create a new cluster for the new name.",
            where="/name",
        )


def refuse_other_namespace(row: ClusterRecord, spec: ClusterSpec) -> None:
    """Raises ``Invalid`` (``namespace_reserved``) where a cluster is to move into a namespace of Kubernetes."""
    if row.spec.get("namespace") != spec.namespace:
        check_cluster_namespace(spec.namespace)


def refuse_other_settings(row: ClusterRecord, seen: ClusterSettings | None) -> None:
    """Raises ``PreconditionFailed`` if the settings are not those that somebody has decided upon."""
    if seen is not None and ClusterSettings.model_validate(row.settings) != seen:
        raise PreconditionFailed(
            "The settings of the cluster have changed meanwhile.", hint="Read it again, then change it."
        )


async def hold_namespace(connection: AsyncConnection, row: ClusterRecord, spec: ClusterSpec) -> None:
    """Keeps the namespace that an edge was attached in: its credentials and Flux live there.

    While none is attached it may change; bootstrap lines that name the old one die.

    Raises:
        Conflict: code ``namespace_immutable``.
    """
    before = row.spec.get("namespace")
    if before == spec.namespace:
        return
    mine = credentials.c.generation == row.generation
    if row.edge_reported_at is not None or await living_credentials(connection, row.uuid, mine):
        raise Conflict(
            f"The edge of {row.name} is attached in the namespace {before}; it cannot move to {spec.namespace}.",
            code="namespace_immutable",
            hint="Keep the namespace, or change it with `recreate` for new hardware.",
            where="/namespace",
        )
    await end_tokens(connection, row.uuid)


async def check_chart(connection: AsyncConnection, spec: ClusterSpec) -> None:
    """Raises ``Invalid``, code ``chart_unknown``, if the configuration names a chart that nobody knows."""
    if spec.chart is None:
        return
    if await read_entry(connection, APP_HELM_CHART_TEMPLATE, spec.chart) is None:
        raise Invalid(f"There is no Helm chart template {spec.chart}.", code="chart_unknown", where="/chart")


def settings_columns(row: ClusterRecord, settings: ClusterSettings) -> ClusterChanges:
    """What changed settings change in the row.

    Raises:
        Invalid: ``time_zone_unknown``.
    """
    timetable_of(settings)
    expires_at = None if row.last_heard is None else lease_end(row.last_heard, settings)
    return {
        "settings": settings.entry(),
        "labels": settings.labels,
        "lease_seconds": settings.lease_seconds,
        "lease_expires_at": expires_at,
    }


async def leave_hardware(connection: AsyncConnection, at: datetime, row: ClusterRecord) -> ClusterChanges:
    """Lets nothing of the old generation in any more; returns what the row says of the new one."""
    await end_tokens(connection, row.uuid)
    await move_credentials(connection, row.uuid, CredentialState.REVOKED)
    await refuse_staged(
        connection, row.uuid, "new_hardware", "The cluster moves to new hardware; enter the secret again after that."
    )
    await delete_entry(connection, at, APP_CLUSTER_STATUS, row.uuid)
    await drop_wanted(connection, at, row, "The cluster moves to new hardware.")
    return {**HARDWARE_UNKNOWN, "generation": row.generation + 1, "lease_epoch": row.lease_epoch + 1}


async def _keep_settings(connection: AsyncConnection, at: datetime, cluster: UUID, settings: ClusterSettings) -> None:
    await write_labels(connection, cluster, settings.labels)
    await put_entry(connection, at, APP_CLUSTER_SETTINGS, cluster, settings.entry())


def _first_row(at: datetime, order: ConfigurationWrite, key: str, settings: ClusterSettings) -> ClusterChanges:
    timetable_of(settings)
    return {
        **HARDWARE_UNKNOWN,
        "name": order.spec.name,
        "name_key": key,
        "generation": 1,
        "change": 1,
        "commissioning": 1,
        "desired": Desired.PRESENT,
        "created_at": at,
        "created_by": order.actor,
        "phase": Phase.COMMISSIONING,
        "ready": False,
        "available": ConditionStatus.UNKNOWN,
        "waiting_for": NOT_BEGUN,
        "blocked": False,
        "synced": ConditionStatus.UNKNOWN,
        "healthy": ConditionStatus.UNKNOWN,
        "trouble": Trouble.NONE,
        "projection_sequence": 0,
        "change_done": 0,
        "lease_epoch_taken": 0,
        "lease_epoch": 0,
        "lease_seconds": settings.lease_seconds,
        "paused": False,
        "paused_reason": "",
        "force": False,
        "workloads": Workloads.REMOVE,
        "labels": settings.labels,
        "must_reenter": [],
        "settings": settings.entry(),
        "spec": order.body,
    }
