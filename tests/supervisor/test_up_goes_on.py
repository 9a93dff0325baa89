"""`edgewright up` with the real parts: whatever is killed or lost, work goes on."""

from functools import partial

import pytest
from embedded import EmbeddedEdgewright
from supervised import eventually, living

from edgewright.cli.endpoints import read_endpoints

pytestmark = pytest.mark.timeout(300)


def test_killed_up_goes_on_with_the_next(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    edgewright.create("press-shop")
    token = (edgewright.home / "admin-token").read_text()
    orphans = edgewright.children()
    edgewright.kill()
    assert all(living(pid) for pid in orphans.values())
    assert read_endpoints(edgewright.home) is None, "a gateway without its `up` is not offered to anybody"

    edgewright.up()
    assert not [pid for pid in orphans.values() if living(pid)]
    assert "stopped a process that a killed run had left behind" in edgewright.said()
    assert (edgewright.home / "admin-token").read_text() == token
    eventually(lambda: edgewright.is_ready("press-shop"), seconds=60)


def test_every_part_may_be_killed_and_work_goes_on(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    for number, part in enumerate(("worker", "gateway", "temporal")):
        edgewright.replace(part)
        assert f"{part} was killed by SIGKILL" in edgewright.said()
        edgewright.create(f"line-{number}")
        eventually(partial(edgewright.is_ready, f"line-{number}"), seconds=60)
    assert edgewright.interrupt() == 0


def test_workflows_are_rebuilt_when_temporals_file_is_gone(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    uuid = edgewright.create("press-shop")
    eventually(lambda: edgewright.is_ready("press-shop"), seconds=60)
    before = edgewright.api("GET", f"/v1/cluster/{uuid}").json()
    assert edgewright.interrupt() == 0
    for path in edgewright.home.glob("temporal.db*"):
        path.unlink()

    edgewright.up()
    assert "rebuilt 1 from the database" in edgewright.said()
    eventually(lambda: edgewright.api("GET", f"/v1/cluster/{uuid}/ready", params={"wait": 5}).is_success, seconds=60)
    after = edgewright.api("GET", f"/v1/cluster/{uuid}").json()
    assert (after["name"], after["phase"]) == (before["name"], before["phase"])
    assert after["revisions"] == before["revisions"]
