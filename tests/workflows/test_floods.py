"""More signals than anybody reads: what is too much is dropped, and nothing else waits for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import at_phase, is_told, kinds, tells
from temporal_server import temporal_server
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.common import RawValue
from temporalio.service import RPCError

from edgewright.domain.cluster import Phase
from edgewright.domain.events import EVENTS_BYTES, EventKind
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.messages import names
from edgewright.messages.cluster import ManagedClusterInput, PendingVerb, VerbKind
from workflows.cluster_loop import ClusterLoop
from workflows.signals import MOST_TOLD
from workflows.verbs import Verbs

FLOOD = 5000
AT_ONCE = 64


async def flood(
    centre: WorkflowCentre, cluster: UUID, number: int, body: Any, *, signal: str = names.SIGNAL_EDGE_STATUS
) -> None:
    """Sends so many signals, several at a time."""
    handle, left = centre.handle(cluster), iter(range(number))

    async def send() -> None:
        for _ in left:
            await handle.signal(signal, body)

    await asyncio.gather(*(send() for _ in range(AT_ONCE)))


@pytest.mark.usefixtures("patchable")
async def test_a_flood_of_signals_is_dropped_with_one_event_and_holds_up_no_deletion(
    idle_centre: WorkflowCentre, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("flooded")
    await flood(idle_centre, cluster, FLOOD, {"hosts": [{"name": "a"}]})
    async with working(idle_centre):
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", force=True)
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_phase(Phase.DELETED))
    assert [entry.getMessage() for entry in caplog.records if "has a bug" in entry.getMessage()] == []
    assert (await kinds(idle_centre, cluster)).count("signals.dropped") == 1


async def test_a_flood_of_unknown_signals_is_told_with_a_few_events_and_holds_up_no_deletion(
    idle_centre: WorkflowCentre,
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("flooded-with-typos")
    await flood(idle_centre, cluster, FLOOD, {"force": True}, signal="delet")
    async with working(idle_centre):
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", force=True)
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_phase(Phase.DELETED))
    told = await kinds(idle_centre, cluster)
    assert (told.count("signal.unknown"), told.count("signals.dropped")) == (MOST_TOLD, 1)
    [dropped] = [e for e in await idle_centre.audit.timeline(cluster) if e.kind == "signals.dropped"]
    assert dropped.detail == {"signals": FLOOD - MOST_TOLD}


async def test_a_deletion_that_comes_by_signal_gets_through_a_flood(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("flooded-first")
    await flood(idle_centre, cluster, 300, {"hosts": []})
    await idle_centre.handle(cluster).signal(names.SIGNAL_DELETE)
    async with working(idle_centre):
        await idle_centre.until(cluster, at_phase(Phase.DELETED))


NOTHING: list[Any] = []
DEEP = reduce(lambda inner, _: [inner], range(40), NOTHING)


@pytest.mark.parametrize(
    "body",
    ["x" * 100_000, {"hosts": ["x" * 100_000]}, {"hosts": DEEP}, {"hosts": [0] * 11_000}],
    ids=["text", "document", "levels", "nodes"],
)
async def test_a_signal_larger_than_a_status_may_be_is_dropped_with_an_event(
    centre: WorkflowCentre, body: Any
) -> None:
    cluster = await centre.create("too-large")
    await centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, body)
    await eventually(lambda: tells(centre, cluster, "signals.dropped"))
    assert await centre.ports.config.get(APP_CLUSTER_STATUS, cluster) is None


async def test_signals_that_are_large_together_fit_into_the_next_run(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("large-together")
    await flood(idle_centre, cluster, 60, {"hosts": ["x" * 60_000]})
    async with working(idle_centre):
        await eventually(lambda: tells(idle_centre, cluster, "signals.dropped"))
        [dropped] = [e for e in await idle_centre.audit.timeline(cluster) if e.kind == "signals.dropped"]
        assert int(str(dropped.detail["signals"])) > 40


class Gate:
    """Reports that stop before one of the statuses, until they are let on."""

    def __init__(self, real: Any, stops_before: int) -> None:
        self._real = real
        self._left = stops_before
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def write_status(self, *args: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            await self.open.wait()
        return await self._real.write_status(*args, **more)


async def test_signals_that_were_applied_take_no_room_from_those_that_follow(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("one-left")
    handle, body = idle_centre.handle(cluster), {"hosts": [], "note": "x" * 60_000}
    for _ in range(3):
        await handle.signal(names.SIGNAL_EDGE_STATUS, body)
    gate = Gate(idle_centre.ports.edge_reports, 3)
    async with working(idle_centre, edge_reports=gate):
        await gate.reached.wait()
        await handle.signal(names.SIGNAL_EDGE_STATUS, body)
        await handle.query(names.QUERY_STATUS)  # a worker has read the signal
        gate.open.set()
        await eventually(lambda: is_told(idle_centre, cluster))
    assert "signals.dropped" not in await kinds(idle_centre, cluster)


async def test_numbers_that_take_more_room_than_was_sent_are_counted_as_they_are_carried(
    idle_centre: WorkflowCentre,
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("numbers")
    numbers = b'{"hosts":[' + b",".join([b"1e15"] * 10_000) + b"]}"
    raw = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=numbers))
    await idle_centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, raw)
    async with working(idle_centre):
        await eventually(lambda: tells(idle_centre, cluster, "signals.dropped"))


@pytest.mark.parametrize(("number", "full"), [(4, False), (5, True)])
def test_no_update_is_taken_that_might_not_fit_into_the_next_run(number: int, full: bool) -> None:
    large = "x" * 60_000
    waiting = tuple(
        PendingVerb(kind=VerbKind.EDGE_STATUS, number=each, body={"note": large}) for each in range(number)
    )
    assert Verbs(uuid4(), waiting, number, 0).full is full


async def test_events_that_are_too_large_for_one_publication_are_all_told_once_and_in_order(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("tells-much")
        await eventually(lambda: is_told(idle_centre, cluster))
    length = (await idle_centre.handle(cluster).describe()).history_length
    look, many = ClusterLoop._look, range(1, 3 * EVENTS_BYTES // 1000)

    async def look_and_tell(self: ClusterLoop) -> bool:
        if not hasattr(self, "has_told") and workflow.info().get_current_history_length() > length:
            vars(self)["has_told"] = True
            for number in many:
                self._publication.tell(EventKind.SIGNALS_DROPPED, f"{number} {'x' * 900}", signals=number)
        return await look(self)

    patchable.setattr(ClusterLoop, "_look", look_and_tell)
    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        told: list[object] = []

        async def are_told() -> bool:
            events = await idle_centre.audit.timeline(cluster, limit=10_000)
            told[:] = [event.detail["signals"] for event in events if event.kind == "signals.dropped"]
            return len(told) >= len(many)

        await eventually(are_told)
        await eventually(lambda: is_told(idle_centre, cluster))
        await are_told()
    assert told == list(many)


# --- runs that no worker gets through ------------------------------------------------------------------------------


@pytest.fixture
async def lone_centre(tmp_path: Path) -> AsyncIterator[WorkflowCentre]:
    """A centre whose worker does not run, on a server of its own that lets a run have half as many signals."""
    settings = [f"history.maximumSignalsPerExecution={FLOOD // 2}"]
    with temporal_server(tmp_path / "temporal.log", settings=settings) as address:
        async with open_centre(tmp_path / "centre", address) as centre:
            yield centre


async def test_a_run_that_may_take_no_more_signals_is_begun_anew(lone_centre: WorkflowCentre) -> None:
    centre = lone_centre
    async with working(centre):
        cluster = await centre.create("full")
    full = (await centre.handle(cluster).describe()).run_id
    with pytest.raises(RPCError):
        await flood(centre, cluster, FLOOD, {"hosts": []})
    await centre.write(cluster, "full", values={"replicas": 3})
    assert (await centre.handle(cluster).describe()).run_id != full
    async with working(centre):
        await centre.until(
            cluster, lambda row: row.projection is not None and row.projection.change_done == row.change
        )


async def test_a_run_that_fails_beneath_a_flood_stands_still(
    lone_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    centre = lone_centre
    async with working(centre):
        cluster = await centre.create("beneath")

    async def defect(_self: ClusterLoop) -> bool:
        raise RuntimeError("a defect")

    patchable.setattr(ClusterLoop, "_look", defect)
    async with working(centre):

        async def still() -> bool:
            await flood(centre, cluster, 100, {"hosts": []})
            return await centre.fleet.stands_still(cluster)

        await eventually(still, seconds=30)


async def test_a_run_whose_tasks_time_out_stands_still(lone_centre: WorkflowCentre) -> None:
    centre, cluster = lone_centre, uuid4()
    await centre.client.start_workflow(
        names.WORKFLOW_TYPE,
        ManagedClusterInput(cluster=cluster),
        id=names.workflow_id(cluster),
        task_queue=names.CLUSTERS_QUEUE,
        task_timeout=timedelta(seconds=1),
    )
    queue = TaskQueue(name=names.CLUSTERS_QUEUE)
    request = PollWorkflowTaskQueueRequest(namespace=centre.client.namespace, task_queue=queue, identity="slow")

    async def still() -> bool:
        """A worker that takes every task and never completes one."""
        with suppress(RPCError):
            await centre.client.workflow_service.poll_workflow_task_queue(request, timeout=timedelta(seconds=3))
        return await centre.fleet.stands_still(cluster)

    assert not await centre.fleet.stands_still(cluster)
    await eventually(still)
