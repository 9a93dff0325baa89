"""What tests of the workflow ask of a centre: is it there yet, how often, and has the workflow told it?"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from centre import WorkflowCentre
from loose_objects import object_file
from sealing_keys import certificate_pem, private_key

from edgewright.domain.cluster import Phase, StepName, StepState
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.fleet import FleetUnavailable
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, parse_certificate, seal

CERTIFICATE = parse_certificate(certificate_pem(private_key()), now=datetime.now(UTC))


def staged(cluster: UUID, name: str, key: str) -> StagedChange:
    return StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=1,
        place=SecretKey("default", name, key),
        ciphertext=seal(Plaintext(b"v"), CERTIFICATE, scope=Scope.STRICT, secret=SecretReference("default", name)),
        fingerprint=CERTIFICATE.fingerprint,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )


async def stage(centre: WorkflowCentre, cluster: UUID, key: str) -> StagedChange:
    change = staged(cluster, "db", key)
    await centre.ports.staging.stage([change])
    return change


def remove_content(repository: Path, path: str) -> None:
    """Loses the object that holds a file's content at the head of a bare repository."""
    object_file(repository, f"main:{path}").unlink()


async def postpone(centre: WorkflowCentre, cluster: UUID, step: StepName, *, by: timedelta) -> None:
    """Stores that a step waits for a moment so far ahead, as a workflow leaves it whose clock was wrong."""
    projection = (await centre.row(cluster)).projection
    assert projection is not None
    waits = {"state": StepState.WAITING, "next_at": datetime.now(UTC) + by, "error": "The storage is away."}
    steps = tuple(each.model_copy(update=waits) if each.name is step else each for each in projection.steps)
    later = projection.model_copy(update={"sequence": projection.sequence + 100, "steps": steps})
    await centre.steps.project(cluster, later, [])


async def states(centre: WorkflowCentre, changes: Sequence[StagedChange]) -> Counter[StagedState]:
    return Counter([row.state for change in changes for row in await centre.ports.staging.request(change.request)])


async def kinds(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    return [event.kind for event in await centre.audit.timeline(cluster)]


async def tells(centre: WorkflowCentre, cluster: UUID, kind: str) -> bool:
    """Whether the timeline has an event of a kind."""
    return kind in await kinds(centre, cluster)


def at_phase(phase: Phase) -> Callable[[ClusterRow], bool]:
    return lambda row: row.projection is not None and row.projection.phase is phase


def at_step(step: StepName) -> Callable[[ClusterRow], bool]:
    return lambda row: any(
        record.name is step and record.state is StepState.RUNNING
        for record in (row.projection.steps if row.projection else ())
    )


def waits_to_try(step: StepName) -> Callable[[ClusterRow], bool]:
    return lambda row: any(
        record.name is step and record.state is StepState.WAITING
        for record in (row.projection.steps if row.projection else ())
    )


async def has_commits(centre: WorkflowCentre, cluster: UUID, number: int) -> bool:
    return len(await asyncio.to_thread(centre.git.log, cluster, limit=100)) == number


async def is_told(centre: WorkflowCentre, cluster: UUID) -> bool:
    """Whether the workflow rests and the database holds what it would say."""
    now = (await centre.handle(cluster).describe()).raw_description
    if now.pending_activities or now.HasField("pending_workflow_task"):
        return False
    try:
        answer = await centre.fleet.readiness(cluster)
    except FleetUnavailable:
        return False
    return answer.waiting_for != "the first reading" and answer == (await centre.row(cluster)).projection


class StatusAway:
    """Clusters whose setup status cannot be written until that is mended."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def publish_setup_status(self, fence: Any, body: Any) -> None:
        raise Waiting("The status cannot be written.", code="store_away", retry_after=30)
