"""How the detacher asks Kubernetes: dozens of questions in a row."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre

from edgewright.agent.cluster_objects import (
    ANCHORS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    ClusterObjects,
    Container,
    Found,
)
from edgewright.errors import Forbidden, Unauthenticated, Waiting

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


async def test_containers_are_read_page_by_page_whatever_runs_them(
    centre: ScriptedCentre, objects: ClusterObjects
) -> None:
    def described(name: str) -> dict[str, Any]:
        containers = [
            {"image": f"mirror.example/{name}:1", "command": ["/run", "it"], "args": ["now"]},
            {"image": "sidecar"},
        ]
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
        return {"metadata": {"name": name, "uid": name, "namespace": "shop"}, "spec": {"template": template}}

    def reply(request: ReceivedRequest) -> Reply:
        if "/deployments?" in request.path and "continue=more" not in request.path:
            return Reply(200, {"metadata": {"continue": "more"}, "items": [described("first")]})
        found = [described("second")] if "/deployments?" in request.path else None
        return Reply(200, {"metadata": {}, "items": found})

    centre.reply = reply
    seen = [(str(each), container) for each, container in await objects.containers()]
    assert seen == [
        (f"Deployment shop/{name}", container)
        for name in ("first", "second")
        for container in (
            Container(f"mirror.example/{name}:1", ("/run", "it"), ("now",), {"app": name}),
            Container("sidecar", labels={"app": name}),
        )
    ]
    asked = [request.path.partition("?")[0].rpartition("/")[2] for request in centre.requests]
    assert asked == ["deployments", "deployments", "statefulsets", "daemonsets"]


async def test_a_label_may_be_looked_for_with_any_value(centre: ScriptedCentre, objects: ClusterObjects) -> None:
    centre.reply = lambda _request: NOTHING
    await objects.of(SECRETS, labels={"a": None, "b": "c"})
    [request] = centre.requests
    assert parse_qs(urlsplit(request.path).query)["labelSelector"] == ["a,b=c"]


async def test_a_try_deletes_nothing_and_says_what_is_forbidden(
    centre: ScriptedCentre, objects: ClusterObjects
) -> None:
    centre.reply = lambda _request: Reply(403)
    with pytest.raises(Forbidden):
        await objects.remove(Found(SECRETS, "key", "uid", "vault"), tries=True)
    [request] = centre.requests
    assert (request.method, request.body["dryRun"]) == ("DELETE", ["All"])
