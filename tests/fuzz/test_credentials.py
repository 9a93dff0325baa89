"""No operation opens to credentials that are wrong, revoked, somebody else's, or too small."""

import secrets
from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import STATUS_APP, basic, bearer
from live_gateway import LiveGateway, Population
from tour import DOCUMENT, OPERATIONS

from edgewright.domain.cluster import Role
from edgewright.domain.credentials import cluster_secret, operator_token, registration_token
from edgewright.domain.wellknown import SERVICE_GIT
from edgewright.ports.operators import Permission

OPEN = {("GET", "/"), ("GET", "/ping"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v1/uninstall.sh")}
NOBODYS = b"8" * 8, b"3" * 32
OWN = {"/token", "/v1/register", "/v1/agent/heartbeat", "/v1/agent/status", "/v1/agent/credential"}
OWN |= {"/v1/agent/resealed", "/v1/agent/detach-order", "/v1/agent/detached"}
"""Operations that name no cluster: a credential opens them for its own one."""
SHARED = "/git/shared/"
"""Every flux credential reads these."""
DIRECTORY = "/v1/service/"
"""Tells every edge, whatever its cluster, where the centre is."""


def fill(path: str, victim: UUID) -> str:
    """The path as it concerns one cluster."""
    values = {
        "uuid": victim,
        "object_uuid": victim,
        "app": STATUS_APP,
        "name": "helm-charts" if path.startswith(SHARED) else "active",
        "service": "git-upload-pack",
        "namespace": "default",
        "key": "password",
        "chart": "edge-cluster",
        "template": "edge-cluster",
        "repository": "press-line",
        "klass": uuid4(),
        "token_id": "0" * 16,
        "service_uuid": SERVICE_GIT,
    }
    if "/step/" in path:
        values["name"] = "populate_repository"
    return path.format(**values)


def ask(client: httpx.Client, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    params = {"service": "git-upload-pack"} if path.endswith("/info/refs") else {}
    return client.request(method, path, params=params, headers=headers)


@pytest.fixture(scope="module")
def reader(live: LiveGateway) -> dict[str, str]:
    """A token that only reads."""
    return live.token(Permission.READ)


@pytest.fixture(scope="module")
def stolen(live: LiveGateway, population: Population) -> dict[str, dict[str, str]]:
    """What another cluster has, and has a right to."""
    return {
        "agent": population.other_edge.as_agent,
        "flux": population.other_edge.as_flux,
        "registration": bearer(live.run(live.centre.bootstrap_token(population.other))),
    }


@pytest.fixture(scope="module")
def wrong(live: LiveGateway, population: Population) -> dict[str, dict[str, str]]:
    """Credentials that are good for nothing."""
    revoked = live.run(live.centre.token(Permission.ADMIN))
    live.run(live.centre.ports.operators.revoke(revoked.id, actor="centre"))
    made_up = cluster_secret(Role.AGENT, secrets.token_bytes(32)).text
    return {
        "none": {},
        "revoked": bearer(revoked.text),
        "made up": bearer(operator_token(*NOBODYS).text),
        "right ID, wrong secret": bearer(operator_token(bytes.fromhex(revoked.id), NOBODYS[1]).text),
        "made up for a cluster": basic(str(population.active), made_up),
        "another cluster's, under this one's name": basic(str(population.active), population.other_edge.agent),
        "made up registration": bearer(registration_token(*NOBODYS).text),
        "no scheme": {"Authorization": population.edge.agent},
        "not base64": {"Authorization": "Basic %%%"},
    }


@pytest.fixture(autouse=True)
def patient(live: LiveGateway) -> None:
    """Wrong credentials by the hundred come from one address here; it is not turned away for that."""
    live.centre.app.state.access.wrong_credentials._attempts.clear()


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=str)
def test_wrong_credentials_open_nothing(
    client: httpx.Client, population: Population, wrong: dict[str, dict[str, str]], method: str, path: str
) -> None:
    if (method, path) in OPEN:
        assert not DOCUMENT["paths"][path][method.lower()].get("security")
        return
    answers = {
        what: ask(client, method, fill(path, population.active), headers).status_code
        for what, headers in wrong.items()
    }
    refused = 403 if path.endswith("/bootstrap") else 401
    assert answers == dict.fromkeys(wrong, refused)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=str)
def test_credentials_of_another_cluster_open_nothing_of_this_one(
    client: httpx.Client, population: Population, stolen: dict[str, dict[str, str]], method: str, path: str
) -> None:
    if (method, path) in OPEN or path in OWN:
        return
    for what, headers in stolen.items():
        if (path.startswith(SHARED) and what == "flux") or (path.startswith(DIRECTORY) and what != "registration"):
            continue
        answer = ask(client, method, fill(path, population.active), headers)
        assert answer.status_code in {401, 403}, f"{what}: {answer.status_code} {answer.text[:300]}"


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=str)
def test_a_token_that_only_reads_changes_nothing(
    client: httpx.Client, population: Population, reader: dict[str, str], method: str, path: str
) -> None:
    if method == "GET" or path in OWN or "git-upload-pack" in fill(path, population.active):
        return
    answer = ask(client, method, fill(path, population.active), reader)
    assert answer.status_code == 403, answer.text


def test_registration_token_of_another_cluster_gives_no_script(
    client: httpx.Client, population: Population, stolen: dict[str, dict[str, str]]
) -> None:
    token = stolen["registration"]["Authorization"].removeprefix("Bearer ")
    answer = client.get(f"/v1/cluster/{population.active}/bootstrap", params={"token": token})
    assert answer.status_code == 403
    assert "exit 1" in answer.text
