"""The fleet of cluster workflows, through a Temporal client."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from edgewright.adapters.temporal.standstill import tasks_only_fail
from edgewright.adapters.temporal.sweep_schedule import SweepRounds, is_paused, restore_schedule
from edgewright.domain.cluster import StepName
from edgewright.domain.projection import Projection
from edgewright.errors import Conflict, Invalid, NotFound
from edgewright.messages import names
from edgewright.messages.cluster import (
    ChangeSecrets,
    ChangeSecretsResult,
    ManagedClusterInput,
    PauseVerb,
    ReconcileSignal,
    StepVerb,
)
from edgewright.messages.notifications import NotificationsInput
from edgewright.ports.fleet import FleetUnavailable

NUDGE_DEADLINE = timedelta(seconds=5)
QUERY_DEADLINE = timedelta(seconds=2)
LOOK_DEADLINE = timedelta(seconds=10)
"""For the newest pages of a history; one without a flood of signals needs milliseconds."""
VERB_DEADLINE = timedelta(seconds=12)
SECRETS_DEADLINE = timedelta(seconds=20)
OVERLONG_HISTORY = 2000
"""Events; a run continues as new after half of them (workflows/policies.py)."""
TASK_TIMEOUT = timedelta(seconds=5)
"""How soon a workflow task of a worker that died is given to another; a living one needs milliseconds."""
AGAIN = 0.05
"""Seconds before an update is sent again that was refused for a moment, or lost around continue-as-new."""
PASSING = frozenset({"draining", "busy"})
NOT_TAKEN = frozenset({"UnprocessedUpdate", "AcceptedUpdateCompletedWorkflow"})
"""Temporal's own words, not the workflow's: the run ended before it has taken, or answered, the update. Sent again it
finds the next run, where it does no harm: a wish that is met already is met at once."""
RUNNING = f"WorkflowType = '{names.WORKFLOW_TYPE}' AND ExecutionStatus = 'Running'"
CLUSTER_ID = re.compile(r"cluster-([0-9a-f-]{36})")

T = TypeVar("T")
NameOf = Callable[[UUID], Awaitable[str | None]]


class MessageRefused(FleetUnavailable):
    """Temporal takes no such message, or the run takes no more of them."""


class TemporalFleet:
    """Implements the port ``Fleet``. The client may be lazy: nothing here needs Temporal to be there before.

    Args:
        name_of: the name of a cluster, for the Web UI's summary of its workflow.
    """

    def __init__(self, client: Client, *, name_of: NameOf | None = None) -> None:
        self._client = client
        self._name_of = name_of
        self._rounds = SweepRounds(client)

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        """See the port."""
        try:
            await self._start(cluster, bulk=bulk)
        except MessageRefused:
            if not await self._is_overlong(cluster):
                raise
            await self.begin_anew(cluster)

    async def _is_overlong(self, cluster: UUID) -> bool:
        """Whether the run has more events than one that works ever has: it can have all the signals that Temporal
        lets a run take (10,000)."""
        described = await self._within(NUDGE_DEADLINE, self._handle(cluster).describe())
        return described.history_length > OVERLONG_HISTORY

    async def _start(self, cluster: UUID, *, bulk: bool) -> None:
        """Starts the workflow, or signals the one that runs."""
        name = await self._name_of(cluster) if self._name_of else None
        await self._within(
            NUDGE_DEADLINE,
            self._client.start_workflow(
                names.WORKFLOW_TYPE,
                ManagedClusterInput(cluster=cluster, together=True),
                id=names.workflow_id(cluster),
                task_queue=names.CLUSTERS_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal=names.SIGNAL_RECONCILE,
                start_signal_args=[ReconcileSignal(bulk=bulk)],
                task_timeout=TASK_TIMEOUT,
                static_summary=name or "managed cluster",
                rpc_timeout=NUDGE_DEADLINE,
            ),
        )

    async def change_secrets(self, cluster: UUID, requests: Sequence[UUID]) -> None:
        """See the port."""
        result = await self._update(
            cluster,
            names.UPDATE_CHANGE_SECRETS,
            ChangeSecrets(requests=tuple(requests)),
            ChangeSecretsResult,
            SECRETS_DEADLINE,
        )
        if not result.settled:
            raise FleetUnavailable(
                "The commit was not confirmed in time.", code="commit_unconfirmed", retry_after=2.0
            )

    async def retry_step(self, cluster: UUID, step: StepName, *, actor: str) -> Projection:
        """See the port."""
        return await self._verb(cluster, names.UPDATE_RETRY_STEP, StepVerb(step=step, actor=actor))

    async def skip_step(self, cluster: UUID, step: StepName, *, reason: str, actor: str) -> Projection:
        """See the port."""
        return await self._verb(cluster, names.UPDATE_SKIP_STEP, StepVerb(step=step, actor=actor, reason=reason))

    async def pause(self, cluster: UUID, *, reason: str, actor: str, seen: int | None = None) -> Projection:
        """See the port."""
        return await self._verb(cluster, names.UPDATE_PAUSE, PauseVerb(actor=actor, reason=reason, seen=seen))

    async def resume(self, cluster: UUID, *, actor: str, seen: int | None = None) -> Projection:
        """See the port."""
        return await self._verb(cluster, names.UPDATE_RESUME, PauseVerb(actor=actor, seen=seen))

    async def readiness(self, cluster: UUID) -> Projection:
        """See the port."""
        handle = self._handle(cluster)
        return await self._within(
            QUERY_DEADLINE,
            handle.query(names.QUERY_STATUS, result_type=Projection, rpc_timeout=QUERY_DEADLINE),
        )

    async def running(self) -> set[UUID]:
        """See the port."""
        found: set[UUID] = set()
        try:
            async for execution in self._client.list_workflows(RUNNING):
                if match := CLUSTER_ID.fullmatch(execution.id):
                    found.add(UUID(match[1]))
        except RPCError as error:
            raise unavailable(error) from error
        return found

    async def stands_still(self, cluster: UUID) -> bool:
        """See the port."""
        try:
            return await self._within(LOOK_DEADLINE, tasks_only_fail(self._client, cluster))
        except NotFound:
            return False

    async def begin_anew(self, cluster: UUID) -> None:
        """See the port."""
        with suppress(NotFound):
            reason = "its history is too long, or can no longer be read; it goes on from the database"
            await self._within(NUDGE_DEADLINE, self._handle(cluster).terminate(reason=reason))
        await self._start(cluster, bulk=True)

    async def deliver_notifications(self, *, news: bool) -> None:
        """See the port."""
        signal: dict[str, Any] = (
            {"start_signal": names.SIGNAL_RECONCILE, "start_signal_args": [ReconcileSignal()]} if news else {}
        )
        await self._within(
            NUDGE_DEADLINE,
            self._client.start_workflow(
                names.NOTIFICATIONS_TYPE,
                NotificationsInput(),
                id=names.NOTIFICATIONS_ID,
                task_queue=names.CLUSTERS_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                task_timeout=TASK_TIMEOUT,
                static_summary="delivers notifications to the webhook",
                rpc_timeout=NUDGE_DEADLINE,
                **signal,
            ),
        )

    async def healthy(self) -> bool:
        """See the port."""
        try:
            return await asyncio.wait_for(self._client.service_client.check_health(), timeout=1.0)
        except (RPCError, RuntimeError, TimeoutError):
            return False

    async def restore_sweep(self, every: timedelta) -> bool:
        """See the port."""
        return await self._within(NUDGE_DEADLINE, restore_schedule(self._client, every))

    async def forget_sweeps(self) -> int:
        """See the port."""
        try:
            return await self._rounds.forget()
        except RPCError as error:
            raise unavailable(error) from error

    async def sweep_is_paused(self) -> bool:
        """See the port."""
        return await self._within(NUDGE_DEADLINE, is_paused(self._client))

    def _handle(self, cluster: UUID) -> "WorkflowHandle[object, object]":
        return self._client.get_workflow_handle(names.workflow_id(cluster))

    async def _verb(self, cluster: UUID, update: str, verb: StepVerb | PauseVerb) -> Projection:
        return await self._update(cluster, update, verb, Projection, VERB_DEADLINE)

    async def _update(
        self,
        cluster: UUID,
        update: str,
        message: ChangeSecrets | StepVerb | PauseVerb,
        result_type: type[T],
        deadline: timedelta,
    ) -> T:
        """Sends an update until it is taken, always under the same ID, so that one run applies it once."""
        update_id = str(uuid4())
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                while True:
                    try:
                        answer: T = await self._handle(cluster).execute_update(
                            update, message, id=update_id, result_type=result_type, rpc_timeout=deadline
                        )
                        return answer
                    except WorkflowUpdateFailedError as error:
                        self._raise_unless_passing(error)
                    except RPCError as error:
                        await self._raise_unless_around_continue_as_new(error, cluster)
                    await asyncio.sleep(AGAIN)
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError, RuntimeError) as error:
            raise FleetUnavailable(
                "The workflow did not answer in time.", hint="See whether a worker runs.", retry_after=2.0
            ) from error

    def _raise_unless_passing(self, error: WorkflowUpdateFailedError) -> None:
        cause = error.cause
        kind = cause.type if isinstance(cause, ApplicationError) else None
        sentence = _sentence(cause.message) if isinstance(cause, ApplicationError) else "The workflow refused it."
        if kind in PASSING or kind in NOT_TAKEN:
            return
        if kind == "reason_required":
            raise Invalid(sentence, code=kind, where="reason") from error
        if kind == "not_applied_yet":
            raise FleetUnavailable(sentence, code=kind, retry_after=2.0) from error
        raise Conflict(sentence, code=kind or "refused_by_workflow") from error

    async def _raise_unless_around_continue_as_new(self, error: RPCError, cluster: UUID) -> None:
        """An update can be lost while a run continues as new; sending it again is right. So is starting the
        workflow of a cluster that has none."""
        if error.status is RPCStatusCode.NOT_FOUND:
            await self.nudge(cluster)
            return
        if error.status is RPCStatusCode.FAILED_PRECONDITION:
            return
        raise unavailable(error) from error

    async def _within(self, deadline: timedelta, call: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(call, timeout=deadline.total_seconds())
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise NotFound("The cluster has no running workflow.", code="workflow_unknown") from error
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                raise MessageRefused("Temporal does not take the message.", retry_after=2.0) from error
            raise unavailable(error) from error
        except (TimeoutError, RuntimeError) as error:
            raise FleetUnavailable("Temporal does not answer.", retry_after=2.0) from error


def unavailable(error: RPCError) -> FleetUnavailable:
    """A failed call to Temporal, without the server's text."""
    return FleetUnavailable(
        f"Temporal does not answer ({error.status.name}).",
        hint="See whether Temporal and a worker run.",
        retry_after=2.0,
    )


def _sentence(said: str) -> str:
    """What a workflow says, whole; that of a worker up to 0.3.0 begins small and has no full stop."""
    return said[:1].upper() + said[1:] + ("" if said.endswith(".") else ".")
