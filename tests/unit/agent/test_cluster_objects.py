"""How the detacher asks Kubernetes: dozens of questions in a row."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scripted_centre import Reply, ScriptedCentre

from edgewright.agent.cluster_objects import ANCHORS, DEPLOYMENTS, NAMESPACES, ClusterObjects
from edgewright.errors import Unauthenticated, Waiting

NOTHING = Reply(200, {"metadata": {}, "items": []})


@pytest.fixture
async def objects(kubeconfig: Path) -> AsyncIterator[ClusterObjects]:
    objects = ClusterObjects()
    yield objects
    await objects.close()


async def test_the_detacher_lists_all_kinds_over_one_connection(
    centre: ScriptedCentre, objects: ClusterObjects
) -> None:
    centre.reply = lambda _request: NOTHING
    for kind in (ANCHORS, DEPLOYMENTS, NAMESPACES):
        assert await objects.of(kind) == []
    assert len(centre.requests) == 3
    assert len({request.caller_port for request in centre.requests}) == 1


async def test_after_a_failure_the_detacher_finds_another_address_and_another_token(
    centre: ScriptedCentre, objects: ClusterObjects, kubeconfig: Path, token: Path
) -> None:
    centre.reply = lambda _request: NOTHING
    right = kubeconfig.read_text()
    kubeconfig.write_text(right.replace(centre.url, "http://127.0.0.1:9"))
    with pytest.raises(Waiting):
        await objects.of(NAMESPACES)
    kubeconfig.write_text(right)
    assert await objects.of(NAMESPACES) == []

    centre.reply = lambda request: (
        NOTHING if request.headers["Authorization"] == f"Bearer {token.read_text()}" else Reply(401)
    )
    token.write_text("second")
    assert await objects.of(NAMESPACES) == []
    centre.reply = lambda _request: Reply(401)
    with pytest.raises(Unauthenticated):
        await objects.of(NAMESPACES)
