"""Measures how long each operation on the repositories takes, whoever implements them."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from uuid import UUID

from edgewright.adapters.git.failures import MEMORY_LIMIT
from edgewright.errors import Waiting
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary, GitServer, WriterFence

Observe = Callable[[str, float], None]
"""Takes the name of an operation and the seconds that it took, also of one that failed."""


class TimedGit:
    """Implements the port ``GitServer`` by another one.

    Args:
        git: the other one.
        observe: called from many threads.
        on_memory_limit: the same, with the name of an operation for which git got no more memory.
    """

    def __init__(self, git: GitServer, observe: Observe, on_memory_limit: Callable[[str], None]) -> None:
        self._git = git
        self._observe = observe
        self._on_memory_limit = on_memory_limit

    @contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except Waiting as error:
            if error.code == MEMORY_LIMIT:
                self._on_memory_limit(operation)
            raise
        finally:
            self._observe(operation, time.perf_counter() - began)

    def archivals(self, repository: UUID) -> int:
        with self._timed("archivals"):
            return self._git.archivals(repository)

    def create_repository(self, repository: UUID, *, archivals: int | None = None) -> None:
        with self._timed("create_repository"):
            self._git.create_repository(repository, archivals=archivals)

    @contextmanager
    def sole_maker(self) -> Iterator[None]:
        with ExitStack() as held:
            with self._timed("sole_maker"):
                held.enter_context(self._git.sole_maker())
            yield

    def exists(self, repository: UUID) -> bool:
        with self._timed("exists"):
            return self._git.exists(repository)

    def head(self, repository: UUID) -> CommitId | None:
        with self._timed("head"):
            return self._git.head(repository)

    def fence_number(self, repository: UUID) -> int:
        with self._timed("fence_number"):
            return self._git.fence_number(repository)

    def raise_fence(self, repository: UUID, change: str, *, once: bool = False) -> None:
        with self._timed("raise_fence"):
            self._git.raise_fence(repository, change, once=once)

    def commit(
        self,
        repository: UUID,
        changes: Mapping[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        with self._timed("commit"):
            return self._git.commit(repository, changes, message, expected_head=expected_head, fence=fence)

    def read(self, repository: UUID, path: str, *, at: CommitId) -> bytes | None:
        with self._timed("read"):
            return self._git.read(repository, path, at=at)

    def list(self, repository: UUID, prefix: str, *, at: CommitId) -> Sequence[str]:
        with self._timed("list"):
            return self._git.list(repository, prefix, at=at)

    def folder_id(self, repository: UUID, folder: str, *, at: CommitId) -> str | None:
        with self._timed("folder_id"):
            return self._git.folder_id(repository, folder, at=at)

    def is_ancestor(self, repository: UUID, ancestor: CommitId, descendant: CommitId) -> bool:
        with self._timed("is_ancestor"):
            return self._git.is_ancestor(repository, ancestor, descendant)

    def log(
        self,
        repository: UUID,
        *,
        limit: int,
        back_to: Collection[CommitId] = (),
        only: Callable[[CommitSummary], bool] | None = None,
        until: Callable[[CommitSummary], bool] | None = None,
    ) -> Sequence[CommitSummary]:
        with self._timed("log"):
            return self._git.log(repository, limit=limit, back_to=back_to, only=only, until=until)

    def archive(self, repository: UUID) -> None:
        with self._timed("archive"):
            self._git.archive(repository)

    def upkeep(self, repository: UUID) -> None:
        with self._timed("upkeep"):
            self._git.upkeep(repository)
