"""Clusters that began under an earlier version go on under this one: every recorded history replays.

A test that fails here says that a running cluster would stop with a non-determinism error after an upgrade. Keep the
old order of steps behind `workflow.patched`, and record the new one beside it (`make record-histories`).
"""

import base64
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sandbox import sandboxed
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from edgewright.domain import lifecycle
from edgewright.domain.cluster import StepName
from edgewright.domain.lifecycle import WAITS
from edgewright.messages import names
from workflows.causes import WorkflowCauseInterceptor
from workflows.plugin import WORKFLOWS

HISTORIES = Path(__file__).parent / "histories"
RECORDED = sorted(HISTORIES.glob("*/*.json"))
LARGEST = 150_000
TRACES = re.compile(r"@(?!\w+\.)\w|/(?:home|root|tmp|Users)/|\.py\b")


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def events(path: Path) -> Iterator[dict[str, Any]]:
    yield from json.loads(path.read_text())["events"]


def readable(value: Any) -> str:
    """Everything that a history says, its payloads decoded."""
    if isinstance(value, dict):
        decoded = base64.b64decode(value["data"]).decode() if {"metadata", "data"} <= set(value) else ""
        return decoded + " ".join(readable(item) for key, item in value.items() if key != "data")
    if isinstance(value, list):
        return " ".join(readable(item) for item in value)
    return str(value)


async def replay(path: Path, *, causes: bool = True) -> None:
    """Replays a history. ``causes``: with what hands request IDs and traces on, as a worker has it."""
    replayer = Replayer(
        workflows=WORKFLOWS,
        interceptors=[WorkflowCauseInterceptor()] if causes else [],
        workflow_runner=sandboxed(),
        data_converter=pydantic_data_converter,
        build_id="replay",
    )
    await replayer.replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


@pytest.mark.parametrize("path", RECORDED, ids=named)
async def test_recorded_history_replays(path: Path) -> None:
    await replay(path)


async def test_history_replays_whether_or_not_causes_are_handed_on() -> None:
    await replay(next(path for path in RECORDED if path.stem == "commissioning"), causes=False)


async def test_another_order_of_steps_does_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "COMMISSIONING", tuple(reversed(lifecycle.COMMISSIONING)))
    with pytest.raises(NondeterminismError):
        await replay(next(path for path in RECORDED if path.stem == "commissioning"))


async def test_a_step_that_is_left_out_does_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "CENTRAL_DELETION", lifecycle.CENTRAL_DELETION[1:])
    with pytest.raises(NondeterminismError):
        await replay(next(path for path in RECORDED if path.stem == "deletion_with_goodbye"))


def test_every_step_and_every_message_occurs_in_a_history() -> None:
    seen = {"activities": set[str](), "signals": set[str](), "updates": set[str]()}
    for event in (event for path in RECORDED for event in events(path)):
        if scheduled := event.get("activityTaskScheduledEventAttributes"):
            seen["activities"].add(scheduled["activityType"]["name"])
        elif signalled := event.get("workflowExecutionSignaledEventAttributes"):
            seen["signals"].add(signalled["signalName"])
        elif updated := event.get("workflowExecutionUpdateAcceptedEventAttributes"):
            seen["updates"].add(updated["acceptedRequest"]["input"]["name"])
    messages = {kind: {v for k, v in vars(names).items() if k.startswith(kind)} for kind in ("SIGNAL_", "UPDATE_")}
    assert {step.value for step in StepName if step not in WAITS} - seen["activities"] == set()
    assert messages["SIGNAL_"] - seen["signals"] == set()
    assert messages["UPDATE_"] - seen["updates"] == set()


def test_runs_that_continue_as_new_are_among_the_histories() -> None:
    last = [list(events(path))[-1]["eventType"] for path in RECORDED]
    assert last.count("EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW") > 2


@pytest.mark.parametrize("path", RECORDED, ids=named)
def test_no_history_tells_of_the_machine_that_made_it(path: Path) -> None:
    text = readable(json.loads(path.read_text()))
    assert TRACES.findall(text) == []
    assert socket.gethostname() not in re.findall(r"[\w.-]+", text)
    assert path.stat().st_size < LARGEST
