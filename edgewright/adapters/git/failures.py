"""What goes wrong below, said to the caller in the words of ``edgewright.errors``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from edgewright.adapters.git.memory_limit import MIB
from edgewright.errors import NotFound, Stalled, Waiting


def unavailable(reason: str) -> Waiting:
    """The storage cannot be used now; ``reason`` completes the sentence "Git storage cannot be used: "."""
    return Waiting(
        f"Git storage cannot be used: {reason}.",
        code="git_unavailable",
        retry_after=5.0,
        hint="Check the disk that holds the repositories: free space, permissions, mount.",
    )


MEMORY_LIMIT = "git_memory_limit"


def memory_spent(what: str, limit: int) -> Waiting:
    """A command of git needs more memory than the centre gives to it."""
    return Waiting(
        f"{what} needs more memory than the centre gives to it ({limit // MIB} MiB).",
        code=MEMORY_LIMIT,
        retry_after=60.0,
        hint="Look for large files in the repository's by-hand/, in its history too, and remove them.",
    )


def busy(reason: str) -> Waiting:
    """Another writer holds the repository."""
    return Waiting(
        f"The repository is busy: {reason}.",
        code="repository_busy",
        hint="It is tried again; a lock that a dead process left behind is removed after a minute.",
    )


def archived_meanwhile(repository: UUID) -> Waiting:
    """An attempt to make a repository that was archived since it began."""
    return Waiting(
        f"The repository {repository} was archived since this attempt to make it began.",
        code="repository_archived",
        hint="It is made again only if its cluster still wants it.",
    )


def damaged(what: str) -> Stalled:
    """Bytes on disk are not what Git wrote; only a restore helps."""
    return Stalled(
        f"The repository is damaged: {what}.",
        code="repository_damaged",
        hint="Run `git fsck` in it and restore it from a backup.",
    )


def headless(name: str) -> Waiting:
    """The folder of a repository is there, but Git takes it for none; only its file ``HEAD`` tells that it is one."""
    return Waiting(
        f"The repository {name} has lost its file HEAD, so Git does not recognise it.",
        code="repository_headless",
        retry_after=5.0,
        hint="Write the line `ref: refs/heads/main` into HEAD, or restore the repository from a backup.",
    )


def unknown_repository(repository: UUID) -> NotFound:
    """There is no repository with this UUID."""
    return NotFound(
        f"There is no repository {repository}.",
        code="repository_unknown",
        hint="If it was there, restore it from a backup; or recreate its cluster and enter the secrets again.",
    )


def unknown_commit(commit: str) -> NotFound:
    """The repository has no commit with this ID."""
    return NotFound(f"The repository has no commit {commit[:40]!r}.", code="commit_unknown")


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turns every ``OSError`` inside (disk full, permission, I/O) into ``Waiting`` (``git_unavailable``)."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "a write was cut short"
        raise unavailable(reason[:1].lower() + reason[1:]) from error
