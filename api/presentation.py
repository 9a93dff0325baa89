"""How a cluster is shown."""

from dataclasses import dataclass
from datetime import UTC, datetime

from api.schemas.clusters import (
    Certificate,
    CertificateProposed,
    CheckInBody,
    ClusterBody,
    Deletion,
    LeaseBody,
    Links,
    Pause,
    ReachBody,
    Revisions,
    SummaryBody,
)
from api.synced import Lack
from edgewright.adapters.time_zones import timetable_of
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Desired, Phase
from edgewright.domain.conditions import BEHIND
from edgewright.domain.ended import left_on_edge, patience_of
from edgewright.domain.projection import Projection
from edgewright.domain.verdicts import NOT_BEGUN, awaited
from edgewright.ports.clusters import ClusterRow, ClusterSummary


@dataclass(frozen=True)
class LinkBases:
    """What the links of clusters begin with.

    Args:
        external_url: of the gateways; no trailing slash.
        temporal_ui_url: of Temporal's Web UI; None: no links there.
        temporal_namespace: in those links.
    """

    external_url: str
    temporal_ui_url: str | None
    temporal_namespace: str


def cluster_body(
    bases: LinkBases,
    row: ClusterRow,
    projection: Projection | None = None,
    *,
    lack: Lack | None = None,
) -> ClusterBody:
    """Everything about one cluster.

    Args:
        projection: a newer one than the row's, if its workflow has just answered with one.
        lack: why *Synced* is not true any more, whatever its workflow has compared last.
    """
    shown = projection or row.projection
    return ClusterBody(
        uuid=row.uuid,
        name=row.spec.name,
        namespace=row.spec.namespace,
        chart=row.spec.chart,
        bare=row.spec.bare,
        values=row.spec.values,
        labels=row.settings.labels,
        accept=row.settings.accept,
        lease_seconds=row.settings.lease_seconds,
        check_in=_check_in(row),
        generation=row.generation,
        desired=row.desired,
        phase=shown.phase if shown else Phase.COMMISSIONING,
        ready=says_ready(shown, row),
        waiting_for=awaited(shown) if shown else NOT_BEGUN,
        acceptance=row.acceptance,
        short_code=row.short_code,
        pause=Pause(paused=row.paused, reason=row.paused_reason),
        conditions=[_with_lack(each, lack) for each in shown.conditions] if shown else [],
        steps=list(shown.steps) if shown else [],
        hosts=_hosts(row),
        versions=dict((row.edge_status.versions if row.edge_status else None) or {}),
        certificate=Certificate(**row.certificate.model_dump()) if row.certificate else None,
        certificate_proposed=CertificateProposed(**row.proposed.model_dump()) if row.proposed else None,
        revisions=Revisions(desired=shown.desired_revision if shown else None, observed=row.observed_revision),
        lease=LeaseBody(
            state=row.lease.state,
            last_heard=row.lease.last_heard,
            expires_at=row.lease.expires_at,
            clock_offset_seconds=row.lease.clock_offset_seconds,
        ),
        reach=ReachBody(url=row.reach.url, ca_sha256=row.reach.ca_sha256, problem=row.reach.problem)
        if row.reach
        else None,
        residue=list(shown.residue) if shown else [],
        must_reenter=[str(place) for place in row.must_reenter],
        resealing=shown.resealing if shown else None,
        deletion=_deletion(row),
        links=links_of(bases, row),
        created_at=row.created_at,
        created_by=row.created_by,
        as_of=row.projected_at,
    )


def says_ready(projection: Projection | None, row: ClusterRow) -> bool:
    """Whether the cluster is ready. What is older than the newest commissioning says nothing about it."""
    return bool(projection and projection.ready and projection.done.commissioning >= row.commissioning)


def _with_lack(stated: Condition, lack: Lack | None) -> Condition:
    if lack is None or stated.type is not ConditionType.SYNCED:
        return stated
    message, since = lack.message, lack.since
    return Condition(type=stated.type, status=ConditionStatus.FALSE, reason=BEHIND, message=message, since=since)


def summary_body(summary: ClusterSummary) -> SummaryBody:
    """One line of the list."""
    return SummaryBody(
        uuid=summary.uuid,
        name=summary.name,
        phase=summary.phase,
        ready=summary.ready,
        available=summary.available,
        blocked=summary.blocked,
        synced=summary.synced,
        healthy=summary.healthy,
        paused=summary.paused,
        deleted_at=summary.deleted_at,
        labels=dict(summary.labels),
        generation=summary.generation,
        created_at=summary.created_at,
        last_heard=summary.last_heard,
        waiting_for=summary.waiting_for,
    )


def links_of(bases: LinkBases, row: ClusterRow) -> Links:
    """Where to look further."""
    workflow = None
    if bases.temporal_ui_url:
        workflow = f"{bases.temporal_ui_url}/namespaces/{bases.temporal_namespace}/workflows/cluster-{row.uuid}"
    return Links(repository=f"{bases.external_url}/git/cluster/{row.spec.name}", temporal_ui=workflow)


def _hosts(row: ClusterRow) -> list[dict[str, object]]:
    hosts = row.edge_status.document.get("hosts") if row.edge_status else None
    return [dict(host) for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []


def _check_in(row: ClusterRow) -> CheckInBody | None:
    windows = timetable_of(row.settings)
    if windows is None:
        return None
    said = windows.check_in
    opening = windows.next_opening(datetime.now(UTC))
    return CheckInBody(windows=list(said.windows), time_zone=said.time_zone, next_opening=opening)


def _deletion(row: ClusterRow) -> Deletion | None:
    if row.desired is not Desired.DELETED:
        return None
    answers = bool(row.can_answer)
    message = patience_of(force=row.force, can_answer=answers, acceptance=row.acceptance, deadline=row.deadline)
    waits = answers and not row.force
    return Deletion(
        force=row.force,
        workloads=row.workloads,
        deadline=row.deadline if waits else None,
        message=message,
        purge=row.purge.asked,
        edge=left_on_edge(row.purge, row.acceptance, over=row.force),
    )
