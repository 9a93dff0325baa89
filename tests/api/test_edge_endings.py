"""What the agent of a removed or deleted cluster is told."""

import httpx
from gateway_centre import EdgeCredentials, GatewayCentre, fence_of
from reporting_agent import beat

from edgewright.domain.cluster import Order, Phase, StepName
from edgewright.domain.projection import Projection


async def test_a_removed_cluster_rests_and_goes_on_after_its_recreation(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    entry = f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{edge.cluster}"
    body = (await admin.get(entry)).json()
    assert (await admin.delete(entry)).status_code == 204
    assert await beat(centre, edge) == {"state": "suspended", "interval": 100, "suspended": True}
    refused = await centre.client(edge.as_agent).put("/v1/agent/status", json={})
    assert (refused.status_code, refused.json()["code"]) == (403, "suspended")
    refs = f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    assert (await centre.client(edge.as_flux).get(refs)).json()["code"] == "suspended"

    assert (await admin.put(entry, json=body)).status_code == 201
    assert (await beat(centre, edge))["state"] == "active"
    assert (await centre.client(edge.as_flux).get(refs)).status_code == 200


async def test_a_deletion_asks_the_agent_step_by_step(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    agent = centre.client(edge.as_agent)
    early = await agent.post("/v1/agent/detached")
    assert (early.status_code, early.json()["code"]) == (409, "not_detaching")
    await beat(centre, edge, inventory_empty=True)  # means nothing unless the cluster is being deleted

    await admin.delete(f"/v1/cluster/{edge.cluster}")
    await centre.project(edge.cluster, phase=Phase.DETACHING, order=Order.REPORT_EMPTY)
    told = await beat(centre, edge)
    assert (told["report_empty"], told["detach"]) == (True, False)
    assert "detach_order" not in told
    assert (await agent.post("/v1/agent/detached")).status_code == 409
    refused = await agent.get("/v1/agent/detach-order")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_detaching")
    await beat(centre, edge, inventory_empty=True)
    wanted = await centre.steps.read_wanted(edge.cluster)
    assert wanted is not None
    assert wanted.inventory_empty_at is not None

    await centre.project(edge.cluster, order=Order.DETACH)
    told = await beat(centre, edge)
    assert (told["report_empty"], told["detach"]) == (False, True)
    order = {"cluster": str(edge.cluster), "generation": 1, "workloads": "remove", "purge": False}
    assert told["detach_order"] == order
    assert (await agent.get("/v1/agent/detach-order")).json() == order
    assert (await centre.client(edge.as_flux).get("/v1/agent/detach-order")).status_code == 403
    assert (await agent.post("/v1/agent/detached")).status_code == 204
    wanted = await centre.steps.read_wanted(edge.cluster)
    assert wanted is not None
    assert wanted.detached_at is not None


async def test_an_edge_that_comes_back_after_its_deletion_is_told_to_detach_and_nothing_else(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await admin.delete(f"/v1/cluster/{edge.cluster}", params={"force": "true"})
    row = await centre.row(edge.cluster)
    await centre.steps.begin_deletion(fence_of(row))
    await centre.ports.edge_access.retire(fence_of(await centre.row(edge.cluster)), said_goodbye=False)
    for step in (StepName.REMOVE_ADDRESS, StepName.REMOVE_EDGE_STATUS, StepName.REMOVE_SETUP_STATUS):
        await centre.steps.remove_central_entries(fence_of(await centre.row(edge.cluster)), step)
    assert (await centre.row(edge.cluster)).closed
    assert (await admin.get(f"/v1/cluster/{edge.cluster}")).status_code == 410

    told = await beat(centre, edge)
    order = {"cluster": str(edge.cluster), "generation": 1, "workloads": "remove", "purge": False}
    assert {key: told[key] for key in told if key != "interval"} == {
        "state": "detach-only",
        "detach": True,
        "detach_order": order,
    }
    assert (await centre.client(edge.as_agent).get("/v1/agent/detach-order")).json() == order
    refs = f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    assert (await centre.client(edge.as_flux).get(refs)).status_code == 403
    agent = centre.client(edge.as_agent)
    assert (await agent.put("/v1/agent/status", json={})).json()["code"] == "detach_only"
    assert (await agent.post("/v1/agent/detached")).status_code == 204
    assert (await agent.post("/v1/agent/heartbeat")).status_code == 401
    assert (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).json()["items"]


async def test_an_order_that_nobody_wants_any_more_is_none(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    await centre.project(edge.cluster, phase=Phase.ACTIVE, order=Order.DETACH)
    told = await beat(centre, edge)
    assert told["detach"] is False and "detach_order" not in told
    assert (await centre.client(edge.as_agent).get("/v1/agent/detach-order")).status_code == 409


async def test_the_order_says_what_becomes_of_the_workloads(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await admin.delete(f"/v1/cluster/{edge.cluster}", params={"workloads": "keep"})
    await centre.project(edge.cluster, phase=Phase.DETACHING, order=Order.REPORT_EMPTY, desired_revision="a" * 40)
    assert (await beat(centre, edge))["revision"] == "a" * 40
    await centre.project(edge.cluster, order=Order.DETACH)
    told = await beat(centre, edge)
    assert told["detach_order"]["workloads"] == "keep" and "revision" not in told


async def test_a_purge_is_ordered_and_what_came_of_it_is_heard(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    path = f"/v1/cluster/{edge.cluster}"
    for wrong in ({"force": "true"}, {"workloads": "keep"}):
        refused = await admin.delete(path, params={"purge": "true", **wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "purge_impossible")
    asked = (await admin.delete(path, params={"purge": "true"})).json()["deletion"]
    assert asked["purge"] is True
    assert asked["edge"] == "The kind SealedSecret and the sealing keys are removed as well."
    await centre.project(edge.cluster, phase=Phase.DETACHING, order=Order.DETACH)
    assert (await beat(centre, edge))["detach_order"]["purge"] is True
    agent = centre.client(edge.as_agent)
    long = await agent.post("/v1/agent/detached", json={"purged": False, "purge_problem": "x" * 301})
    assert long.status_code == 422
    said = {"purged": False, "purge_problem": "There are\nSealedSecrets left: shop/a.", "from": "the future"}
    assert (await agent.post("/v1/agent/detached", json=said)).status_code == 204
    shown = (await admin.get(path)).json()["deletion"]
    assert "stay on the edge. There are SealedSecrets left: shop/a. To remove them" in shown["edge"]
    kinds = [one["kind"] for one in (await admin.get(f"{path}/timeline")).json()["items"]]
    assert kinds[-2:] == ["edge.not_purged", "edge.goodbye"]


async def test_a_projection_is_no_answer_to_the_agent_of_another(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    other = await centre.create("other")
    await centre.steps.project(
        other, Projection(sequence=99, phase=Phase.DETACHING, ready=False, order=Order.DETACH), []
    )
    assert (await beat(centre, edge))["detach"] is False
