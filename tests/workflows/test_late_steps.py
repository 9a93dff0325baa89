"""Steps of a workflow that has forgotten that they are done: Temporal was restored from an older copy."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, working
from cluster_states import StatusAway
from sealing_keys import certificate_pem, private_key
from temporalio.testing import ActivityEnvironment

from activities.repository import RepositoryActivities, SecretActivities
from edgewright.application.rendering import RenderInputs
from edgewright.domain.cluster import CertificateFacts, Fence, StepName
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.messages.steps import CommitSecrets, StepInput
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import Plaintext, Scope, SealingCertificate, parse_certificate, read_values, seal

DB = SecretReference("default", "db")


def certificate_until(end: datetime) -> SealingCertificate:
    return parse_certificate(certificate_pem(private_key(), not_after=end), now=datetime.now(UTC))


OLD, NEW = certificate_until(datetime(2035, 1, 1, tzinfo=UTC)), certificate_until(datetime(2036, 1, 1, tzinfo=UTC))


async def enter(centre: WorkflowCentre, cluster: UUID, certificate: SealingCertificate, key: str) -> None:
    """What a PUT of a secret comes to, and the report of the edge before it."""
    now = datetime.now(UTC)
    facts = CertificateFacts(
        fingerprint=certificate.fingerprint,
        not_before=certificate.not_before,
        not_after=certificate.not_after,
        taken_at=now,
    )
    await centre.ports.edge_reports.write_status(
        cluster,
        {"kubeseal_cert": certificate.pem},
        certificate=(facts, certificate.pem),
        certificate_problem=None,
        generation=None,
        actor="token:test",
    )
    ciphertext = seal(Plaintext(b"v"), certificate, scope=Scope.STRICT, secret=DB)
    await change(centre, cluster, key, ciphertext, certificate.fingerprint)


async def delete(centre: WorkflowCentre, cluster: UUID, key: str) -> None:
    await change(centre, cluster, key, None, None)


async def change(
    centre: WorkflowCentre, cluster: UUID, key: str, ciphertext: str | None, fingerprint: str | None
) -> None:
    staged = StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=(await centre.row(cluster)).generation,
        place=SecretKey("default", "db", key),
        ciphertext=ciphertext,
        fingerprint=fingerprint,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )
    await centre.ports.staging.stage([staged])
    secrets = SecretActivities(centre.ports.directory, centre.ports.staging, centre.ports.git)
    await ActivityEnvironment().run(secrets.commit_secrets, CommitSecrets(cluster=cluster))


async def withdraw(centre: WorkflowCentre, cluster: UUID, *, steps: Any = None) -> None:
    """``steps``: a port in the place of the centre's."""
    row = await centre.row(cluster)
    inputs = RenderInputs(centre.ports.config, "http://127.0.0.1:8484")
    activities = RepositoryActivities(centre.directory, steps or centre.steps, centre.ports.git, inputs)
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    step = StepInput(fence=fence, step=StepName.WITHDRAW_SECRETS)
    await ActivityEnvironment().run(activities.withdraw_secrets, step)


async def keys(centre: WorkflowCentre, cluster: UUID) -> set[str]:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    document = await asyncio.to_thread(centre.git.read, cluster, SecretReference("default", "db").path, at=head)
    return set(read_values(document)) if document else set()


@pytest.fixture
async def cluster(idle_centre: WorkflowCentre) -> UUID:
    async with working(idle_centre):
        created: UUID = await idle_centre.create("moved")
        return created


async def test_secrets_of_the_new_hardware_survive_a_second_withdrawal(
    idle_centre: WorkflowCentre, cluster: UUID
) -> None:
    await enter(idle_centre, cluster, OLD, "old")
    await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await withdraw(idle_centre, cluster)
    assert await keys(idle_centre, cluster) == set()
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("old")]
    await enter(idle_centre, cluster, NEW, "new")
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("old")]
    await withdraw(idle_centre, cluster)
    assert await keys(idle_centre, cluster) == {"new"}
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("old")]
    await enter(idle_centre, cluster, NEW, "old")
    assert list((await idle_centre.row(cluster)).must_reenter) == []


async def test_a_secret_entered_before_the_withdrawal_stays_and_what_is_beside_it_goes(
    idle_centre: WorkflowCentre, cluster: UUID
) -> None:
    await enter(idle_centre, cluster, OLD, "old")
    await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await enter(idle_centre, cluster, NEW, "new")
    await withdraw(idle_centre, cluster)
    assert await keys(idle_centre, cluster) == {"new"}
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("old")]


class Overtaken:
    """Clusters of which somebody changes a secret just before what was taken away is listed."""

    def __init__(self, centre: WorkflowCentre, change: Callable[[], Awaitable[None]]) -> None:
        self._centre = centre
        self._change: Callable[[], Awaitable[None]] | None = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._centre.steps, name)

    async def record_reentry(self, fence: Fence, **given: Any) -> bool:
        change = self._change
        if given.get("taken") and change is not None:
            self._change = None
            await change()
        done: bool = await self._centre.steps.record_reentry(fence, **given)
        return done


async def test_a_secret_entered_during_the_withdrawal_need_not_be_entered_again(
    idle_centre: WorkflowCentre, cluster: UUID
) -> None:
    for key in ("first", "second"):
        await enter(idle_centre, cluster, OLD, key)
    await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await enter(idle_centre, cluster, NEW, "third")
    steps = Overtaken(idle_centre, partial(enter, idle_centre, cluster, NEW, "first"))
    await withdraw(idle_centre, cluster, steps=steps)
    assert await keys(idle_centre, cluster) == {"first", "third"}
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("second")]


async def test_a_secret_deleted_during_the_withdrawal_need_not_be_entered_again(
    idle_centre: WorkflowCentre, cluster: UUID
) -> None:
    for key in ("first", "second"):
        await enter(idle_centre, cluster, OLD, key)
    await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await withdraw(idle_centre, cluster, steps=Overtaken(idle_centre, partial(delete, idle_centre, cluster, "first")))
    assert await keys(idle_centre, cluster) == set()
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("second")]


async def test_secrets_of_hardware_that_was_given_up_before_it_was_commissioned_go_too(
    idle_centre: WorkflowCentre,
) -> None:
    """Or whose commissioning nobody knows of any more: no projection tells of it."""
    cluster = uuid4()
    async with working(idle_centre, steps=StatusAway(idle_centre.steps)):
        await idle_centre.write(cluster, "moved-early")
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.waiting_for))
        await enter(idle_centre, cluster, OLD, "old")
        await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
        await enter(idle_centre, cluster, NEW, "new")
    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=60)
    assert await keys(idle_centre, cluster) == {"new"}
    assert list((await idle_centre.row(cluster)).must_reenter) == [DB.at("old")]
