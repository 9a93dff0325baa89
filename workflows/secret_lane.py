"""Commits staged secrets of one cluster that no gateway has committed, one commit at a time, in parallel with steps.

A hanging call to Git only holds up the secrets of this cluster: deletion, pause and skip never wait for it.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from edgewright.domain.cluster import Desired, Wanted
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult, RaiseFence
from workflows import policies
from workflows.failures import failure_of

FENCED_PAUSE = "fence of a pause"
"""Patch. Earlier runs allow a commit that began before the pause."""
FENCED_DELETION = "fence of a deletion"
"""Patch. Earlier runs allow a commit that began before the deletion."""
COMMITTED_ELSEWHERE = "commits of gateways"
"""Patch. Earlier runs treat their own commit as the newest one, even after a later reading."""


class SecretLane:
    """Takes requests from updates; a request is settled once the database has its result."""

    def __init__(self, cluster: UUID) -> None:
        self._cluster = cluster
        self._waiting: set[UUID] = set()
        self._backlog = False
        self._callers = 0
        self.busy = False
        self.held = True  # until the first reading says that commits are not paused
        self._paused = False
        self._ending = False
        self._fence_due = False
        self._raises_fence = False
        self.problem = ""
        self.newest_commit: str | None = None
        self.progressed = False
        """Whether there is something to publish: commits, or a problem that came or went."""
        self._telling: asyncio.Task[None] | None = None
        self._hurried = False
        self._sent_away = False

    @property
    def full(self) -> bool:
        """Whether one more caller would take up a place that operators' verbs need."""
        return self._callers >= policies.SECRET_CALLERS

    @property
    def idle(self) -> bool:
        return not self.busy and not self._callers and not self._raises_fence

    def take_wanted(self, wanted: Wanted) -> None:
        """Stops commits while paused. A pause or a deletion also refuses earlier attempts, whose disk may stall."""
        ending = wanted.desired is Desired.DELETED and not wanted.closed
        pause_began = wanted.paused and not self._paused and workflow.patched(FENCED_PAUSE)
        end_began = ending and not self._ending and workflow.patched(FENCED_DELETION)
        self._fence_due = (wanted.paused or ending) and (self._fence_due or pause_began or end_began)
        self._paused = self.held = wanted.paused
        self._ending = ending
        if wanted.secrets_pending:
            self._backlog = True  # nobody may be waiting for it any more

    def hurry(self) -> None:
        """Tries now, and no longer waits between rounds, because the run ends."""
        self._hurried = True

    async def end(self, patience: timedelta) -> None:
        """Waits for a commit under way, then sends everybody who still waits to the next run."""
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self.idle, timeout=patience, timeout_summary="a commit under way")
        self._sent_away = True

    def take_newest_commit(self) -> str | None:
        """Returns the newest commit that the loop has not seen yet."""
        self.progressed = False
        commit, self.newest_commit = self.newest_commit, None
        return commit

    def committed_before_a_reading(self) -> str | None:
        """Returns the newest commit that the loop has not seen yet, before a reading that may bring a newer one."""
        if self.newest_commit is None or not workflow.patched(COMMITTED_ELSEWHERE):
            return None
        return self.take_newest_commit()

    async def commit(self, requests: tuple[UUID, ...]) -> bool:
        """Waits until the requests are settled. False: not in time; the database will have the result.

        Raises:
            ApplicationError: type ``draining``: the run ends; send the same request to the next one.
        """
        self._callers += 1
        mine = set(requests)
        self._waiting |= mine
        try:
            await workflow.wait_condition(
                lambda: self._sent_away or not (mine & self._waiting),
                timeout=policies.SECRET_WAIT,
                timeout_summary="patience of a caller with a secret",
            )
        except TimeoutError:
            return False
        finally:
            self._callers -= 1
        if mine & self._waiting:
            raise ApplicationError("The workflow continues as new; send it again.", type="draining")
        return True

    async def run(self) -> None:
        """Runs for ever, in parallel with the loop."""
        await asyncio.gather(self._commit_staged(), self._fence_off())

    async def _commit_staged(self) -> None:
        failures = 0
        while True:
            await workflow.wait_condition(lambda: (bool(self._waiting) or self._backlog) and not self.held)
            self.busy = True
            try:
                failures = await self._round(failures)
            finally:
                self.busy = False
            if failures:
                await self._pause(policies.backoff(failures))

    async def _fence_off(self) -> None:
        """Raises a fence when one is due. Not a round of its own, because the disk may hold up the present round."""
        failures = 0
        while True:
            await workflow.wait_condition(lambda: self._fence_due)
            self._raises_fence, self._fence_due = True, False
            try:
                failures = await self._raise_fence(failures)
            finally:
                self._raises_fence = False
            if failures:
                await workflow.sleep(policies.backoff(failures), summary="next attempt at the fence")
                self._fence_due = self._paused or self._ending

    async def _pause(self, time: timedelta) -> None:
        """Waits between two rounds; shorter if a caller waits, who gives up long before the longest pause ends."""
        at_least = min(time, policies.SECRET_PAUSE)
        try:
            await workflow.wait_condition(
                lambda: self._hurried, timeout=at_least, timeout_summary="next attempt at the secrets"
            )
        except TimeoutError:
            if time > at_least:
                with suppress(TimeoutError):
                    await workflow.wait_condition(
                        lambda: self._hurried or self._callers > 0,
                        timeout=time - at_least,
                        timeout_summary="next attempt at the secrets",
                    )
        self._hurried = False

    def _note_problem(self, sentence: str) -> None:
        self.progressed = self.progressed or sentence != self.problem
        self.problem = sentence

    async def _raise_fence(self, failures: int) -> int:
        try:
            await workflow.execute_activity(
                "raise_fence",
                RaiseFence(cluster=self._cluster),
                summary="refuses commits that were begun before",
                **policies.COMMIT_SECRETS,
            )
        except ActivityError as error:
            return self._failed(error, failures)
        self._note_problem("")
        return 0

    def _failed(self, error: ActivityError, failures: int) -> int:
        if is_cancelled_exception(error):  # the run is over: one more command would be refused, and wedge it
            raise asyncio.CancelledError from error
        self._note_problem(failure_of(error).sentence)
        return failures + 1

    async def _round(self, failures: int) -> int:
        batch, backlog = set(self._waiting), self._backlog
        self._backlog = False
        try:
            result = await workflow.execute_activity(
                "commit_secrets",
                CommitSecrets(cluster=self._cluster),
                result_type=CommitSecretsResult,
                summary=f"{len(batch) or 'left-over'} secret request(s)",
                **policies.COMMIT_SECRETS,
            )
        except ActivityError as error:
            self._backlog = backlog or bool(batch)
            return self._failed(error, failures)
        self._note_problem("")
        self._backlog = self._backlog or result.more
        if not result.more:
            self._waiting -= batch
        if result.commit:
            self.newest_commit = result.commit
            if self._telling is None:
                self._telling = asyncio.create_task(self._tell_soon())
        return 0

    async def _tell_soon(self) -> None:
        """Publishes commits that follow each other closely only once."""
        await workflow.sleep(policies.TELL_OF_COMMITS, summary="commits that follow closely")
        self._telling = None
        self.progressed = True
