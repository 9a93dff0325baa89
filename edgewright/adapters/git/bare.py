"""``GitServer`` on bare repositories: objects are written straight into them, without clone or work tree."""

import heapq
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from uuid import UUID

from edgewright.adapters.git.commands import run_git
from edgewright.adapters.git.commits import Commit, decode_commit, encode_commit, is_commit_id
from edgewright.adapters.git.failures import (
    archived_meanwhile,
    damaged,
    storage_errors,
    unknown_commit,
    unknown_repository,
)
from edgewright.adapters.git.layout import (
    SOLE_MAKER,
    archivals_held,
    archive_repository,
    drafted,
    is_there,
    is_whole,
    put_into_service,
    read_archivals,
    repository_folder,
)
from edgewright.adapters.git.objects import ObjectStore
from edgewright.adapters.git.refs import (
    head_moved,
    locked,
    move_head,
    raise_fence,
    read_fence,
    read_head,
    sole_writer,
    write_fence,
)
from edgewright.adapters.git.trees import amend, change_tree, find_blob, find_folder, walk_files
from edgewright.adapters.git.upkeep import remove_stale_locks, repack_if_worth_it
from edgewright.errors import Invalid, Stalled
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary, WriterFence

_ANCESTRY_TIMEOUT = 30.0
_MAKERS_PATIENCE = 20.0
"""Seconds that one maker waits for others; each waits for the database meanwhile."""


class BareGitServer:
    """The ``GitServer`` port on a folder of bare repositories.

    Args:
        root: where they live; made when the first one is. May be shared by several processes.
        clock: seconds since the epoch; the time of commits.
        patience: seconds that a commit waits for other writers before it is ``repository_busy``.
        stale_after: age in seconds from which a lock file has no living owner.
        loose_limit: number of loose objects above which ``upkeep`` repacks.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Callable[[], float] = time.time,
        patience: float = 2.0,
        stale_after: float = 60.0,
        loose_limit: int = 1000,
    ) -> None:
        self._root = root.absolute()
        self._clock = clock
        self._patience = patience
        self._stale_after = stale_after
        self._loose_limit = loose_limit
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="git-fsync")

    @property
    def root(self) -> Path:
        """The folder of all repositories."""
        return self._root

    def folder(self, repository: UUID) -> Path:
        """The bare repository's folder.

        Raises:
            NotFound: code ``repository_unknown``.
            Waiting: code ``repository_headless``.
        """
        folder = repository_folder(self._root, repository)
        with storage_errors():
            if not is_there(folder):
                raise unknown_repository(repository)
        return folder

    def archivals(self, repository: UUID) -> int:
        """See the port."""
        with storage_errors():
            return read_archivals(self._root, repository)

    def create_repository(self, repository: UUID, *, archivals: int | None = None) -> None:
        """See the port.

        Raises:
            Waiting: also code ``repository_busy``: it is being archived.
        """
        with storage_errors():
            if is_whole(repository_folder(self._root, repository)):
                return
            with drafted(self._root, repository, self._pool, stale_after=self._stale_after) as draft:
                if archivals is None:
                    put_into_service(self._root, repository, draft)
                    return
                with archivals_held(self._root, repository, deadline=self._deadline()) as number:
                    if number != archivals:
                        raise archived_meanwhile(repository)
                    put_into_service(self._root, repository, draft)

    @contextmanager
    def sole_maker(self) -> Iterator[None]:
        """See the port."""
        with ExitStack() as held:
            with storage_errors():  # not what is done meanwhile
                self._root.mkdir(parents=True, exist_ok=True)
                deadline = time.monotonic() + _MAKERS_PATIENCE
                held.enter_context(
                    locked(self._root / SOLE_MAKER, deadline=deadline, reason="others make or archive repositories")
                )
            yield

    def exists(self, repository: UUID) -> bool:
        """See the port."""
        with storage_errors():
            return is_there(repository_folder(self._root, repository))

    def head(self, repository: UUID) -> CommitId | None:
        """See the port."""
        with self._opened(repository) as folder:
            return read_head(folder)

    def fence_number(self, repository: UUID) -> int:
        """See the port."""
        with self._opened(repository) as folder:
            return read_fence(folder)

    def raise_fence(self, repository: UUID, change: str, *, once: bool = False) -> None:
        """See the port.

        Raises:
            Waiting: also code ``repository_busy``: other writers held ``main`` for too long.
        """
        with self._opened(repository) as folder:
            raise_fence(folder, change, once=once, patience=self._patience)

    def commit(
        self,
        repository: UUID,
        changes: Mapping[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        """See the port.

        Raises:
            Invalid: also code ``commit_empty``: a first commit without a file.
            Waiting: also code ``repository_busy``: other writers held ``main`` for too long.
        """
        change, first = change_tree(changes), expected_head is None
        with self._opened(repository) as folder, self._objects(folder, as_pack=first) as objects:
            head = read_head(folder)
            if head != expected_head:
                raise head_moved(expected_head, head)
            before = _ancestor(objects, head).tree if head else None
            tree = amend(objects, before, change)
            if tree is None:
                if head is None:
                    raise Invalid("The first commit needs at least one file.", code="commit_empty")
                tree = objects.write("tree", b"")
            if head and tree == before:
                if fence is not None:
                    write_fence(folder, fence, expected=head, patience=self._patience)
                return head
            at = int(self._clock())
            commit = objects.write("commit", encode_commit(tree, head, message, at=at))
            objects.flush()
            move_head(
                folder,
                commit,
                expected=expected_head,
                fence=fence,
                patience=self._patience,
                stale_after=self._stale_after,
            )
            return commit

    def read(self, repository: UUID, path: str, *, at: CommitId) -> bytes | None:
        """See the port. An unknown commit is ``NotFound`` (code ``commit_unknown``)."""
        with self._opened(repository) as folder, self._objects(folder) as objects:
            return find_blob(objects, _commit(objects, at, of=folder).tree, path)

    def list(self, repository: UUID, prefix: str, *, at: CommitId) -> Sequence[str]:
        """See the port. An unknown commit is ``NotFound`` (code ``commit_unknown``)."""
        with self._opened(repository) as folder, self._objects(folder) as objects:
            return sorted(walk_files(objects, _commit(objects, at, of=folder).tree, prefix))

    def folder_id(self, repository: UUID, folder: str, *, at: CommitId) -> str | None:
        """See the port. An unknown commit is ``NotFound`` (code ``commit_unknown``)."""
        with self._opened(repository) as place, self._objects(place) as objects:
            return find_folder(objects, _commit(objects, at, of=place).tree, folder)

    def is_ancestor(self, repository: UUID, ancestor: CommitId, descendant: CommitId) -> bool:
        """See the port."""
        with self._opened(repository) as folder:
            with self._objects(folder) as objects:
                if not (_is_commit(objects, ancestor) and _is_commit(objects, descendant)):
                    return False
            if ancestor == descendant:
                return True
            arguments = ["merge-base", "--is-ancestor", ancestor, descendant]
            return run_git(folder, arguments, timeout=_ANCESTRY_TIMEOUT, accept=(0, 1)).returncode == 0

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
        with self._opened(repository) as folder, self._objects(folder) as objects:
            newest = islice(_newest_first(objects, read_head(folder)), limit)
            summaries = (commit.summary(name) for name, commit in _back_to(newest, back_to))
            looked_at = _until(until, summaries) if until else summaries
            return list(filter(only, looked_at) if only else looked_at)

    def archive(self, repository: UUID) -> None:
        """See the port."""
        with storage_errors():
            folder = repository_folder(self._root, repository)
            with archivals_held(self._root, repository, deadline=self._deadline(), one_more=True):
                if is_whole(folder):
                    with sole_writer(folder, deadline=self._deadline()):
                        archive_repository(self._root, repository)

    def upkeep(self, repository: UUID) -> None:
        """See the port."""
        with self._opened(repository) as folder:
            remove_stale_locks(folder, stale_after=self._stale_after, patience=self._patience)
            repack_if_worth_it(folder, loose_limit=self._loose_limit)

    def _deadline(self) -> float:
        return time.monotonic() + self._patience

    def _objects(self, folder: Path, *, as_pack: bool = False) -> ObjectStore:
        return ObjectStore(folder, self._pool, as_pack=as_pack)

    @contextmanager
    def _opened(self, repository: UUID) -> Iterator[Path]:
        """The repository's folder; a folder that goes away meanwhile (archived) is unknown, not unavailable."""
        folder = self.folder(repository)
        with storage_errors():
            try:
                yield folder
            except (FileNotFoundError, BrokenPipeError, Stalled):  # the last two: git, which reads for us, misses it
                if is_whole(folder):
                    raise
                raise unknown_repository(repository) from None


def _commit(objects: ObjectStore, commit: CommitId, *, of: Path) -> Commit:
    """A commit that somebody names. Only that of ``main`` is known to have been there."""
    content = objects.read(commit, "commit") if is_commit_id(commit) else None
    if content is None:
        raise _missing(commit) if commit == read_head(of) else unknown_commit(commit)
    return decode_commit(content)


def _ancestor(objects: ObjectStore, commit: CommitId) -> Commit:
    """A commit that ``main`` or one of its ancestors names."""
    content = objects.read(commit, "commit")
    if content is None:
        raise _missing(commit)
    return decode_commit(content)


def _missing(commit: CommitId) -> Stalled:
    return damaged(f"commit {commit} of main is missing")


def _is_commit(objects: ObjectStore, commit: CommitId) -> bool:
    return is_commit_id(commit) and objects.read(commit, "commit") is not None


def _back_to(
    newest: Iterator[tuple[CommitId, Commit]], heads: Collection[CommitId]
) -> Iterator[tuple[CommitId, Commit]]:
    """Without what is older than all heads, as far as one commit follows the other.

    Behind a merge the order is that of clocks, which may be anybody's: then nothing is left out.
    """
    awaited, is_straight = set(heads), bool(heads)
    for name, commit in newest:
        yield name, commit
        awaited.discard(name)
        is_straight = is_straight and len(commit.parents) <= 1
        if is_straight and not awaited:
            return


def _until(is_last: Callable[[CommitSummary], bool], summaries: Iterator[CommitSummary]) -> Iterator[CommitSummary]:
    for summary in summaries:
        yield summary
        if is_last(summary):
            return


def _newest_first(objects: ObjectStore, head: CommitId | None) -> Iterator[tuple[CommitId, Commit]]:
    """All ancestors of the head; by time where histories were merged, children before parents otherwise."""
    pending: list[tuple[int, int, CommitId, Commit]] = []
    seen: set[CommitId] = set()

    def visit(names: Sequence[CommitId]) -> None:
        for name in names:
            if name not in seen:
                seen.add(name)
                commit = _ancestor(objects, name)
                heapq.heappush(pending, (-commit.at, len(seen), name, commit))

    visit([head] if head else [])
    while pending:
        _, _, name, commit = heapq.heappop(pending)
        yield name, commit
        visit(commit.parents)
