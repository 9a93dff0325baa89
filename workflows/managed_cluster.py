"""The life of one managed cluster.

One place mutates: message handlers validate, enqueue and return; the loop in ``run`` reads what is wanted,
compares it with what is done, and runs the step that is due. Messages are nudges: losing or doubling one does
no harm. Two lanes run beside each other, steps and secrets, so that neither holds up the other.
"""

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from edgewright.domain.cluster import Wanted
from edgewright.domain.conditions import next_review
from edgewright.domain.lifecycle import Plan, finish, next_step, plan_for
from edgewright.domain.projection import Projection
from edgewright.messages import names
from edgewright.messages.cluster import ClusterState, ManagedClusterInput
from edgewright.messages.steps import Reading, ReadWanted
from workflows import policies
from workflows.cluster_messages import ClusterMessages
from workflows.failures import failure_of
from workflows.projecting import project, projected_again
from workflows.publication import Publication
from workflows.secret_lane import SecretLane
from workflows.step_lane import StepLane
from workflows.verbs import Verbs

EARLY_MOVE = "withdraw secrets after an early move"
"""Patch. Runs that began before it take no secrets away when hardware was given up before it was commissioned."""

AHEAD = "a commit of a step is ahead of the edge"
"""Patch. Runs that began before it say that an edge is up to date until the next reading, whatever was rendered."""


@workflow.defn(name=names.WORKFLOW_TYPE)
class ManagedCluster(ClusterMessages):
    """One running workflow per cluster, from its creation until its deletion has finished."""

    @workflow.init
    def __init__(self, start: ManagedClusterInput) -> None:
        self._cluster = start.cluster
        self._together = start.together
        self._seeded = start.state is not None
        self._restore(start.state or ClusterState())
        self._wanted: Wanted | None = None
        self._compared_with: str | None = None
        self._woken = True
        self._nudges = 0
        self._draining = False
        self._answered = 0
        self._over = False
        self._trouble = ""

    def _restore(self, state: ClusterState) -> None:
        published = state.projection
        self._done = state.done
        self._runs = state.runs
        self._publication = Publication(self._cluster, published, state.events, state.attempted, untold=state.untold)
        self._steps = StepLane(
            self._publication,
            plan=published.plan if published else "",
            records=published.steps if published else (),
            residue=published.residue if published else (),
            newest_commit=published.desired_revision if published else None,
            together=self._together,
        )
        self._secrets = SecretLane(self._cluster)
        self._verbs = Verbs(self._cluster, state.verbs, state.verbs_seen, state.verbs_applied, state.heard)

    # --- the loop --------------------------------------------------------------------------------------

    @workflow.run
    async def run(self, start: ManagedClusterInput) -> None:
        secrets = asyncio.create_task(self._secrets.run())
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
            await self._rest(self._seconds_to_rest())
        await self._let_nobody_in(secrets)
        self._continue_as_new()

    async def _wait_for_the_database(self, failures: int) -> None:
        """Longer each time, unless somebody says that something has changed: then it is there again, for them."""
        heard = (self._nudges, self._verbs.seen)
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: heard != (self._nudges, self._verbs.seen),
                timeout=policies.backoff(failures),
                timeout_summary="asks the database again",
            )

    def _must_look(self) -> bool:
        """Whether the last reading may be out of date. It is not when only work of ours has ended."""
        work_ended = (self._steps.running and self._steps.resting) or self._secrets.progressed
        return self._woken or self._verbs.pending or not work_ended

    async def _look(self) -> bool:
        """Applies what was asked for and reads what is wanted; False while the database is out of reach."""
        self._woken = False
        try:
            await self._verbs.apply(self._steps, self._publication)
            reading = await self._read()
            if self._seeded and reading.wanted and self._publication.overtaken(reading.wanted):
                self._steps.drop()
                self._seeded = False
                reading = await self._read()
        except ActivityError as error:
            self._trouble = failure_of(error).sentence
            workflow.set_current_details(f"Waiting for the database: {self._trouble}")
            self._woken = True
            return False
        wanted, self._trouble = reading.wanted, ""
        if wanted is None:
            raise ApplicationError(f"{self._cluster} was never a cluster", type="cluster_unknown", non_retryable=True)
        if not self._seeded:
            self._seeded = True
            if reading.seed is not None:
                self._restore_from(reading.seed)
        self._wanted = wanted
        self._answered = self._verbs.applied
        self._secrets.take_wanted(wanted)
        return True

    async def _read(self) -> Reading:
        self._compared_with = self._steps.newest_commit
        reading: Reading = await workflow.execute_activity(
            "read_wanted",
            ReadWanted(cluster=self._cluster, seed=not self._seeded, desired_revision=self._compared_with),
            result_type=Reading,
            **policies.READ,
        )
        return reading

    def _restore_from(self, projection: Projection) -> None:
        """Goes on from the last projection: the workflow that published it is lost, and this one knows less."""
        verbs, secrets = self._verbs, self._secrets
        told = self._publication.without_phases()
        self._restore(ClusterState(projection=projection, done=projection.done, events=told, runs=self._runs))
        self._verbs, self._secrets = verbs, secrets

    async def _drive(self) -> bool:
        """Runs what is due and publishes what came of it. False: the database is out of reach."""
        wanted = self._wanted
        if wanted is None:
            return True
        plan = self._plan(wanted)
        self._steps.take(plan)
        while self._steps.advance(plan, wanted):
            if next_step(plan, self._steps.finished()) is None and plan.steps:
                plan, wanted = self._finish(plan, wanted)
            if self._steps.refused:
                self._steps.refused = False
                self._woken = True
            if self._woken or wanted.closed:
                break
        wanted = self._wanted = self._note_newest_commit(wanted)
        projection = self._project(wanted)
        self._publication.show(projection, wanted)
        published = self._may_wait_to_publish(projection) or await self._publication.publish(projection, wanted)
        self._wanted = self._publication.reread(wanted)
        self._over = wanted.closed
        return published

    def _plan(self, wanted: Wanted) -> Plan:
        """Of hardware that was given up before its commissioning was known to be done, secrets may be there as well:
        the workflow that knew is lost, or it was moved so early."""
        done = self._done
        if wanted.generation > 1 and not done.generation and workflow.patched(EARLY_MOVE):
            done = done.model_copy(update={"generation": wanted.generation - 1})
        return plan_for(wanted, done)

    def _finish(self, plan: Plan, wanted: Wanted) -> tuple[Plan, Wanted]:
        """Notes that a plan is done; returns what to go on with. A plan with more steps begins with a new reading."""
        self._done = finish(plan, wanted, self._done, self._steps.rendered_digest)
        self._steps.drop()
        if plan.key.startswith("delete/"):
            return plan, wanted.model_copy(update={"closed": True})
        if self._together and not (following := self._plan(wanted)).steps:
            self._steps.take(following)
            return following, wanted
        self._woken = True
        return plan, wanted

    def _note_newest_commit(self, wanted: Wanted) -> Wanted:
        """No edge has applied a commit that was made a moment ago."""
        self._secrets.progressed = False
        commit, self._secrets.newest_commit = self._secrets.newest_commit, None
        self._steps.newest_commit = commit or self._steps.newest_commit
        newest = self._steps.newest_commit
        compared = {self._compared_with, wanted.head}
        if wanted.observed_descends and newest not in compared and workflow.patched(AHEAD):
            return wanted.model_copy(update={"observed_descends": False, "head": newest})
        return wanted.model_copy(update={"observed_descends": False}) if commit else wanted

    def _may_wait_to_publish(self, projection: Projection) -> bool:
        """Whether a step runs of which nothing is worth telling yet: most end within milliseconds, but one may stand
        in the bulk queue for long, and an edge that fell silent meanwhile must show."""
        before = self._publication.projection
        if not self._steps.running or self._steps.resting or self._steps.hangs:
            return False
        current = self._steps.current
        first_round = current is not None and self._steps.records[current].attempts <= 1
        return first_round and (before is None or before.face == projection.face)

    def _seconds_to_rest(self) -> float | None:
        now = workflow.now()
        review = next_review(self._wanted, now) if self._wanted else None
        moments = [at for at in (self._steps.wake_at, review) if at is not None]
        return max(0.0, (min(moments) - now).total_seconds()) if moments else None

    async def _rest(self, seconds: float | None) -> None:
        try:
            await workflow.wait_condition(
                self._something_to_do, timeout=seconds, timeout_summary=self._steps.what_is_next
            )
        except TimeoutError:
            return

    def _something_to_do(self) -> bool:
        return (
            self._woken
            or self._verbs.pending
            or self._secrets.progressed
            or (self._steps.running and self._steps.resting)
            or self._ready_to_continue_as_new()
        )

    def _project(self, wanted: Wanted) -> Projection:
        return project(wanted, self._done, self._steps, self._secrets, self._publication.projection)

    # --- continue-as-new -------------------------------------------------------------------------------

    def _ready_to_continue_as_new(self) -> bool:
        info = workflow.info()
        full = info.is_continue_as_new_suggested() or info.get_current_history_length() >= policies.HISTORY_LIMIT
        return full and not self._steps.running

    async def _let_nobody_in(self, secrets: "asyncio.Task[None]") -> None:
        """The end of a run: refuses new messages, answers those inside, and sends who still waits to the next run."""
        self._draining = True
        self._secrets.hurry()
        await workflow.sleep(policies.DRAIN, summary="messages on their way")
        if self._verbs.pending:
            await self._look()
        if self._over:
            self._secrets.held = False
        with suppress(TimeoutError):
            patience = policies.LONGEST_DRAIN if self._over else policies.HANDOVER
            await workflow.wait_condition(
                lambda: self._secrets.idle, timeout=patience, timeout_summary="a commit under way"
            )
        self._secrets.send_away()
        try:
            await workflow.wait_condition(
                workflow.all_handlers_finished, timeout=policies.LONGEST_DRAIN, timeout_summary="answers to callers"
            )
        except TimeoutError:
            workflow.logger.warning("a run ends although a handler has not finished")
        secrets.cancel()

    def _continue_as_new(self) -> None:
        """Carries everything over."""
        self._steps.newest_commit = self._secrets.newest_commit or self._steps.newest_commit
        self._verbs.tell_of_dropped(self._publication)
        carried = projected_again(self._publication.projection, self._steps)
        workflow.continue_as_new(
            ManagedClusterInput(
                cluster=self._cluster,
                together=True,
                state=ClusterState(
                    projection=carried,
                    untold=carried != self._publication.projection,
                    done=self._done,
                    verbs=self._verbs.waiting(),
                    verbs_seen=self._verbs.seen,
                    verbs_applied=self._verbs.applied,
                    heard=dict(self._verbs.heard),
                    events=tuple(self._publication.events),
                    attempted=self._publication.attempted,
                    runs=self._runs + 1,
                ),
            )
        )
