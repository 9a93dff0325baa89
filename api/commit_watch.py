"""Sees in the database that a request is committed, before the workflow has come to say so.

A commit is recorded when it is on disk, and with that a 204 is true. The workflow's answer to its update follows some
ten milliseconds later, and stays what is waited for in every other case: a refusal, a commit that has failed, and on
PostgreSQL, where it cannot be told cheaply that something was written.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from uuid import UUID

from edgewright.errors import EdgewrightError
from edgewright.ports.git_server import CommitId
from edgewright.ports.secret_staging import SecretStaging

Outcome = asyncio.Future[CommitId | None]
"""Set once a request is dealt with: to its commit, or None if its rows have to tell what came of it."""

LOOK_SECONDS = 0.002
"""Between two looks at the stamp, which cost some microseconds, while anybody waits."""


class CommitWatch:
    """Looks on behalf of all who wait in this process.

    Args:
        stamp: changes with every write to the database; None: nobody is told early.
    """

    def __init__(self, staging: SecretStaging, stamp: Callable[[], int | None] | None) -> None:
        self._staging = staging
        self._stamp = stamp
        self._waiting: dict[UUID, Outcome] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, outcomes: Mapping[UUID, Outcome]) -> None:
        """Sets the outcome of each request once it is committed, unless somebody else has set it before."""
        if self._stamp is None:
            return
        self._waiting.update(outcomes)
        if self._task is None or self._task.done():
            # Read now: the commit may be recorded before the task has its first turn.
            self._task = asyncio.create_task(self._watch(self._stamp, self._stamp()))

    async def _watch(self, stamp: Callable[[], int | None], seen: int | None) -> None:
        while self._waiting:
            await asyncio.sleep(LOOK_SECONDS)
            self._waiting = {request: outcome for request, outcome in self._waiting.items() if not outcome.done()}
            now = stamp()
            if now == seen or now is None:
                continue
            seen = now
            with suppress(EdgewrightError):
                await self._tell()

    async def _tell(self) -> None:
        for request, commit in (await self._staging.commits(list(self._waiting))).items():
            outcome = self._waiting.pop(request, None)
            if outcome is not None and not outcome.done():
                outcome.set_result(commit)
