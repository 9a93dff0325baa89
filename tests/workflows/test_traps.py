"""Every trap that is known of Temporal: entered on purpose, and the cluster lives on."""

import asyncio
import gc
import subprocess
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import StatusAway, at_phase, at_step, postpone, stage, states, tells, waits_to_try
from temporal_server import temporal_binary
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from edgewright.adapters.temporal.fleet import QUERY_DEADLINE
from edgewright.domain.cluster import ConditionStatus, ConditionType, Desired, Phase, StepName
from edgewright.domain.projection import Projection
from edgewright.errors import Conflict
from edgewright.messages import names
from edgewright.messages.cluster import ChangeSecrets, ChangeSecretsResult, VerbKind
from edgewright.ports.fleet import FleetUnavailable
from edgewright.ports.secret_staging import StagedChange, StagedState
from workflows import policies
from workflows.verbs import Verbs

SOON = 10 * QUERY_DEADLINE.total_seconds()
"""Seconds within which a query ends that nobody answers; generous, for a busy machine."""


async def is_alive(centre: WorkflowCentre, cluster: UUID) -> None:
    """Fails unless the workflow takes signals and updates, and answers queries."""
    await centre.fleet.pause(cluster, reason="to see whether it lives", actor="token:test")
    answer = await centre.fleet.resume(cluster, actor="token:test")
    assert answer.status_of(ConditionType.PAUSED) is ConditionStatus.FALSE
    assert await centre.fleet.readiness(cluster)


# --- handlers with a bug ---


async def test_a_bug_in_an_update_fails_its_caller_alone(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    sound = Verbs.add

    def add(self: Verbs, kind: VerbKind, actor: str = "temporal", **more: Any) -> int:
        if more.get("reason") == "bug":
            raise KeyError("something nobody thought of")
        return sound(self, kind, actor, **more)

    patchable.setattr(Verbs, "add", add)
    async with working(idle_centre):
        cluster = await idle_centre.create("buggy-update")
        with pytest.raises(Conflict) as failed:
            await idle_centre.fleet.pause(cluster, reason="bug", actor="token:test")
        assert failed.value.code == "HandlerBug"
        assert "something nobody thought of" not in str(failed.value)
        await is_alive(idle_centre, cluster)


async def test_a_signal_whose_handler_has_a_bug_is_dropped(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    def broken(self: Verbs, body: Any) -> None:
        raise KeyError("something nobody thought of")

    patchable.setattr(Verbs, "_edge_status", broken)
    async with working(idle_centre):
        cluster = await idle_centre.create("buggy-signal")
        await idle_centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"version": "1"})
        await eventually(lambda: tells(idle_centre, cluster, "signals.dropped"))
        await is_alive(idle_centre, cluster)


# --- messages that are not ours ---

NONSENSE: list[list[Any]] = [
    [],
    [None],
    ["text"],
    [42],
    [[1, {"a": None}]],
    [{"force": "yes", "x": {"y": 1}}],
    [1, 2],
]
NO_INPUT: list[list[Any]] = [[], [None]]


@pytest.mark.parametrize(
    "signal", [names.SIGNAL_RECONCILE, names.SIGNAL_EDGE_STATUS, names.SIGNAL_SEALING_KEY_ROTATED]
)
async def test_nonsense_in_a_signal_does_not_wedge_the_cluster(centre: WorkflowCentre, signal: str) -> None:
    cluster = await centre.create(f"nonsense-{signal.replace('_', '-')}")
    for arguments in NONSENSE:
        await centre.handle(cluster).signal(signal, args=arguments)
    await is_alive(centre, cluster)
    row = await centre.row(cluster)
    assert row.projection and row.projection.ready


@pytest.mark.parametrize("arguments", [each for each in NONSENSE if each not in NO_INPUT], ids=str)
async def test_nonsense_in_the_delete_signal_deletes_nothing(centre: WorkflowCentre, arguments: list[Any]) -> None:
    cluster = await centre.create("nonsense-delete")
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, args=arguments)
    await is_alive(centre, cluster)
    assert (await centre.row(cluster)).desired is Desired.PRESENT


@pytest.mark.parametrize("arguments", [*NO_INPUT, [{}]], ids=str)
async def test_a_delete_signal_without_input_deletes_without_force(
    centre: WorkflowCentre, arguments: list[Any]
) -> None:
    cluster = await centre.create("no-input")
    await centre.bootstrap(cluster)
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, args=arguments)
    await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    assert (await centre.row(cluster)).force is False


@pytest.mark.parametrize("update", [names.UPDATE_PAUSE, names.UPDATE_SKIP_STEP, names.UPDATE_CHANGE_SECRETS])
async def test_nonsense_in_an_update_is_refused_and_does_not_wedge_the_cluster(
    centre: WorkflowCentre, update: str
) -> None:
    cluster = await centre.create(f"nonsense-{update.replace('_', '-')}")
    for arguments in NONSENSE:
        if update == names.UPDATE_PAUSE and arguments and isinstance(arguments[0], dict):
            continue  # unknown fields of an object are ignored; that is a pause
        with pytest.raises(WorkflowUpdateFailedError):
            await asyncio.wait_for(centre.handle(cluster).execute_update(update, args=arguments), timeout=5)
    await is_alive(centre, cluster)


# --- the door of Temporal's own command line ---


async def signal_by_command_line(centre: WorkflowCentre, temporal: str, cluster: UUID, *more: str) -> None:
    command = [str(temporal_binary()), "workflow", "signal", "--address", temporal, "--name", "delete"]
    command += ["--workflow-id", names.workflow_id(cluster), *more]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=30)


async def test_the_temporal_command_line_deletes_a_cluster(centre: WorkflowCentre, temporal: str) -> None:
    cluster = await centre.create("by-hand")
    await signal_by_command_line(centre, temporal, cluster)
    row = await centre.until(cluster, at_phase(Phase.DELETED))
    assert row.closed
    requested = next(e for e in await centre.audit.timeline(cluster) if e.kind == "cluster.deletion_requested")
    assert requested.actor == "temporal"


async def test_the_temporal_command_line_can_force(centre: WorkflowCentre, temporal: str) -> None:
    cluster = await centre.create("by-force")
    await centre.bootstrap(cluster)
    await signal_by_command_line(centre, temporal, cluster, "--input", '{"force": true}')
    row = await centre.until(cluster, at_phase(Phase.DELETED))
    assert row.force and row.projection and row.projection.residue


# --- updates in flight ---


async def test_more_callers_than_temporal_admits_do_not_lock_an_operator_out(centre: WorkflowCentre) -> None:
    cluster = await centre.create("crowded-door")
    await centre.fleet.pause(cluster, reason="so that they wait", actor="token:test")
    changes = [await stage(centre, cluster, f"key-{number}") for number in range(15)]
    handle = centre.handle(cluster)
    updates = await asyncio.gather(
        *(
            handle.start_update(
                names.UPDATE_CHANGE_SECRETS,
                ChangeSecrets(requests=(change.request,)),
                wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                result_type=ChangeSecretsResult,
            )
            for change in changes
        )
    )
    answering = asyncio.gather(*(update.result() for update in updates), return_exceptions=True)
    await centre.fleet.resume(cluster, actor="token:test")  # raises if those who wait hold all places
    await eventually(lambda: all_settled(centre, changes))
    answers = await answering
    refused = [answer.cause for answer in answers if isinstance(answer, WorkflowUpdateFailedError)]
    assert {cause.type for cause in refused if isinstance(cause, ApplicationError)} == {"busy"}
    settled = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert settled == [ChangeSecretsResult(settled=True)] * policies.SECRET_CALLERS
    assert len(refused) + len(settled) == len(changes)


async def all_settled(centre: WorkflowCentre, changes: Sequence[StagedChange]) -> bool:
    return set(await states(centre, changes)) == {StagedState.COMMITTED}


async def test_a_run_that_closes_answers_those_who_wait(centre: WorkflowCentre) -> None:
    cluster = await centre.create("closing")
    await centre.fleet.pause(cluster, reason="so that they wait", actor="token:test")
    change = await stage(centre, cluster, "key")
    update = await centre.handle(cluster).start_update(
        names.UPDATE_CHANGE_SECRETS,
        ChangeSecrets(requests=(change.request,)),
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        result_type=ChangeSecretsResult,
    )
    await centre.wishes.request_deletion(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)
    answer = await asyncio.wait_for(update.result(), timeout=60)
    assert answer.settled  # told by the run that closes; who waits in vain is told otherwise
    assert await states(centre, [change]) == {StagedState.REFUSED: 1}


async def test_a_query_that_nobody_answers_ends_soon_and_says_who_is_missing(idle_centre: WorkflowCentre) -> None:
    cluster = uuid4()
    await idle_centre.write(cluster, "unanswered")
    began = time.monotonic()
    with pytest.raises(FleetUnavailable):
        await idle_centre.fleet.readiness(cluster)
    assert time.monotonic() - began < SOON


async def test_a_query_while_a_backlog_drains_is_answered_or_given_up_in_time(idle_centre: WorkflowCentre) -> None:
    clusters = [uuid4() for _ in range(40)]
    for number, cluster in enumerate(clusters):
        await idle_centre.write(cluster, f"backlog-{number}")
    async with working(idle_centre):
        began = time.monotonic()
        answers = await asyncio.gather(
            *(idle_centre.fleet.readiness(cluster) for cluster in clusters), return_exceptions=True
        )
        assert time.monotonic() - began < SOON
        assert {type(answer) for answer in answers} <= {Projection, FleetUnavailable}
        for cluster in clusters:
            await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))


# --- steps that are overtaken ----------------------------------------------------------------------------------


class SlowRepositories:
    """Git that takes its time to create a repository."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.left = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_repository(self, *args: Any, **more: Any) -> None:
        self.entered.set()
        self.go_on.wait(30)
        try:
            self._real.create_repository(*args, **more)
        finally:
            self.left.set()


async def test_a_step_that_is_overtaken_leaves_no_error_in_the_log(
    idle_centre: WorkflowCentre, caplog: pytest.LogCaptureFixture
) -> None:
    git = SlowRepositories(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = uuid4()
        await idle_centre.write(cluster, "overtaken")
        await asyncio.to_thread(git.entered.wait, 20)
        await idle_centre.write(cluster, "overtaken", values={"replicas": 3})
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and row.projection.change_done == row.change)
        )
        git.go_on.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await is_alive(idle_centre, cluster)
        gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio" or "never" in record.getMessage()] == []


async def test_a_repository_that_is_still_being_made_when_its_cluster_is_gone_never_comes_into_service(
    idle_centre: WorkflowCentre,
) -> None:
    """A disk may stall for longer than a whole deletion takes, and nobody can cancel a thread."""
    git = SlowRepositories(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = uuid4()
        await idle_centre.write(cluster, "gone-meanwhile")
        assert await asyncio.to_thread(git.entered.wait, 20)
        await idle_centre.wishes.request_deletion(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.phase is Phase.DELETED))
        git.go_on.set()
        assert await asyncio.to_thread(git.left.wait, 20)
        assert not await asyncio.to_thread(idle_centre.git.exists, cluster)


# --- clocks ---


async def test_a_step_does_not_wait_for_a_moment_that_a_wrong_clock_has_stored(idle_centre: WorkflowCentre) -> None:
    cluster = uuid4()
    async with working(idle_centre, steps=StatusAway(idle_centre.steps)):
        await idle_centre.write(cluster, "postponed")
        await idle_centre.until(cluster, waits_to_try(StepName.PUBLISH_STATUS))
    await postpone(idle_centre, cluster, StepName.PUBLISH_STATUS, by=timedelta(days=400))
    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
