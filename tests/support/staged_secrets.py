"""Staged secrets of a test's cluster, and a Git that stops before it commits."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from centre import WorkflowCentre, working
from sealing_keys import certificate_pem, private_key

from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Waiting
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, WriterFence
from edgewright.ports.secret_staging import StagedChange
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


class FrozenGitServer:
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


class DiesBeforeItRecords:
    """Staging of a process that dies between a commit and its record."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def committed(self, requests: Sequence[UUID], commit: str, *, unless_refused: bool = False) -> None:
        raise Waiting("The process is dead.", code="dead")


async def _await(what: Callable[[], Awaitable[object]]) -> None:
    await what()


async def present_value(centre: WorkflowCentre, cluster: UUID) -> str | None:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    document = await asyncio.to_thread(centre.git.read, cluster, SecretReference("default", "db").path, at=head)
    return read_values(document)["password"].ciphertext if document else None


async def committed_cluster(centre: WorkflowCentre, name: str) -> UUID:
    async with working(centre):
        return await centre.create(name)
