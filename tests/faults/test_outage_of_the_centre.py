"""A centre that was down for an hour: no edge is taken for lost because nobody listened."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from centre import eventually
from embedded import EmbeddedEdgewright
from failing.caller import Caller, CallingEdge
from failing.records import running
from moved_back import move_back
from temporalio.client import Client

from edgewright.messages.names import SWEEP_SCHEDULE

pytestmark = pytest.mark.timeout(600)  # the centre is started twice

FLEET = 5
OUTAGE = timedelta(hours=1)
LISTENING = {"gateway_presence": ("listening_since", "listening_until")}
HEARD = {"clusters": ("last_heard", "lease_expires_at")}


async def test_an_hour_without_a_centre_turns_no_edge_unknown(tmp_path: Path) -> None:
    centre = EmbeddedEdgewright(tmp_path / "home", {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "1"})
    with running(centre) as records:
        operator = Caller(centre, records)
        clusters = [await operator.cluster(f"down-{number}") for number in range(FLEET)]
        edges = [await operator.attach(cluster) for cluster in clusters]
        await stays_known_over_an_outage(centre, operator, clusters, edges[0])
        await operator.close()


async def stays_known_over_an_outage(
    centre: EmbeddedEdgewright, operator: Caller, clusters: list[str], edge: CallingEdge
) -> None:
    for cluster in clusters:
        await operator.until(cluster, lambda shown: available(shown) == "True", seconds=30)
    url = centre.endpoints()["gateway"]

    assert await asyncio.to_thread(centre.interrupt) == 0
    move_back(centre, {**LISTENING, **HEARD}, OUTAGE)
    await asyncio.to_thread(centre.up)
    assert centre.endpoints()["gateway"] == url
    await sweeps(centre, 3)
    for cluster in clusters:
        shown = await operator.show(cluster)
        assert (available(shown), shown["phase"], shown["lease"]["state"]) == ("True", "Active", "current")
        assert "lease.expired" not in await kinds(operator, cluster)

    assert (await edge.beat()).is_success
    await operator.until(clusters[0], heard_lately, seconds=30)
    move_back(
        centre, {"gateway_presence": ("listening_since",)}, OUTAGE
    )  # and nobody else was heard in all that time
    for cluster in clusters[1:]:
        await operator.until(cluster, lambda shown: available(shown) == "Unknown", seconds=60)
        assert (await kinds(operator, cluster)).count("lease.expired") == 1
    assert available(await operator.show(clusters[0])) == "True"


async def sweeps(centre: EmbeddedEdgewright, count: int) -> None:
    """Returns when so many more have begun, and the last but one of them has ended."""
    client = await Client.connect(str(centre.endpoints()["temporal"]))
    schedule = client.get_schedule_handle(SWEEP_SCHEDULE)
    wanted = (await schedule.describe()).info.num_actions + count + 1

    async def swept() -> bool:
        return (await schedule.describe()).info.num_actions >= wanted

    await eventually(swept)


async def kinds(operator: Caller, cluster: str) -> list[str]:
    """What the timeline tells of."""
    return [item["kind"] for item in (await operator.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]]


def available(shown: dict[str, Any]) -> str:
    [condition] = [condition for condition in shown["conditions"] if condition["type"] == "Available"]
    return str(condition["status"])


def heard_lately(shown: dict[str, Any]) -> bool:
    heard = datetime.fromisoformat(shown["lease"]["last_heard"])
    return datetime.now(heard.tzinfo) - heard < OUTAGE / 2
