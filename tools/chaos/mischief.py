"""What is done to a centre that kills nothing: a process stands still, a clock is wrong, and somebody uses Temporal's
own port, as a script or an administrator would.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from edgewright.adapters.temporal.fleet import RUNNING
from edgewright.messages.names import SIGNAL_EDGE_STATUS, SIGNAL_RECONCILE, SWEEP_SCHEDULE
from tools.chaos.journal import Journal

KINDS = {"flood": 2, "reset": 2, "schedule": 1}
FROZEN_SECONDS = (2.0, 15.0)
"""How long a process stands still: as on a disk that stalls, it goes on with what it was doing, late."""
STARTING_SECONDS = (0.2, 3.0)
"""Age of what is killed while it starts: it imports, opens its stores, or begins to take work."""
SIGNALS = (800, 2400)
"""Least and most signals of one flood; more of them wait at once than a queue takes."""
AT_ONCE = 400
REFUSED = frozenset({RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.RESOURCE_EXHAUSTED})
"""What Temporal says of a run that has ended meanwhile, or of a signal too many."""
NOT_CONNECTED = "Failed client connect"
"""What the SDK says, as no error of its own, when the first call of a client finds nobody."""
AWAY = frozenset(
    {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNKNOWN}
)
"""What the SDK says when nobody answers; unknown, when the connection breaks under a call."""


async def stand_still(pids: Sequence[int], random: Random) -> None:
    """Stops processes for a while, and lets them go on; returns then. One that has died meanwhile is no error."""
    _send(signal.SIGSTOP, pids)
    try:
        await asyncio.sleep(random.uniform(*FROZEN_SECONDS))
    finally:
        _send(signal.SIGCONT, pids)


def _send(number: signal.Signals, pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


async def next_of(find: Callable[[], int | None], before: int) -> int | None:
    """The process that takes the place of one that was killed; None: there is none for quite a while."""
    for _ in range(100):
        found = find()
        if found not in {None, before}:
            return found
        await asyncio.sleep(0.1)
    return None


class Mischief:
    """Deeds; each says whether it could be done at this moment."""

    def __init__(self, address: str, journal: Journal, random: Random) -> None:
        self._address, self._journal, self._random = address, journal, random
        self._client: Client | None = None

    async def do(self, kind: str) -> bool:
        """``flood``: many signals to one cluster, ``reset``: of one workflow, ``schedule``: the sweep's goes."""
        try:
            match kind:
                case "flood":
                    return await self._flood()
                case "reset":
                    return await self._reset()
            return await self._remove_schedule()
        except RPCError as error:
            if error.status in REFUSED | AWAY:
                return False
            raise
        except RuntimeError as error:
            if str(error).startswith(NOT_CONNECTED):
                return False
            raise

    async def _flood(self) -> bool:
        handle = await self._some_cluster()
        if handle is None:
            return False
        self._journal.killed("flood", [handle.id])
        for _ in range(self._random.choice(SIGNALS) // AT_ONCE):
            signals = [
                handle.signal(SIGNAL_RECONCILE)
                if number % 2
                else handle.signal(SIGNAL_EDGE_STATUS, "no status at all")
                for number in range(AT_ONCE)
            ]
            for answer in await asyncio.gather(*signals, return_exceptions=True):
                if isinstance(answer, BaseException):
                    raise answer
        return True

    async def _reset(self) -> bool:
        """To any completed task of the present run: what came after it by signal comes again."""
        handle = await self._some_cluster()
        if handle is None:
            return False
        description = await handle.describe()
        if description.status is not WorkflowExecutionStatus.RUNNING:
            return False
        run = description.run_id
        tasks = [
            event.event_id
            async for event in handle.fetch_history_events()
            if event.HasField("workflow_task_completed_event_attributes")
        ]
        if not tasks:
            return False
        self._journal.killed("reset", [handle.id])
        client = await self._connected()
        await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run),
                reason="chaos",
                workflow_task_finish_event_id=self._random.choice(tasks),
                request_id=str(self._random.getrandbits(64)),
            )
        )
        return True

    async def _remove_schedule(self) -> bool:
        self._journal.killed("schedule", [SWEEP_SCHEDULE])
        client = await self._connected()
        await client.get_schedule_handle(SWEEP_SCHEDULE).delete()
        return True

    async def _some_cluster(self) -> "WorkflowHandle[object, object] | None":
        client = await self._connected()
        running = sorted([run.id async for run in client.list_workflows(RUNNING)])
        return client.get_workflow_handle(self._random.choice(running)) if running else None

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await Client.connect(self._address, lazy=True)
        return self._client
