"""Signals that cannot be carried out: the timeline says so, and nothing else happens."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import at_phase, is_told, kinds, tells
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.common import RawValue

from edgewright.domain.cluster import Desired, Phase
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.messages import names
from edgewright.ports.audit import Event
from edgewright.ports.clusters import ClusterRow
from workflows.signals import MOST_TOLD

FEW = 100
"""Signals of a flood that a worker takes as they come, all within one run."""


async def told(centre: WorkflowCentre, cluster: UUID, kind: str) -> list[Event]:
    """The events of a kind, once there is one."""
    await eventually(lambda: tells(centre, cluster, kind))
    return [event for event in await centre.audit.timeline(cluster) if event.kind == kind]


async def activities(centre: WorkflowCentre, cluster: UUID) -> int:
    """How many activities the present run has scheduled."""
    events = [event async for event in centre.handle(cluster).fetch_history_events()]
    return sum(event.HasField("activity_task_scheduled_event_attributes") for event in events)


def is_as_it_was(row: ClusterRow) -> bool:
    return row.desired is Desired.PRESENT and row.projection is not None and row.projection.phase is not Phase.DELETED


async def test_a_misspelt_signal_is_told_with_the_one_that_was_meant(centre: WorkflowCentre) -> None:
    cluster = await centre.create("misspelt")
    await centre.handle(cluster).signal("delet", {"force": True})
    [event] = await told(centre, cluster, "signal.unknown")
    assert event.message == "There is no signal `delet`. Did you mean `delete`? Nothing was changed."
    assert (event.actor, event.detail) == ("temporal", {"signal": "delet"})
    assert is_as_it_was(await centre.row(cluster))


async def test_what_was_sent_with_an_unknown_signal_is_not_repeated(centre: WorkflowCentre) -> None:
    cluster = await centre.create("reticent")
    await centre.handle(cluster).signal("secret_put", {"password": "s3cr3t"})
    [event] = await told(centre, cluster, "signal.unknown")
    assert "s3cr3t" not in event.model_dump_json()


@pytest.mark.parametrize("inputs", [["text"], [42], [[]], [False], [{"force": "yes"}], [{"froce": True}]], ids=str)
async def test_a_deletion_whose_input_means_nothing_deletes_nothing(
    centre: WorkflowCentre, inputs: list[Any]
) -> None:
    cluster = await centre.create("kept")
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, args=inputs)
    [event] = await told(centre, cluster, "delete.refused")
    assert event.message.endswith("Nothing was deleted.")
    assert is_as_it_was(await centre.row(cluster))
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, {"force": False})
    await centre.until(cluster, at_phase(Phase.DELETED))


BROKEN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"hosts": ['))
FOREIGN = RawValue(Payload(metadata={"encoding": b"binary/plain"}, data=b"online"))


@pytest.mark.parametrize(
    "body", [["a", "list"], 7, "text", BROKEN, FOREIGN], ids=["list", "number", "text", "broken", "foreign"]
)
async def test_a_status_that_is_none_is_refused(centre: WorkflowCentre, body: Any) -> None:
    cluster = await centre.create("no-status")
    await centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, body)
    [event] = await told(centre, cluster, "edge_status.refused")
    assert event.message.startswith("Refused: The input of `edge_status` is ")
    assert await centre.ports.config.get(APP_CLUSTER_STATUS, cluster) is None


@pytest.mark.parametrize("body", [["a", "list"], 7, {"cert": "PEM"}, "garbage", {"kubeseal_cert": 7}], ids=str)
async def test_a_certificate_that_is_none_is_refused(centre: WorkflowCentre, body: Any) -> None:
    cluster = await centre.create("no-certificate")
    await centre.handle(cluster).signal(names.SIGNAL_SEALING_KEY_ROTATED, body)
    [event] = await told(centre, cluster, "sealing_key.refused")
    assert "kubeseal_cert" in event.message or "/v1/cert.pem" in event.message
    assert (await centre.row(cluster)).proposed is None


@pytest.mark.parametrize("inputs", [["text"], [[1]], [{"bulk": "perhaps"}], [BROKEN], [FOREIGN]], ids=str)
async def test_a_nudge_is_one_whatever_its_input(idle_centre: WorkflowCentre, inputs: Sequence[Any]) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("nudged")
        body = {"name": "nudged", "namespace": "edgewright", "values": {"replicas": 3}}
        await idle_centre.wishes.write_configuration(cluster, body, actor="token:test")  # and nobody nudges
        await idle_centre.handle(cluster).signal(names.SIGNAL_RECONCILE, args=inputs)
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and row.projection.change_done == row.change)
        )


async def test_a_signal_with_several_inputs_is_told_as_dropped(centre: WorkflowCentre) -> None:
    cluster = await centre.create("two-inputs")
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, args=[{"force": True}, {"purge": True}])
    [event] = await told(centre, cluster, "signals.dropped")
    assert event.message.startswith("1 signal was dropped: ")
    assert is_as_it_was(await centre.row(cluster))


async def test_a_refused_signal_is_told_once_whichever_worker_takes_it(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("replayed")
    await idle_centre.handle(cluster).signal("delet")
    async with working(idle_centre):
        await told(idle_centre, cluster, "signal.unknown")
    async with working(idle_centre):  # replays all of it
        await idle_centre.handle(cluster).signal("edge-status", {"hosts": []})

        async def both() -> bool:
            return (await kinds(idle_centre, cluster)).count("signal.unknown") == 2

        await eventually(both)
        await eventually(lambda: is_told(idle_centre, cluster))
        assert await both()


async def test_the_web_ui_shows_what_was_refused(centre: WorkflowCentre) -> None:
    cluster = await centre.create("shown")
    await centre.handle(cluster).signal("delet")
    await told(centre, cluster, "signal.unknown")
    shown = await centre.handle(cluster).query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert "There is no signal `delet`. Did you mean `delete`?" in shown.current_details
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, "text")
    await told(centre, cluster, "delete.refused")
    shown = await centre.handle(cluster).query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert "The input of `delete` is a text." in shown.current_details


async def test_unknown_signals_beyond_a_few_cost_no_activity(centre: WorkflowCentre) -> None:
    cluster = await centre.create("pestered")
    await eventually(lambda: is_told(centre, cluster))
    before, handle = await activities(centre, cluster), centre.handle(cluster)
    await asyncio.gather(*(handle.signal(f"nothing_of_ours_{number}") for number in range(FEW)))
    await handle.query(names.QUERY_STATUS)  # a worker has read them all
    await eventually(lambda: is_told(centre, cluster))
    assert (await kinds(centre, cluster)).count("signal.unknown") == MOST_TOLD
    assert await activities(centre, cluster) - before <= 2 * MOST_TOLD + 2
    await handle.signal(names.SIGNAL_DELETE)
    [event] = await told(centre, cluster, "signals.dropped")
    assert event.detail == {"signals": FEW - MOST_TOLD}
