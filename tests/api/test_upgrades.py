"""Upgrades of Flux and the agent, from the request to the commit that brings them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
import pytest
import yaml
from flux_file import VERSION, flux_file, sha256_of
from gateway_centre import BASE_URL, EdgeCredentials, GatewayCentre
from reporting_agent import beat

from edgewright import __version__
from edgewright.application.rendering import RenderInputs
from edgewright.bootstrap import AgentPod
from edgewright.ports.operators import Permission

FILE = flux_file()
IMAGE, BEFORE = "registry.example.com/agent:0.9.0", "registry.example.com/agent:0.8.0"
RUNS = {"agent": __version__, "agent-image": BEFORE, "kubernetes": "v1.33.1", "flux": "v2.6.0"}


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    centre.offer(agent=AgentPod(IMAGE, "registry-login", "edge-critical"))
    return await centre.create("press-shop")


@pytest.fixture
async def edge(centre: GatewayCentre, cluster: UUID) -> EdgeCredentials:
    edge = await centre.register(cluster)
    await report(centre, edge)
    return edge


async def report(centre: GatewayCentre, edge: EdgeCredentials, **body: Any) -> None:
    await beat(centre, edge)
    said = {"versions": RUNS, "flux_is_ours": True, **body}
    answer = await centre.client(edge.as_agent).put("/v1/agent/status", json=said)
    assert answer.status_code in {200, 204}, answer.text


async def upgrade(operator: httpx.AsyncClient, cluster: object, **body: Any) -> httpx.Response:
    return await operator.post(f"/v1/cluster/{cluster}/upgrade", json={"component": "agent", **body})


async def test_an_agent_is_upgraded_by_a_commit_and_proven_by_its_status(
    centre: GatewayCentre, cluster: UUID, edge: EdgeCredentials
) -> None:
    operator = await centre.operator(Permission.CLUSTERS, Permission.READ)
    begun = await upgrade(operator, "press-shop")
    assert begun.status_code == 202, begun.text
    told = begun.json()
    assert (told["name"], told["component"], told["version"], told["before"]) == (
        "press-shop",
        "agent",
        "0.9.0",
        "0.8.0",
    )
    assert (told["state"], told["ended_at"], told["reason"]) == ("under_way", None, "")
    again = await upgrade(operator, cluster)
    assert (again.status_code, again.json()) == (200, told)
    files = await rendered(centre, cluster)
    deployments = [one for one in yaml.safe_load_all(files["edo/agent/agent.yaml"]) if one["kind"] == "Deployment"]
    [pod] = [one for one in deployments if one["metadata"]["name"] == "edgewright-agent"]
    [detacher] = [one for one in deployments if one["metadata"]["name"] == "edgewright-detach"]
    assert "replicas" not in detacher["spec"]  # the agent decides that, and Flux must not take it back
    spec = pod["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == IMAGE
    assert (spec["imagePullSecrets"], spec["priorityClassName"]) == ([{"name": "registry-login"}], "edge-critical")
    await report(centre, edge, versions={**RUNS, "agent-image": IMAGE})
    listed = (await operator.get("/v1/upgrade", params={"cluster": str(cluster)})).json()
    assert [(each["state"], each["version"]) for each in listed["items"]] == [("done", "0.9.0")]
    assert listed["next"] is None


async def rendered(centre: GatewayCentre, cluster: UUID) -> Mapping[str, bytes]:
    """What the workflow of the cluster commits."""
    inputs = RenderInputs(centre.ports.config, BASE_URL)
    return await inputs.render(await inputs.collect(await centre.row(cluster)))


async def test_flux_is_upgraded_by_its_file_without_its_namespace(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    missing = await upgrade(admin, cluster, component="flux")
    assert (missing.status_code, missing.json()["code"]) == (404, "flux_not_imported")
    await admin.put("/v1/flux", params={"sha256": sha256_of(FILE)}, content=FILE)
    unknown = await upgrade(admin, cluster, component="flux", version="v9.9.9")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "flux_release_unknown")
    begun = await upgrade(admin, cluster, component="flux", version=VERSION)
    assert begun.status_code == 202, begun.text
    assert (begun.json()["version"], begun.json()["before"]) == (VERSION, "v2.6.0")
    files = await rendered(centre, cluster)
    kinds = [one["kind"] for one in yaml.safe_load_all(files["edo/flux/flux.yaml"])]
    assert "CustomResourceDefinition" in kinds and "Namespace" not in kinds
    driver = yaml.safe_load(files["edo/cluster/components/flux.yaml"])
    assert driver["metadata"]["name"] == f"edgewright-flux-{VERSION}"
    said = {"name": driver["metadata"]["name"], "conditions": [{"type": "Ready", "status": "True"}]}
    await report(centre, edge, flux={"kustomizations": [said]})
    [listed] = (await admin.get("/v1/upgrade")).json()["items"]
    assert listed["state"] == "done"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"flux_is_ours": False}, "flux_not_ours"),
        ({"flux_is_ours": None}, "agent_too_old"),
        ({"versions": {**RUNS, "flux": "v99.0.0"}}, "upgrade_backwards"),
    ],
)
async def test_flux_of_others_unknown_or_newer_stays_as_it_is(
    centre: GatewayCentre,
    admin: httpx.AsyncClient,
    cluster: UUID,
    edge: EdgeCredentials,
    said: dict[str, Any],
    code: str,
) -> None:
    await admin.put("/v1/flux", params={"sha256": sha256_of(FILE)}, content=FILE)
    await report(centre, edge, **said)
    refused = await upgrade(admin, cluster, component="flux")
    assert (refused.status_code, refused.json()["code"]) == (409, code), refused.text
    assert refused.json()["hint"]


async def test_an_agent_that_is_newer_than_the_centre_waits_for_it(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    await report(centre, edge, versions={**RUNS, "agent": "99.0.0"})
    begun = await upgrade(admin, cluster)  # an image of the operator's own may hold any version
    assert begun.status_code == 202, begun.text


async def test_who_may_do_what(centre: GatewayCentre, cluster: UUID, edge: EdgeCredentials) -> None:
    reader = await centre.operator(Permission.READ)
    assert (await upgrade(reader, cluster)).status_code == 403
    assert (await reader.get("/v1/upgrade")).json() == {"items": [], "next": None}
    assert (await centre.client(edge.as_agent).get("/v1/upgrade")).status_code in {401, 403}
    secrets = await centre.operator(Permission.SECRETS)
    assert (await upgrade(secrets, cluster)).status_code == 403


@pytest.mark.parametrize("image", ["x" * 60_000, "a b", "latest", "a:1\nb: 2", "$(reboot)", ""])
async def test_whatever_an_edge_says_of_its_image_keeps_nobody_from_upgrading_it(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials, image: str
) -> None:
    await report(centre, edge, versions={**RUNS, "agent-image": image})
    begun = await upgrade(admin, cluster)
    assert (begun.status_code, begun.json()["before"]) == (202, __version__), begun.text


async def test_no_commit_brings_an_image_from_where_only_an_edge_has_named(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    """Whoever has stolen the token of an agent chooses no program for the edge."""
    await report(centre, edge, versions={**RUNS, "agent-image": "evil.example.com/agent:0.8.0"})
    begun = await upgrade(admin, cluster)
    assert (begun.status_code, begun.json()["before"]) == (202, __version__), begun.text
    assert (await admin.delete(f"/v1/cluster/{cluster}/upgrade")).status_code == 200
    assert (await centre.row(cluster)).wanted.agent is None
    assert b"evil" not in b"".join((await rendered(centre, cluster)).values())


async def test_a_version_that_is_none_is_not_repeated(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    await report(centre, edge, versions={"agent": "1" * 500})
    begun = await upgrade(admin, cluster)
    assert (begun.status_code, begun.json()["before"]) == (202, None), begun.text


@pytest.mark.parametrize(
    "body",
    [
        {"component": "kubelet"},
        {"component": "agent", "at_once": 0},
        {"component": "agent", "at_once": 501},
        {"component": "flux", "version": ""},
        {"component": "flux", "version": "v" * 129},
        {"component": "agent", "force": True},
        {},
    ],
)
async def test_a_wrong_wish_is_refused(admin: httpx.AsyncClient, cluster: UUID, body: dict[str, Any]) -> None:
    refused = await admin.post(f"/v1/cluster/{cluster}/upgrade", json=body)
    assert refused.status_code in {400, 422}, refused.text


async def test_a_centre_without_an_image_says_so(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("bare-line")
    refused = await upgrade(admin, cluster)
    assert (refused.status_code, refused.json()["code"]) == (404, "agent_image_unset")
    unknown = await upgrade(admin, "nobody")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "cluster_unknown")


async def test_the_limit_and_the_edge_that_was_never_attached(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    other = await centre.create("line-2")
    refused = await upgrade(admin, other)
    assert (refused.status_code, refused.json()["code"]) == (409, "edge_not_attached")
    await report(centre, await centre.register(other, uid="uid-2"))
    assert (await upgrade(admin, cluster, at_once=1)).status_code == 202
    refused = await upgrade(admin, other, at_once=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "upgrade_limit_reached")
    assert (await upgrade(admin, other, at_once=2)).status_code == 202


async def test_an_upgrade_is_called_off_once_and_a_commit_takes_it_back(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    assert (await upgrade(admin, cluster)).status_code == 202
    nudged = len(centre.fleet.nudged)
    operator = await centre.operator(Permission.CLUSTERS)
    cancelled = await operator.delete("/v1/cluster/press-shop/upgrade")
    assert cancelled.status_code == 200, cancelled.text
    told = cancelled.json()
    assert (told["state"], told["version"], told["before"]) == ("cancelled", "0.9.0", "0.8.0")
    assert told["reason"].startswith("Called off by token:") and told["reason"].endswith(
        "; the edge goes back to 0.8.0."
    )
    assert told["ended_at"] is not None
    assert [each for each, _ in centre.fleet.nudged[nudged:]] == [cluster]
    files = await rendered(centre, cluster)
    assert f"image: {BEFORE}\n".encode() in files["edo/agent/agent.yaml"]
    again = await operator.delete(f"/v1/cluster/{cluster}/upgrade")
    assert (again.status_code, again.json()["code"]) == (409, "upgrade_not_under_way")
    assert again.json()["hint"]
    reader = await centre.operator(Permission.READ)
    assert [each["state"] for each in (await reader.get("/v1/upgrade")).json()["items"]] == ["cancelled"]
    assert (await reader.delete(f"/v1/cluster/{cluster}/upgrade")).status_code == 403


async def test_the_new_agent_that_comes_after_all_proves_nothing_any_more(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, edge: EdgeCredentials
) -> None:
    await upgrade(admin, cluster)
    assert (await admin.delete(f"/v1/cluster/{cluster}/upgrade")).status_code == 200
    await report(centre, edge, versions={**RUNS, "agent-image": IMAGE})
    [listed] = (await admin.get("/v1/upgrade")).json()["items"]
    assert listed["state"] == "cancelled"
    row = await centre.row(cluster)
    assert row.wanted.agent and row.wanted.agent.image == BEFORE


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("press-shop/upgrade", 409, "upgrade_not_under_way"),
        ("press-shop/upgrade?component=flux", 409, "upgrade_not_under_way"),
        ("press-shop/upgrade?component=kubelet", 422, "request_invalid"),
        ("nobody/upgrade", 404, "cluster_unknown"),
    ],
)
async def test_what_cannot_be_called_off_is_refused(
    admin: httpx.AsyncClient, cluster: UUID, path: str, status: int, code: str
) -> None:
    refused = await admin.delete(f"/v1/cluster/{path}")
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text


async def test_the_centre_says_which_agent_it_gives_to_edges(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    missing = await admin.get("/v1/agent-image")
    assert (missing.status_code, missing.json()["code"]) == (404, "agent_image_unset")
    centre.offer(agent=AgentPod(IMAGE))
    reader = await centre.operator(Permission.READ)
    assert (await reader.get("/v1/agent-image")).json() == {"image": IMAGE, "version": "0.9.0"}
    assert (await (await centre.operator(Permission.SECRETS)).get("/v1/agent-image")).status_code == 403
