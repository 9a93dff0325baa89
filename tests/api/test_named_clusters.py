"""A cluster is named by its UUID or by its name, wherever a request names one."""

import asyncio
from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, GatewayCentre

from api.app import described
from edgewright.domain.wellknown import APP_CLUSTER_SETTINGS, CLASS_EDGE_CLUSTER
from edgewright.ports.operators import Permission

OPERATIONS = [
    (method.upper(), path)
    for path, methods in described()["paths"].items()
    if path.startswith("/v1/cluster/{uuid}") and not path.endswith("/bootstrap")  # its token says which one is meant
    for method in methods
]
NOBODY = UUID("6f1c1b5e-8a55-4a29-9c2b-0f6dbfd4a001")
FILL = {"namespace": "default", "key": "user"}


def at(path: str, cluster: str) -> str:
    """The path of an operation, for one cluster."""
    step = "await_goodbye" if "/step/" in path else "db"
    return path.format(uuid=cluster, name=step, **FILL)


def test_all_operations_on_one_cluster_are_looked_at() -> None:
    assert len(OPERATIONS) >= 25
    assert ("PUT", "/v1/cluster/{uuid}/secret/{namespace}/{name}/{key}") in OPERATIONS


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_each_operation_finds_a_cluster_by_its_name(
    centre: GatewayCentre, admin: httpx.AsyncClient, method: str, path: str
) -> None:
    made = await centre.create("press-shop")
    outcomes = []
    for text in (str(uuid4()), "no-such-cluster", str(made), "Press-SHOP"):
        answer = await admin.request(method, at(path, text))
        problem = answer.json() if answer.headers.get("content-type") == "application/problem+json" else {}
        outcomes.append((answer.status_code, problem.get("code")))
    unknown, unnamed, by_uuid, by_name = outcomes
    assert unnamed[0] == 404
    if unknown[0] == 404:  # others read the body first
        assert unnamed == unknown == (404, "cluster_unknown")
    assert by_name[0] != 404 or by_name == by_uuid
    if method == "GET":
        assert by_name == by_uuid
        assert by_uuid[0] in {200, 503} or "/install/" in path


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_token_that_may_not_ask_learns_no_names(
    centre: GatewayCentre, anybody: httpx.AsyncClient, method: str, path: str
) -> None:
    await centre.create("press-shop")
    unable = await centre.operator(Permission.PUSH)
    for caller, refusal in ((unable, 403), (anybody, 401)):
        told = []
        for text in ("press-shop", "no-such-cluster"):
            answer = await caller.request(method, at(path, text))
            assert answer.status_code == refusal
            told.append({key: value for key, value in answer.json().items() if key != "request_id"})
        assert told[0] == told[1]


async def test_what_is_changed_by_name_is_changed(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = await centre.create("press-shop")
    assert (await admin.patch("/v1/cluster/press-shop", json={"labels": {"line": "4"}})).status_code == 200
    assert (await centre.row(made)).settings.labels == {"line": "4"}
    assert (await admin.delete("/v1/cluster/PRESS-shop")).json()["uuid"] == str(made)


@pytest.mark.parametrize("text", ["a b", "-x", "x" * 64, "%00", "späti", "..%2Fx", "$(rm -rf %2F)"])
async def test_what_can_be_no_name_is_unknown(admin: httpx.AsyncClient, text: str) -> None:
    answer = await admin.get(f"/v1/cluster/{text}/timeline")
    assert answer.status_code == 404
    assert text not in answer.text


async def test_a_deleted_cluster_is_named_by_its_uuid_alone(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = await centre.create("press-shop")
    await admin.delete("/v1/cluster/press-shop", params={"force": True})
    async with centre.database.write() as connection:
        await connection.exec_driver_sql("UPDATE clusters SET closed_at = created_at")
    assert (await admin.get(f"/v1/cluster/{made}/timeline")).status_code == 200
    unknown = await admin.get("/v1/cluster/press-shop/timeline")
    assert (unknown.status_code, "UUID" in unknown.json()["hint"]) == (404, True)
    heir = await centre.create("press-shop")
    assert (await admin.get("/v1/cluster/press-shop")).json()["uuid"] == str(heir)


@pytest.mark.parametrize("name", [str(NOBODY), NOBODY.hex, str(NOBODY).upper()])
async def test_no_new_cluster_is_called_like_a_uuid(
    centre: GatewayCentre, admin: httpx.AsyncClient, name: str
) -> None:
    refused = await admin.post("/v1/cluster", json={"name": name})
    assert (refused.status_code, refused.json()["code"]) == (422, "name_invalid")
    made = await admin.post("/v1/object", json={"class": str(CLASS_EDGE_CLUSTER)})
    entry = f"/v1/app/{CONFIGURATION_APP}/object/{made.json()['uuid']}"
    written = await admin.put(entry, json={"name": name, "namespace": "edgewright"})
    assert (written.status_code, written.json()["code"]) == (422, "name_invalid")
    assert await centre.gateway.directory.find(name) is None


async def test_a_uuid_means_a_uuid_even_where_an_older_cluster_is_called_so(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = await centre.create("press-shop")
    with monkeypatch.context() as before:
        # What earlier versions let through.
        place = "edgewright.adapters.database.clusters.configuration_writes.check_new_cluster_name"
        before.setattr(place, lambda _name: None)
        impostor = await centre.create(str(victim))
        await centre.create(str(uuid4()))
    assert (await admin.get(f"/v1/cluster/{victim}")).json()["name"] == "press-shop"
    assert (await admin.get(f"/v1/cluster/{victim.hex}")).json()["name"] == "press-shop"
    changed = await admin.patch(f"/v1/cluster/{impostor}", json={"labels": {"line": "4"}})
    assert (changed.status_code, changed.json()["name"]) == (200, str(victim))


# --- the revision of a cluster ----------------------------------------------------------------------------------


async def _etag(admin: httpx.AsyncClient, cluster: UUID) -> str:
    etag: str = (await admin.get(f"/v1/cluster/{cluster}")).headers["ETag"]
    return etag


async def test_a_change_of_the_settings_alone_is_a_new_revision(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    made = await centre.create("press-shop", labels={"line": "4"})
    seen = await _etag(admin, made)
    path = f"/v1/cluster/{made}"
    assert (await admin.patch(path, json={"labels": {"line": "4"}})).headers["ETag"] == seen, "nothing has changed"
    assert (await admin.patch(path, json={"lease_seconds": 60}, headers={"If-Match": seen})).status_code == 200
    late = await admin.patch(path, json={"lease_seconds": 90}, headers={"If-Match": seen})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert (await centre.row(made)).settings.lease_seconds == 60
    seen = await _etag(admin, made)
    settings = (await centre.row(made)).settings.entry() | {"lease_seconds": 120}
    assert (await admin.put(f"/v1/app/{APP_CLUSTER_SETTINGS}/object/{made}", json=settings)).is_success
    assert await _etag(admin, made) != seen


async def test_labels_that_are_set_at_once_are_all_kept(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = await centre.create("press-shop")
    patches = [admin.patch(f"/v1/cluster/{made}", json={"labels": {f"l{number}": "x"}}) for number in range(4)]
    answers = await asyncio.gather(*patches)
    kept = {f"l{number}" for number, answer in enumerate(answers) if answer.status_code == 200}
    assert kept <= (await centre.row(made)).settings.labels.keys()
    assert len(kept) == 4
