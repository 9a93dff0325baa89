"""A gateway that is killed while it commits a secret, and the one after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP
from lone_gateway import LoneGateway, lone_gateway
from sealed_values import STATUS

from edgewright.adapters.git.bare import BareGitServer
from edgewright.application.committed_requests import requests_named
from edgewright.ports.git_server import CommitMessage
from edgewright.settings import Settings

DIES = """
import os, signal
import {module} as module
def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
module.{name} = dies
"""
MOMENTS = {
    "staged": DIES.format(module="edgewright.adapters.git.bare", name="BareGitServer.commit"),
    "written": DIES.format(module="edgewright.adapters.git.bare", name="move_head"),
    "committed": DIES.format(
        module="edgewright.adapters.database.secrets.secret_staging", name="SqlSecretStaging.committed"
    ),
    "recorded": DIES.format(module="api.secret_writes", name="ChangedKeys"),
}
"""What the process had just done when it was killed."""
PUSH = CommitMessage("Something else", "test")


@contextmanager
def cluster_of(home: Path) -> Iterator[tuple[BareGitServer, UUID]]:
    """A cluster that takes secrets: no worker has commissioned it, and none will."""
    with lone_gateway(home) as gateway:
        cluster = UUID(gateway.api("POST", "/v1/cluster", json={"name": "press-shop"}).json()["uuid"])
        path = f"/v1/app/{STATUS_APP}/object/{cluster}"
        assert gateway.api("PUT", path, json=STATUS).is_success
    git = BareGitServer(Settings(home=home).effective_git_root)
    git.create_repository(cluster)
    git.commit(cluster, {"README.md": b"x"}, CommitMessage("Begin", "test"), expected_head=None)
    yield git, cluster


def write(gateway: LoneGateway, cluster: UUID, request: str, value: bytes | None) -> httpx.Response:
    path = f"/v1/cluster/{cluster}/secret/default/db/password"
    headers = {"Idempotency-Key": request}
    if value is None:
        return gateway.api("DELETE", path, headers=headers)
    return gateway.api("PUT", path, headers=headers, content=value)


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_killed_gateway_was_asked_for_is_committed_once(moment: str, tmp_path: Path) -> None:
    """Temporal is away all the time: nobody else commits."""
    home = tmp_path / "home"
    with cluster_of(home) as (git, cluster):
        for request, value in (("first", b"one"), ("second", b"two"), ("third", None)):
            with lone_gateway(home, begins_with=MOMENTS[moment]) as gateway:
                with pytest.raises(httpx.TransportError):
                    write(gateway, cluster, request, value)
                assert gateway.process.wait(20) != 0
            before = git.head(cluster)
            pushed = git.commit(cluster, {"by-hand/x": request.encode()}, PUSH, expected_head=before)
            with lone_gateway(home) as gateway:
                answers = [write(gateway, cluster, request, value) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [204, 204], answers[0].text
            [commit] = {answer.headers["Edgewright-Commit"] for answer in answers}
            assert commit == (git.head(cluster) if moment in {"staged", "written"} else before)
            assert (git.head(cluster) == pushed) == (commit == before)
        told = [request for entry in git.log(cluster, limit=99) for request in requests_named(entry)]
        assert len(told) == len(set(told)) == 3
