"""What everybody who holds a fleet may rely on."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from centre import eventually
from fleet_stage import FleetStage
from sealing_keys import certificate_pem, private_key

from edgewright.domain.cluster import StepName
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Conflict, NotFound
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, parse_certificate, seal


async def ready(stage: FleetStage, cluster: UUID) -> bool:
    row = await stage.directory.get(cluster)
    return bool(row and row.projection and row.projection.ready)


async def commissioned(stage: FleetStage, name: str) -> UUID:
    cluster = await stage.written(name)
    await stage.fleet.nudge(cluster)
    await eventually(lambda: ready(stage, cluster))
    return cluster


async def test_a_nudge_starts_what_does_not_run_yet(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "started")
    assert (await stage.fleet.readiness(cluster)).ready


async def test_a_nudge_may_be_repeated(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "repeated")
    await stage.fleet.nudge(cluster)
    await stage.fleet.nudge(cluster, bulk=True)
    assert (await stage.fleet.readiness(cluster)).ready


async def test_running_clusters_are_listed(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "listed")

    async def listed() -> bool:
        return cluster in await stage.fleet.running()

    await eventually(listed)


async def test_readiness_of_what_never_ran_is_not_found(stage: FleetStage) -> None:
    with pytest.raises(NotFound) as refused:
        await stage.fleet.readiness(uuid4())
    assert refused.value.code == "workflow_unknown"


async def test_staged_secrets_are_dealt_with_when_the_call_returns(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "secret")
    now = datetime.now(UTC)
    certificate = parse_certificate(certificate_pem(private_key()), now=now)
    ciphertext = seal(Plaintext(b"v"), certificate, scope=Scope.STRICT, secret=SecretReference("default", "db"))
    change = StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=1,
        place=SecretKey("default", "db", "password"),
        ciphertext=ciphertext,
        fingerprint=certificate.fingerprint,
        sealed_at=now,
        actor="token:test",
    )
    await stage.staging.stage([change])
    await stage.fleet.change_secrets(cluster, [change.request])
    assert [row.state for row in await stage.staging.request(change.request)] == [StagedState.COMMITTED]


async def test_a_pause_is_recorded_when_the_call_returns(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "paused")
    await stage.fleet.pause(cluster, reason="shift change", actor="token:ann")
    row = await stage.directory.get(cluster)
    assert row and row.paused and row.paused_reason == "shift change"
    await stage.fleet.resume(cluster, actor="token:ann")
    row = await stage.directory.get(cluster)
    assert row and not row.paused


async def test_a_pause_that_comes_late_undoes_no_later_resume(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "overtaken")
    before = await stage.directory.get(cluster)
    assert before
    await stage.fleet.pause(cluster, reason="shift change", actor="token:ann", seen=before.change)
    await stage.fleet.resume(cluster, actor="token:ann", seen=before.change + 1)
    await stage.fleet.pause(cluster, reason="shift change", actor="token:ann", seen=before.change)
    row = await stage.directory.get(cluster)
    assert row and not row.paused


async def test_a_step_that_does_not_wait_cannot_be_retried(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "done")
    with pytest.raises(Conflict) as refused:
        await stage.fleet.retry_step(cluster, StepName.CREATE_REPOSITORY, actor="token:test")
    assert refused.value.code == "step_not_waiting"


async def test_a_step_of_commissioning_cannot_be_skipped(stage: FleetStage) -> None:
    cluster = await commissioned(stage, "unskippable")
    with pytest.raises(Conflict) as refused:
        await stage.fleet.skip_step(cluster, StepName.CREATE_REPOSITORY, reason="why not", actor="token:test")
    assert refused.value.code == "step_not_skippable"


async def test_a_fleet_that_answers_is_healthy(stage: FleetStage) -> None:
    assert await stage.fleet.healthy()
