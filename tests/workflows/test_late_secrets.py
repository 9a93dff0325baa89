"""An attempt at committing secrets that wakes late: its worker was frozen, another one has done its work since."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import Centre, working
from sealing_keys import certificate_pem, private_key
from temporalio.testing import ActivityEnvironment

from activities.secrets import SecretActivities
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Waiting
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, WriterFence
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, parse_certificate, read_values, seal

CERTIFICATE = parse_certificate(certificate_pem(private_key()), now=datetime.now(UTC))


def staged(cluster: UUID, value: bytes | None) -> StagedChange:
    sealed = None
    if value is not None:
        sealed = seal(Plaintext(value), CERTIFICATE, scope=Scope.STRICT, secret=SecretReference("default", "db"))
    return StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=1,
        place=SecretKey("default", "db", "password"),
        ciphertext=sealed,
        fingerprint=CERTIFICATE.fingerprint if sealed else None,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )


class Frozen:
    """Git before whose commit something happens, once: the thread that commits was frozen so long."""

    def __init__(self, real: GitServer, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._real = real
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(
        self,
        repository: UUID,
        changes: Mapping[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            asyncio.run_coroutine_threadsafe(_await(meanwhile), self._loop).result(30)
        return self._real.commit(repository, changes, message, expected_head=expected_head, fence=fence)


async def _await(what: Callable[[], Awaitable[object]]) -> None:
    await what()


async def commit(centre: Centre, cluster: UUID, git: Any = None) -> CommitSecretsResult:
    activities = SecretActivities(centre.ports.directory, centre.ports.staging, git or centre.ports.git)
    return await ActivityEnvironment().run(activities.commit_secrets, CommitSecrets(cluster=cluster))


async def present_value(centre: Centre, cluster: UUID) -> str | None:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    document = await asyncio.to_thread(centre.git.read, cluster, SecretReference("default", "db").path, at=head)
    return read_values(document)["password"].ciphertext if document else None


async def committed_cluster(centre: Centre, name: str) -> UUID:
    async with working(centre):
        return await centre.create(name)


@pytest.mark.parametrize("newer", [b"new", None])
async def test_an_older_value_never_wins_over_a_newer_one(idle_centre: Centre, newer: bytes | None) -> None:
    cluster = await committed_cluster(idle_centre, "overtaken")
    first, second = staged(cluster, b"old"), staged(cluster, newer)
    staging = idle_centre.ports.staging
    await staging.stage([first])

    async def another_worker() -> None:
        await commit(idle_centre, cluster)
        await staging.stage([second])
        await commit(idle_centre, cluster)

    await commit(idle_centre, cluster, Frozen(idle_centre.git, another_worker))
    assert await present_value(idle_centre, cluster) == second.ciphertext
    assert [row.state for row in await staging.request(second.request)] == [StagedState.COMMITTED]


async def test_a_value_whose_deletion_was_confirmed_meanwhile_stays_away(idle_centre: Centre) -> None:
    """To delete what is not there changes nothing, and the head stays where it was."""
    cluster = await committed_cluster(idle_centre, "deleted-meanwhile")
    written, deleted = staged(cluster, b"v"), staged(cluster, None)
    await idle_centre.ports.staging.stage([written])

    async def another_worker() -> None:
        await idle_centre.ports.staging.stage([deleted])
        await commit(idle_centre, cluster)

    await commit(idle_centre, cluster, Frozen(idle_centre.git, another_worker))
    assert await present_value(idle_centre, cluster) is None


async def test_nothing_is_committed_after_a_pause_has_been_recorded(idle_centre: Centre) -> None:
    cluster = await committed_cluster(idle_centre, "paused")
    await idle_centre.ports.staging.stage([staged(cluster, b"v")])
    await idle_centre.wishes.set_paused(cluster, paused=True, reason="storage", actor="token:test")
    with pytest.raises(Waiting) as refused:
        await commit(idle_centre, cluster)
    assert refused.value.code == "paused"
    assert await present_value(idle_centre, cluster) is None
