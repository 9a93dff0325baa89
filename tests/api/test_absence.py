"""What an edge says it lacks is shown, marked and refused, until it has it again."""

import asyncio
import hashlib
from base64 import b64encode
from typing import Any

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre
from reporting_agent import certificate
from resealing_edge import ResealingEdge
from temporalio.testing import ActivityEnvironment

from activities.clusters import ClusterActivities
from edgewright.application.rendering import RenderInputs
from edgewright.domain.absence import MOST_VALUES
from edgewright.domain.cluster import Wanted
from edgewright.messages.steps import Reading, ReadWanted

HOSTS = {"hosts": [{"hostname": "node-1"}]}
UNWRITABLE = {"what": "secrets/flux-secrets", "right": "patch on secrets/flux-secrets in edgewright"}
DB = "default/db"


async def report(centre: GatewayCentre, edge: EdgeCredentials, **said: Any) -> None:
    answer = await centre.client(edge.as_agent).put("/v1/agent/status", json={**HOSTS, **said})
    assert answer.status_code == 204, answer.text


async def reading(centre: GatewayCentre, edge: EdgeCredentials) -> Wanted:
    """What the workflow reads of the cluster."""
    inputs = RenderInputs(centre.ports.config, "http://127.0.0.1:8484")
    activities = ClusterActivities(
        centre.ports.wishes,
        centre.ports.directory,
        centre.ports.steps,
        centre.git,
        inputs,
        commissioned=lambda _seconds: None,
    )
    read: Reading = await ActivityEnvironment().run(activities.read_wanted, ReadWanted(cluster=edge.cluster))
    assert read.wanted is not None
    return read.wanted


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"missing": ["GitRepository self-link"]}, "DriverMissing"),
        ({"silent": ["source-controller"]}, "FluxSilent"),
        ({"unknown": [{"what": "kustomizations", "right": "list on kustomizations"}]}, "CannotBeKnown"),
    ],
)
async def test_what_drives_the_edge_and_is_gone_is_read_until_it_is_back(
    centre: GatewayCentre, edge: EdgeCredentials, said: dict[str, Any], reason: str
) -> None:
    flux: dict[str, Any] = {"flux": {"sources": [], "kustomizations": []}}
    await report(centre, edge, **flux, **said)
    wanted = await reading(centre, edge)
    assert wanted.delivery_problem is not None and wanted.delivery_problem.reason == reason
    assert wanted.edge_health is not None and wanted.edge_health.message
    await report(centre, edge, **flux)
    wanted = await reading(centre, edge)
    assert wanted.delivery_problem is None
    assert wanted.edge_health is not None and not wanted.edge_health.message


async def test_a_missing_secret_of_the_agent_is_told_of_an_edge_that_says_nothing_of_flux(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    await report(centre, edge)
    assert (await reading(centre, edge)).edge_health is None
    await report(centre, edge, missing=["Secret edgewright-agent"])
    wanted = await reading(centre, edge)
    assert wanted.edge_health is not None and wanted.edge_health.reason == "AgentSecretMissing"
    assert wanted.delivery_problem is None


async def test_a_rotation_that_cannot_work_is_refused_with_what_heals_it(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    path = f"/v1/cluster/{edge.cluster}/credential/rotate"
    for said in ({"missing": ["Secret flux-secrets"]}, {"unknown": [UNWRITABLE]}):
        await report(centre, edge, **said)
        for wish in ({"roles": ["flux"]}, {}):
            answer = await admin.post(path, json=wish)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (409, "rotation_impossible"), problem
            assert "flux-secrets" in problem["detail"] and "bootstrap line" in problem["hint"]
        assert (await admin.post(path, json={"roles": ["agent"]})).status_code == 202
    await report(centre, edge)
    assert (await admin.post(path, json={"roles": ["flux"]})).status_code == 202


async def put(operator: httpx.AsyncClient, edge: EdgeCredentials, **values: bytes) -> None:
    changes = [
        {"namespace": "default", "name": "db", "key": key, "value_base64": b64encode(value).decode()}
        for key, value in values.items()
    ]
    answer = await operator.post(f"/v1/cluster/{edge.cluster}/secret", json={"changes": changes})
    assert answer.status_code == 200, answer.text


async def listed(operator: httpx.AsyncClient, edge: EdgeCredentials) -> tuple[dict[str, Any], list[str]]:
    document = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()
    return {each["key"]: each["opens"] for each in document["items"]}, document["must_reenter"]


def unopened(centre: GatewayCentre, edge: EdgeCredentials, *keys: str) -> list[dict[str, str]]:
    """What an agent says of values that the repository holds."""
    held = ResealingEdge(centre.git, edge.cluster).ciphertexts(DB)
    return [{"secret": DB, "key": key, "sha256": hashlib.sha256(held[key].encode()).hexdigest()} for key in keys]


async def test_a_value_that_no_key_opens_is_marked_until_it_is_entered_again(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    pem = certificate()
    await report(centre, edge, kubeseal_cert=pem)
    await put(admin, edge, user=b"ann", password=b"s3cr3t")
    lost = unopened(centre, edge, "password")
    await report(centre, edge, kubeseal_cert=pem, unopened=lost)
    assert await listed(admin, edge) == ({"user": None, "password": False}, ["default/db/password"])
    wanted = await reading(centre, edge)
    assert (wanted.unopened, wanted.unopened_count) == (("default/db/password",), 1)
    assert wanted.edge_health is not None and wanted.edge_health.reason == "Unreadable"
    timeline = (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).text
    assert "no key of the edge opens default/db/password" in timeline and "s3cr3t" not in timeline

    nudged = len(centre.fleet.nudged)
    await put(admin, edge, password=b"again")
    async with asyncio.timeout(30):  # the condition heals without a word of the edge
        while (edge.cluster, False) not in centre.fleet.nudged[nudged:]:
            await asyncio.sleep(0.01)
    assert await listed(admin, edge) == ({"user": None, "password": None}, []), "at once, whatever the edge says"
    wanted = await reading(centre, edge)
    assert (wanted.unopened, wanted.unopened_count) == ((), 0)


async def test_values_that_no_key_opens_and_that_the_edge_has_not_named_are_counted(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    pem = certificate()
    await report(centre, edge, kubeseal_cert=pem)
    await put(admin, edge, user=b"ann", password=b"s3cr3t")
    path = f"/v1/cluster/{edge.cluster}/secret"
    lost = unopened(centre, edge, "password")
    for count, more in ((0, 0), (1, 0), (480, 479), (10**9, MOST_VALUES - 1), (-5, 0)):
        await report(centre, edge, kubeseal_cert=pem, unopened=lost, unopened_count=count)
        assert (await admin.get(path)).json()["more_unopened"] == more
    await report(centre, edge, kubeseal_cert=pem, unopened=lost, unopened_count=480)
    filtered = (await admin.get(path, params={"namespace": "elsewhere"})).json()
    assert (filtered["items"], filtered["more_unopened"]) == ([], 479), "nobody knows in which namespaces they are"
    await report(centre, edge, kubeseal_cert=pem, unopened=[])
    assert (await admin.get(path)).json()["more_unopened"] == 0


async def test_what_an_edge_says_of_values_that_are_none_counts_nothing(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    pem = certificate()
    await report(centre, edge, kubeseal_cert=pem)
    await put(admin, edge, user=b"ann")
    [true] = unopened(centre, edge, "user")
    lies = [
        {**true, "sha256": "0" * 64},
        {**true, "key": "other"},
        {**true, "secret": "default/none"},
        {**true, "secret": "../../x"},
        {**true, "secret": "Not/A name"},
        {"secret": 5},
    ]
    await report(centre, edge, kubeseal_cert=pem, unopened=lies, unopened_count=10**6)
    assert await listed(admin, edge) == ({"user": None}, [])
    wanted = await reading(centre, edge)
    assert (wanted.unopened, wanted.unopened_count) == ((), 0)
