"""The loop of a cluster's workflow: the only place that changes anything.

It reads what is wanted, compares it with what is done, and runs the step that is due. Steps and secrets have separate
lanes that run side by side, so that neither holds up the other.
"""

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from edgewright.domain.cluster import Wanted
from edgewright.domain.conditions import next_review
from edgewright.domain.projection import Projection
from edgewright.messages.cluster import ClusterState, ManagedClusterInput, Readiness
from edgewright.messages.steps import Reading
from workflows import policies
from workflows.failures import failure_of
from workflows.plans import Plans
from workflows.projecting import nothing_yet, project, projected_again
from workflows.publication import Publication
from workflows.reader import FirstReading, Reader
from workflows.secret_lane import SecretLane
from workflows.step_lane import StepLane
from workflows.verbs import Verbs


class ClusterLoop:
    """The work of one run of a cluster's workflow; messages reach it through its parts."""

    def __init__(self, start: ManagedClusterInput) -> None:
        self._cluster = start.cluster
        self._together = start.together
        self._reader = Reader(start.cluster, seeded=start.state is not None)
        self._restore(start.state or ClusterState())
        self._first_reading = FirstReading(start.cluster, due=start.together and start.state is None)
        self._wanted: Wanted | None = None
        self._woken = True
        self._nudges = 0
        self.draining = False
        self._answered = 0
        """Number of the newest verb that was applied before the last reading."""
        self._over = False
        self._trouble = ""

    def _restore(self, state: ClusterState) -> None:
        published = state.projection
        self._runs = state.runs
        self._publication = Publication(self._cluster, published, state.events, state.attempted, untold=state.untold)
        self.steps = StepLane(
            self._publication,
            plan=published.plan if published else "",
            records=published.steps if published else (),
            residue=published.residue if published else (),
            newest_commit=published.desired_revision if published else None,
            together=self._together,
        )
        self._plans = Plans(self.steps, state.done, chained=self._together)
        self.secrets = SecretLane(self._cluster)
        self.verbs = Verbs(self._cluster, state.verbs, state.verbs_seen, state.verbs_applied, state.heard)

    # --- what messages ask ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Makes the loop look again, because what is wanted may have changed."""
        self._woken = True

    def wake_to_tell(self) -> None:
        """Looks again if a signal was refused, so that the timeline says so."""
        self._woken = self._woken or self.verbs.refused.waiting

    def nudge(self) -> None:
        """Makes the loop look again at once, even while it waits for the database."""
        self._woken = True
        self._nudges += 1

    async def applied(self, number: int) -> Projection:
        """Waits until a verb has been applied, and returns the resulting projection.

        Raises:
            ApplicationError: type ``not_applied_yet``; the verb stays in the queue.
        """
        try:
            await workflow.wait_condition(
                lambda: self._answered >= number,
                timeout=policies.VERB_WAIT,
                timeout_summary="patience of a caller",
            )
        except TimeoutError:
            raise ApplicationError(
                f"The request was taken, but is not applied yet. {self._trouble or 'The database is slow.'}",
                type="not_applied_yet",
            ) from None
        return self.status()

    def status(self) -> Projection:
        """Returns the present projection."""
        if self._wanted is not None:
            return self._project(self._wanted)
        return self._publication.projection or nothing_yet()

    def readiness(self) -> Readiness:
        """Whether the cluster is commissioned, and if not, what it waits for."""
        now = self.status()
        return Readiness(ready=now.ready, phase=now.phase.value, waiting_for=self._trouble or now.waiting_for)

    # --- the loop --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs until the cluster is deleted, or the run continues as new."""
        secrets = asyncio.create_task(self.secrets.run())
        failures = 0
        while not self._ready_to_continue_as_new():
            if (self._must_look() and not await self._look()) or not await self._drive():
                failures += 1
                self._woken = True
                await self._wait_for_the_database(failures)
                continue
            failures = 0
            if self._over:
                await self._let_nobody_in(secrets)
                return
            await self._rest()
        await self._let_nobody_in(secrets)
        self._continue_as_new()

    async def _wait_for_the_database(self, failures: int) -> None:
        """Waits longer each time, unless a message arrives: whoever sent it could reach the database."""
        heard = (self._nudges, self.verbs.seen)
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: heard != (self._nudges, self.verbs.seen),
                timeout=policies.backoff(failures),
                timeout_summary="asks the database again",
            )

    def _must_look(self) -> bool:
        """Whether the last reading may be out of date. Work that ended in this run does not make it so."""
        work_ended = self.steps.ended or self.secrets.progressed
        return self._woken or self.verbs.pending or not work_ended

    async def _look(self) -> bool:
        """Applies waiting verbs and reads what is wanted; False while the database is unavailable."""
        self._woken = False
        try:
            await self.verbs.apply(self.steps, self._publication)
            self.steps.newest_commit = self.secrets.committed_before_a_reading() or self.steps.newest_commit
            reading = await self._read()
            if self._reader.seeded and reading.wanted and self._publication.overtaken(reading.wanted):
                self.steps.drop()
                self._reader.seeded = False
                reading = await self._reader.read(self.steps.newest_commit)
        except ActivityError as error:
            self._trouble = failure_of(error).sentence
            workflow.set_current_details(f"Waiting for the database: {self._trouble}")
            self._woken = True
            return False
        wanted, self._trouble = reading.wanted, ""
        if wanted is None:
            raise ApplicationError(
                f"{self._cluster} was never a cluster.", type="cluster_unknown", non_retryable=True
            )
        if not self._reader.seeded:
            self._reader.seeded = True
            if reading.seed is not None:
                self._restore_from(reading.seed)
        self._wanted = wanted
        self._answered = self.verbs.applied
        self.secrets.take_wanted(wanted)
        self.steps.newest_commit, read_again = self._reader.newest_commit(reading, self.steps.newest_commit)
        self._woken = self._woken or read_again
        return True

    async def _read(self) -> Reading:
        """Takes one reading. New messages do not have to wait for the first one."""
        if self._first_reading.begins():
            if (reading := await self._first_reading.read(self._wanted_meanwhile)) is not None:
                return reading
            self._woken = False
            await self.verbs.apply(self.steps, self._publication)
        return await self._reader.read(self.steps.newest_commit)

    def _wanted_meanwhile(self) -> bool:
        return self._woken or self.verbs.pending or not self.secrets.idle

    def _restore_from(self, projection: Projection) -> None:
        """Continues from the last projection: the workflow that published it is lost, and this one knows less."""
        verbs, secrets = self.verbs, self.secrets
        told = self._publication.without_phases()
        self._restore(ClusterState(projection=projection, done=projection.done, events=told, runs=self._runs))
        self.verbs, self.secrets = verbs, secrets

    async def _drive(self) -> bool:
        """Runs what is due and publishes the result. False: the database is unavailable."""
        wanted = self._wanted
        if wanted is None:
            return True
        plan = self._plans.take(wanted)
        self._first_reading.hand_over(self.steps, plan, wanted, new=self._publication.projection is None)
        wanted, self._woken = self._plans.advance(plan, wanted, read_again=self._woken)
        commit = self.secrets.take_newest_commit()
        self.steps.newest_commit = commit or self.steps.newest_commit
        wanted = self._reader.not_applied_yet(wanted, self.steps.newest_commit, of_secrets=bool(commit))
        self._wanted = wanted
        projection = self._project(wanted)
        if wanted.closed:
            self.verbs.refused.tell(self._publication, all_of_them=True)
        self._publication.show(projection, wanted)
        published = self._may_wait_to_publish(projection) or await self._publication.publish(projection, wanted)
        self._wanted = self._publication.reread(wanted)
        self._over = wanted.closed
        return published

    def _may_wait_to_publish(self, projection: Projection) -> bool:
        """Whether nothing is worth publishing yet. An edge that fell silent while a step runs is worth it."""
        before = self._publication.projection
        return self.steps.has_just_begun and (before is None or before.face == projection.face)

    async def _rest(self) -> None:
        now = workflow.now()
        review = next_review(self._wanted, now) if self._wanted else None
        moments = [at for at in (self.steps.wake_at, review) if at is not None]
        seconds = max(0.0, (min(moments) - now).total_seconds()) if moments else None
        with suppress(TimeoutError):
            await workflow.wait_condition(
                self._something_to_do, timeout=seconds, timeout_summary=self.steps.what_is_next
            )

    def _something_to_do(self) -> bool:
        return (
            self._woken
            or self.verbs.pending
            or self.secrets.progressed
            or self.steps.ended
            or self._ready_to_continue_as_new()
        )

    def _project(self, wanted: Wanted) -> Projection:
        return project(wanted, self._plans.done, self.steps, self.secrets, self._publication.projection)

    # --- continue-as-new -------------------------------------------------------------------------------

    def _ready_to_continue_as_new(self) -> bool:
        info = workflow.info()
        full = info.is_continue_as_new_suggested() or info.get_current_history_length() >= policies.HISTORY_LIMIT
        return full and not self.steps.running

    async def _let_nobody_in(self, secrets: "asyncio.Task[None]") -> None:
        """Ends a run: refuses new messages, answers those inside, and sends waiting callers to the next run."""
        self.draining = True
        self.secrets.hurry()
        await workflow.sleep(policies.DRAIN, summary="messages on their way")
        if self.verbs.pending:
            await self._look()
        if self._over:
            self.secrets.held = False
        await self.secrets.end(policies.LONGEST_DRAIN if self._over else policies.HANDOVER)
        try:
            await workflow.wait_condition(
                workflow.all_handlers_finished, timeout=policies.LONGEST_DRAIN, timeout_summary="answers to callers"
            )
        except TimeoutError:
            workflow.logger.warning("run ends with an unfinished handler")
        secrets.cancel()

    def _continue_as_new(self) -> None:
        """Continues as new with the whole state."""
        self.steps.newest_commit = self.secrets.newest_commit or self.steps.newest_commit
        self.verbs.tell_of_dropped(self._publication)
        self.verbs.refused.tell(self._publication, all_of_them=True)
        carried = projected_again(self._publication.projection, self.steps)
        workflow.continue_as_new(
            ManagedClusterInput(
                cluster=self._cluster,
                together=True,
                state=ClusterState(
                    projection=carried,
                    untold=carried != self._publication.projection,
                    done=self._plans.done,
                    verbs=self.verbs.waiting(),
                    verbs_seen=self.verbs.seen,
                    verbs_applied=self.verbs.applied,
                    heard=dict(self.verbs.heard),
                    events=tuple(self._publication.events),
                    attempted=self._publication.attempted,
                    runs=self._runs + 1,
                ),
            )
        )
