"""``GitServer`` in memory: for tests of what stands above it. It keeps the port's contract, not Git's bytes."""

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from edgewright.adapters.git.commits import author_name, message_text
from edgewright.adapters.git.failures import archived_meanwhile, unknown_commit, unknown_repository
from edgewright.adapters.git.refs import head_moved, overtaken
from edgewright.adapters.git.trees import not_both
from edgewright.domain.repository_paths import check_path
from edgewright.errors import Invalid
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary, WriterFence

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class _Commit:
    files: Files
    parent: CommitId | None
    summary: CommitSummary


@dataclass
class _Repository:
    head: CommitId | None = None
    fence_number: int = 0
    fence_change: str = ""

    def raise_fence(self, change: str) -> None:
        self.fence_number, self.fence_change = self.fence_number + 1, change

    commits: dict[CommitId, _Commit] = field(default_factory=dict)


class MemoryGitServer:
    """The ``GitServer`` port without a disk.

    Args:
        clock: seconds since the epoch; the time of commits.

    Attributes:
        archived: how often each repository was taken out of service.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._sole_maker = Lock()
        self._repositories: dict[UUID, _Repository] = {}
        self.archived: dict[UUID, int] = {}
        self._archivals: dict[UUID, int] = {}

    def archivals(self, repository: UUID) -> int:
        """See the port."""
        return self._archivals.get(repository, 0)

    def create_repository(self, repository: UUID, *, archivals: int | None = None) -> None:
        """See the port."""
        with self._lock:
            if archivals is not None and archivals != self.archivals(repository):
                raise archived_meanwhile(repository)
            self._repositories.setdefault(repository, _Repository())

    @contextmanager
    def sole_maker(self) -> Iterator[None]:
        """See the port."""
        with self._sole_maker:
            yield

    def exists(self, repository: UUID) -> bool:
        """See the port."""
        return repository in self._repositories

    def head(self, repository: UUID) -> CommitId | None:
        """See the port."""
        return self._get(repository).head

    def fence_number(self, repository: UUID) -> int:
        """See the port."""
        return self._get(repository).fence_number

    def raise_fence(self, repository: UUID, change: str, *, once: bool = False) -> None:
        """See the port."""
        with self._lock:
            stored = self._get(repository)
            if not (once and stored.fence_change == change):
                stored.raise_fence(change)

    def commit(
        self,
        repository: UUID,
        changes: Mapping[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        """See the port."""
        for path in changes:
            check_path(path)
        with self._lock:
            stored = self._get(repository)
            if stored.head != expected_head:
                raise head_moved(expected_head, stored.head)
            if fence is not None and fence.number != stored.fence_number:
                raise overtaken(fence)
            before = stored.commits[stored.head].files if stored.head else {}
            files = _amended(before, changes)
            if stored.head is None and not files:
                raise Invalid("The first commit needs at least one file.", code="commit_empty")
            if stored.head is not None and files == before:
                if fence is not None:
                    stored.raise_fence(fence.change)
                return stored.head
            at, text = int(self._clock()), message_text(message)
            author = author_name(message.actor)
            name = _commit_id(files, stored.head, f"{author}\0{text}\0{at}")
            stored.commits[name] = _Commit(files, stored.head, CommitSummary(name, text, author, at))
            stored.head = name
            return name

    def read(self, repository: UUID, path: str, *, at: CommitId) -> bytes | None:
        """See the port."""
        return self._files(repository, at).get(path)

    def list(self, repository: UUID, prefix: str, *, at: CommitId) -> Sequence[str]:
        """See the port."""
        folder = prefix.strip("/")
        start = folder + "/" if folder else ""
        return sorted(path for path in self._files(repository, at) if path.startswith(start))

    def folder_id(self, repository: UUID, folder: str, *, at: CommitId) -> str | None:
        """See the port."""
        files, start = self._files(repository, at), f"{folder.strip('/')}/".lstrip("/")
        inside = {path.removeprefix(start): content for path, content in files.items() if path.startswith(start)}
        return _commit_id(inside, None, "") if inside else None

    def is_ancestor(self, repository: UUID, ancestor: CommitId, descendant: CommitId) -> bool:
        """See the port."""
        commits = self._get(repository).commits
        name: CommitId | None = descendant
        while name is not None and name in commits:
            if name == ancestor:
                return True
            name = commits[name].parent
        return False

    def log(
        self,
        repository: UUID,
        *,
        limit: int,
        back_to: Collection[CommitId] = (),
        only: Callable[[CommitSummary], bool] | None = None,
        until: Callable[[CommitSummary], bool] | None = None,
    ) -> Sequence[CommitSummary]:
        """See the port."""
        stored = self._get(repository)
        found: list[CommitSummary] = []
        name, awaited = stored.head, set(back_to)
        while name is not None and len(found) < limit:
            found.append(stored.commits[name].summary)
            awaited.discard(name)
            if (back_to and not awaited) or (until and until(found[-1])):
                break
            name = stored.commits[name].parent
        return [commit for commit in found if only is None or only(commit)]

    def archive(self, repository: UUID) -> None:
        """See the port."""
        with self._lock:
            self._archivals[repository] = self.archivals(repository) + 1
            if self._repositories.pop(repository, None) is not None:
                self.archived[repository] = self.archived.get(repository, 0) + 1

    def upkeep(self, repository: UUID) -> None:
        """See the port."""
        self._get(repository)

    def _get(self, repository: UUID) -> _Repository:
        try:
            return self._repositories[repository]
        except KeyError:
            raise unknown_repository(repository) from None

    def _files(self, repository: UUID, at: CommitId) -> Files:
        commits = self._get(repository).commits
        if at not in commits:
            raise unknown_commit(at)
        return commits[at].files


def _amended(before: Files, changes: Mapping[str, bytes | None]) -> Files:
    files = {path: content for path, content in before.items() if path not in changes}
    files |= {path: content for path, content in changes.items() if content is not None}
    folders = {"/".join(parts[:depth]) for parts in map(_segments, files) for depth in range(1, len(parts))}
    both = sorted(folders & files.keys())
    if both:
        raise not_both(both[0])
    return files


def _segments(path: str) -> list[str]:
    return path.split("/")


def _commit_id(files: Files, parent: CommitId | None, text: str) -> CommitId:
    digest = hashlib.sha1(f"{parent}\0{text}\0".encode(), usedforsecurity=False)
    for path, content in sorted(files.items()):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
