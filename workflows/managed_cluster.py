"""The workflow of one managed cluster: its messages. They validate, enqueue and return; the loop does the work.

Messages are nudges: losing or doubling one does no harm.
"""

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from edgewright.domain.projection import Projection, StepRecord
from edgewright.messages import names
from edgewright.messages.cluster import (
    ChangeSecrets,
    ChangeSecretsResult,
    ManagedClusterInput,
    PauseVerb,
    Readiness,
    StepVerb,
    VerbKind,
)
from workflows.cluster_loop import ClusterLoop
from workflows.guarded import guarded_signal, guarded_update
from workflows.signals import NOTHING, TOLD, SignalName, is_nudge

DELETE = 'Deletes the cluster. Input: nothing, {"force": true} or {"purge": true}.'


@workflow.defn(name=names.WORKFLOW_TYPE)
class ManagedCluster:
    """One running workflow per cluster, from its creation until its deletion has finished."""

    @workflow.init
    def __init__(self, start: ManagedClusterInput) -> None:
        self._loop = ClusterLoop(start)

    @workflow.run
    async def run(self, start: ManagedClusterInput) -> None:
        await self._loop.run()

    @workflow.signal(name=names.SIGNAL_RECONCILE, description="Something changed in the database: look again.")
    @guarded_signal
    def reconcile(self, signal: RawValue = NOTHING) -> None:
        """Something changed in the database. The input does not matter."""
        if is_nudge(signal) or workflow.patched(TOLD):
            self._loop.nudge()

    @workflow.signal(name=names.SIGNAL_DELETE, description=DELETE)
    @guarded_signal
    def delete(self, options: RawValue = NOTHING) -> None:
        """Deletes the cluster, as `DELETE /v1/cluster/UUID` does. Input: nothing, `{"force": true}` or
        `{"purge": true}`."""
        self._loop.verbs.signal(names.SIGNAL_DELETE, options)
        self._loop.wake_to_tell()

    @workflow.signal(name=names.SIGNAL_EDGE_STATUS, description="An edge status document, as JSON.")
    @guarded_signal
    def edge_status(self, body: RawValue = NOTHING) -> None:
        """Takes an *Edge cluster status* document (JSON), as the Config Store does; nothing: reads it again."""
        self._loop.verbs.signal(names.SIGNAL_EDGE_STATUS, body)
        self._loop.wake()

    @workflow.signal(
        name=names.SIGNAL_SEALING_KEY_ROTATED,
        description='A new sealing certificate: {"kubeseal_cert": PEM}, or the PEM.',
    )
    @guarded_signal
    def sealing_key_rotated(self, body: RawValue = NOTHING) -> None:
        """Takes a new sealing certificate, `{"kubeseal_cert": PEM}` or the PEM; nothing: reads it again."""
        self._loop.verbs.signal(names.SIGNAL_SEALING_KEY_ROTATED, body)
        self._loop.wake()

    @workflow.signal(dynamic=True, description="Any other name: changes nothing, and the timeline says so.")
    @guarded_signal
    def unknown_signal(self, name: SignalName, inputs: Sequence[RawValue]) -> None:
        """Says on the timeline that there is no such signal. Its inputs are not read."""
        if workflow.patched(TOLD):
            self._loop.verbs.refused.take_unknown(name)
            self._loop.wake_to_tell()

    def signal_failed(self) -> None:
        """Counts a signal that its handler could not take, such as one with several inputs."""
        if workflow.patched(TOLD):
            self._loop.verbs.drop()
            self._loop.wake()

    @workflow.update(name=names.UPDATE_CHANGE_SECRETS, description="Commits staged requests; sent by the gateway.")
    @guarded_update
    async def change_secrets(self, change: ChangeSecrets) -> ChangeSecretsResult:
        """Commits staged requests."""
        return ChangeSecretsResult(settled=await self._loop.secrets.commit(change.requests))

    @change_secrets.validator
    def _may_change_secrets(self, change: ChangeSecrets) -> None:
        self._refuse_while_draining()
        if self._loop.secrets.full:
            raise ApplicationError("Other secret writes are under way.", type="busy")

    @workflow.update(name=names.UPDATE_RETRY_STEP, description='Tries a waiting or blocked step now: {"step": NAME}.')
    @guarded_update
    async def retry_step(self, verb: StepVerb) -> Projection:
        """Tries a waiting or blocked step now."""
        return await self._loop.applied(self._loop.verbs.add(VerbKind.RETRY_STEP, verb.actor, step=verb.step))

    @retry_step.validator
    def _may_retry(self, verb: StepVerb) -> None:
        self._refuse_for_now()
        if not self._loop.steps.records.can_retry(verb.step):
            raise ApplicationError(f"The step {verb.step} is neither waiting nor blocked.", type="step_not_waiting")

    @workflow.update(
        name=names.UPDATE_SKIP_STEP,
        description='Skips the present step of a deletion: {"step": NAME, "reason": WHY}.',
    )
    @guarded_update
    async def skip_step(self, verb: StepVerb) -> Projection:
        """Skips the present step of a deletion; what it leaves becomes residue."""
        return await self._loop.applied(
            self._loop.verbs.add(VerbKind.SKIP_STEP, verb.actor, step=verb.step, reason=verb.reason)
        )

    @skip_step.validator
    def _may_skip(self, verb: StepVerb) -> None:
        self._refuse_for_now()
        if not verb.reason.strip():
            raise ApplicationError("Say why the step is skipped.", type="reason_required")
        if not self._loop.steps.records.can_skip(verb.step):
            raise ApplicationError(
                f"The step {verb.step} cannot be skipped. Only the present step of a deletion can be skipped, "
                "and only where it works on another system.",
                type="step_not_skippable",
            )

    @workflow.update(name=names.UPDATE_PAUSE, description='No more commits until resume: {"reason": WHY}.')
    @guarded_update
    async def pause(self, verb: PauseVerb) -> Projection:
        """No more commits until `resume`."""
        return await self._loop.applied(
            self._loop.verbs.add(VerbKind.PAUSE, verb.actor, reason=verb.reason, seen=verb.seen)
        )

    @pause.validator
    def _may_pause(self, verb: PauseVerb) -> None:
        self._refuse_for_now()

    @workflow.update(name=names.UPDATE_RESUME, description="Commits go on: {}.")
    @guarded_update
    async def resume(self, verb: PauseVerb) -> Projection:
        """Commits go on."""
        return await self._loop.applied(
            self._loop.verbs.add(VerbKind.RESUME, verb.actor, reason=verb.reason, seen=verb.seen)
        )

    @resume.validator
    def _may_resume(self, verb: PauseVerb) -> None:
        self._refuse_for_now()

    @workflow.query(name=names.QUERY_READINESS, description="Whether it is commissioned, and what it waits for.")
    def readiness(self) -> Readiness:
        """Whether the cluster is commissioned, and if not, what it waits for."""
        return self._loop.readiness()

    @workflow.query(name=names.QUERY_STATUS, description="Everything that is published about the cluster.")
    def status(self) -> Projection:
        """Everything that this workflow publishes about its cluster."""
        return self._loop.status()

    @workflow.query(name=names.QUERY_STEPS, description="The steps of the present plan.")
    def steps(self) -> list[StepRecord]:
        """The steps of the present plan."""
        return list(self._loop.steps.records.in_order)

    def _refuse_while_draining(self) -> None:
        if self._loop.draining:
            raise ApplicationError("The workflow continues as new; send it again.", type="draining")

    def _refuse_for_now(self) -> None:
        self._refuse_while_draining()
        if self._loop.verbs.full:
            raise ApplicationError("Too many messages wait for the database.", type="busy")
