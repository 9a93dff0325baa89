"""A home that an earlier version made is taken over by this one, with everything in it.

`homes/first-landing.tar.gz` was made by the first version that anybody could run, with a cluster in each kind of
state; its workflows' histories are of that version's code.
"""

import asyncio
import tarfile
from functools import partial
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from supervised import eventually
from temporalio.client import Client
from weeks_off import be_off

from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.messages.names import SWEEP_SCHEDULE

pytestmark = pytest.mark.timeout(400)

HOME = Path(__file__).parent / "homes" / "first-landing.tar.gz"
PATIENCE = 180.0


def is_gone(edgewright: EmbeddedEdgewright, uuid: str) -> bool:
    return edgewright.api("GET", f"/v1/cluster/{uuid}").status_code == 410


def test_a_home_of_the_first_landing_goes_on(edgewright: EmbeddedEdgewright) -> None:
    unpack(edgewright)
    edgewright.variables["EDGEWRIGHT_SWEEP_SECONDS"] = "5"
    edgewright.up()
    found = {item["name"]: item for phase in ("", "?phase=Removed") for item in listed(edgewright, phase)}
    assert {"demo", "awaiting", "active", "removed"} <= set(found)
    uuid = {name: item["uuid"] for name, item in found.items()}

    keys = edgewright.api("GET", f"/v1/cluster/{uuid['active']}/secret").json()["items"]
    assert sorted(item["key"] for item in keys) == ["password", "user"]
    kinds = [line["kind"] for line in timeline(edgewright, uuid["active"])]
    assert "cluster.created" in kinds
    assert kinds.count("secret.put") == 2

    values = {"replicas": None, "global": {"replicas": 5}}  # the chart of today does not take the former
    patched = edgewright.api("PATCH", f"/v1/cluster/{uuid['active']}", json={"values": values})
    assert patched.is_success, patched.text
    eventually(lambda: rendered(edgewright, uuid["active"]) > kinds.count("step.done"), seconds=PATIENCE)
    put = edgewright.api("PUT", f"/v1/cluster/{uuid['active']}/secret/default/db/third", content=b"x")
    assert put.status_code in {204, 503}, put.text
    eventually(lambda: len(secrets(edgewright, uuid["active"])) == 3, seconds=PATIENCE)

    body = {"name": "removed", "namespace": "edgewright"}
    written = edgewright.api("PUT", f"/v1/app/{APP_CLUSTER_CONFIGURATION}/object/{uuid['removed']}", json=body)
    assert written.is_success, written.text
    eventually(lambda: edgewright.is_ready("removed"), seconds=PATIENCE)

    for name in ("awaiting", "active"):
        assert edgewright.api("DELETE", f"/v1/cluster/{uuid[name]}?force=true").status_code == 202
        eventually(partial(is_gone, edgewright, uuid[name]), seconds=PATIENCE)
    edgewright.create("newcomer")
    eventually(lambda: edgewright.is_ready("newcomer"), seconds=PATIENCE)
    assert edgewright.interrupt() == 0


def test_a_home_that_nobody_started_for_months_sweeps_again(edgewright: EmbeddedEdgewright) -> None:
    """Temporal walks through every round that a schedule has missed; with so many it never comes to an end."""
    unpack(edgewright)
    be_off(edgewright.home / "temporal.db", weeks=12)
    edgewright.variables["EDGEWRIGHT_SWEEP_SECONDS"] = "1"
    edgewright.up()
    eventually(lambda: asyncio.run(rounds(edgewright)), seconds=PATIENCE)
    assert edgewright.interrupt() == 0


async def rounds(edgewright: EmbeddedEdgewright) -> int:
    """How many the schedule of the sweep has begun."""
    client = await Client.connect(str(edgewright.endpoints()["temporal"]))
    return (await client.get_schedule_handle(SWEEP_SCHEDULE).describe()).info.num_actions


def unpack(edgewright: EmbeddedEdgewright) -> None:
    edgewright.home.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HOME) as packed:
        packed.extractall(edgewright.home.parent, filter="data")
    assert edgewright.home.is_dir()


def listed(edgewright: EmbeddedEdgewright, query: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = edgewright.api("GET", f"/v1/cluster{query}").json()["items"]
    return items


def timeline(edgewright: EmbeddedEdgewright, uuid: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = edgewright.api("GET", f"/v1/cluster/{uuid}/timeline").json()["items"]
    return items


def rendered(edgewright: EmbeddedEdgewright, uuid: str) -> int:
    return [line["kind"] for line in timeline(edgewright, uuid)].count("step.done")


def secrets(edgewright: EmbeddedEdgewright, uuid: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = edgewright.api("GET", f"/v1/cluster/{uuid}/secret").json()["items"]
    return items
