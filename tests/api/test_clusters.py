"""Clusters over REST: created, listed, shown, changed, deleted, recreated."""

from uuid import UUID, uuid4

import httpx
from gateway_centre import STATUS_APP, GatewayCentre, basic, bearer, fence_of
from sqlalchemy import delete

from edgewright.adapters.database.tables import idempotency_keys
from edgewright.domain.cluster import Desired, Phase, StepName
from edgewright.ports.operators import Permission

SECRET_CHANGE = {"namespace": "default", "name": "db", "key": "password", "value_base64": "eA=="}


async def forget_answers(centre: GatewayCentre) -> None:
    """As if each gateway had died between an act and its answer: the keys are free, the acts have happened."""
    async with centre.database.write() as connection:
        await connection.execute(delete(idempotency_keys))


async def test_a_created_cluster_is_shown_where_location_points(admin: httpx.AsyncClient) -> None:
    made = await admin.post("/v1/cluster", json={"name": "press-shop", "labels": {"site": "sheffield"}})
    assert made.status_code == 201
    shown = await admin.get(made.headers["Location"])
    body = shown.json()
    assert body["uuid"] == made.json()["uuid"]
    assert (body["name"], body["namespace"], body["labels"]) == ("press-shop", "edgewright", {"site": "sheffield"})
    assert body["ready"] is True
    assert body["phase"] == Phase.AWAITING_BOOTSTRAP
    assert body["links"]["repository"] == "http://127.0.0.1:8484/git/cluster/press-shop"
    assert body["links"]["temporal_ui"].endswith(f"/workflows/cluster-{body['uuid']}")
    assert body["revisions"]["desired"]
    assert shown.headers["ETag"].startswith('"')


async def test_a_cluster_that_no_workflow_has_seen_is_commissioning(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    centre.workflow.commissions = False
    body = (await admin.post("/v1/cluster", json={"name": "new"})).json()
    assert (body["phase"], body["ready"], body["as_of"]) == ("Commissioning", False, None)


async def test_creation_succeeds_while_temporal_is_away(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    centre.fleet.available = False
    made = await admin.post("/v1/cluster", json={"name": "patient"})
    assert made.status_code == 201
    assert await centre.gateway.directory.unfinished() == [UUID(made.json()["uuid"])]


async def test_a_name_is_taken_whatever_its_case(admin: httpx.AsyncClient) -> None:
    assert (await admin.post("/v1/cluster", json={"name": "Press"})).status_code == 201
    second = await admin.post("/v1/cluster", json={"name": "pRESS"})
    assert (second.status_code, second.json()["code"]) == (409, "name_taken")


async def test_bad_names_are_refused_at_once(admin: httpx.AsyncClient) -> None:
    for name in ("Bad Name/../x @", "", "-x", "x-", "a" * 64, "späti", "x\n"):
        refused = await admin.post("/v1/cluster", json={"name": name})
        assert (refused.status_code, refused.json()["code"]) == (422, "name_invalid"), name


async def test_an_unknown_field_is_named(admin: httpx.AsyncClient) -> None:
    refused = await admin.post("/v1/cluster", json={"name": "x", "namespcae": "y"})
    assert refused.status_code == 422
    assert refused.json()["where"] == "/namespcae"


async def test_a_chart_may_be_given_by_name(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = await admin.post("/v1/cluster", json={"name": "by-name", "chart": "edge-cluster"})
    assert made.status_code == 201
    assert UUID(made.json()["chart"])
    unknown = await admin.post("/v1/cluster", json={"name": "other", "chart": "nonsense"})
    assert (unknown.status_code, unknown.json()["code"], unknown.json()["where"]) == (422, "chart_unknown", "/chart")


async def test_the_same_idempotency_key_gets_the_first_answer(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await admin.post("/v1/cluster", json={"name": "once"}, headers=headers)
    again = await admin.post("/v1/cluster", json={"name": "once"}, headers=headers)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    other = await admin.post("/v1/cluster", json={"name": "twice"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_fresh_session_finds_what_an_older_one_has_asked_for(centre: GatewayCentre) -> None:
    root = await centre.token(Permission.CLUSTERS)
    answers = []
    for _ in range(2):
        session = (await centre.client(basic("user1", root.text)).post("/token")).json()["token"]
        client = centre.client(bearer(session))
        answers.append(await client.post("/v1/cluster", json={"name": "x"}, headers={"Idempotency-Key": "k3"}))
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["uuid"] == answers[1].json()["uuid"]


async def test_a_refused_request_does_not_use_up_its_idempotency_key(admin: httpx.AsyncClient) -> None:
    await admin.post("/v1/cluster", json={"name": "taken"})
    headers = {"Idempotency-Key": "k2"}
    body = {"name": "taken"}
    assert (await admin.post("/v1/cluster", json=body, headers=headers)).status_code == 409
    taken = (await admin.get("/v1/cluster", params={"name": "taken"})).json()["items"][0]["uuid"]
    assert (await admin.delete(f"/v1/cluster/{taken}")).status_code == 202
    assert (await admin.post("/v1/cluster", json=body, headers=headers)).status_code in {201, 409}


async def test_a_gateway_that_died_before_its_answer_is_not_made_up_for_twice(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "k3"}
    first = await admin.post("/v1/cluster", json={"name": "half"}, headers=headers)
    await forget_answers(centre)
    again = await admin.post("/v1/cluster", json={"name": "half"}, headers=headers)
    assert (again.status_code, again.json()["uuid"]) == (201, first.json()["uuid"])


async def test_a_recreation_whose_gateway_died_before_its_answer_happens_once(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("moved-once")
    path, headers, body = f"/v1/cluster/{cluster}/recreate", {"Idempotency-Key": "r1"}, {"new_hardware": True}
    first = await admin.post(path, json=body, headers=headers)
    await forget_answers(centre)
    again = await admin.post(path, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    row = await centre.row(cluster)
    assert (row.generation, row.commissioning) == (2, 2)
    assert (await admin.post(path, json=body, headers={"Idempotency-Key": "r2"})).json()["generation"] == 3


async def test_a_recreated_cluster_is_not_ready_before_its_workflow_has_looked(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    path = f"/v1/cluster/{await centre.create('moved')}"
    assert (await admin.get(path)).json()["ready"] is True
    centre.workflow.commissions = False
    assert (await admin.post(f"{path}/recreate")).json()["ready"] is False
    assert (await admin.get(path)).json()["ready"] is False
    assert (await admin.get(f"{path}/ready")).status_code == 503


async def test_the_list_pages_filters_and_leaves_out_what_is_gone(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    for name, site in (("a1", "x"), ("a2", "y"), ("b1", "x")):
        await centre.create(name, labels={"site": site})
    removed = await centre.create("gone")
    entry = f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{removed}"
    assert (await admin.delete(entry)).status_code == 204

    page = (await admin.get("/v1/cluster", params={"limit": 2})).json()
    rest = (await admin.get("/v1/cluster", params={"limit": 2, "after": page["next"]})).json()
    assert [item["name"] for item in [*page["items"], *rest["items"]]] == ["a1", "a2", "b1"]
    assert rest["next"] is None

    async def names(**params: str) -> list[str]:
        return [item["name"] for item in (await admin.get("/v1/cluster", params=params)).json()["items"]]

    assert await names(label="site=x") == ["a1", "b1"]
    assert await names(name="A") == ["a1", "a2"]
    assert await names(phase="Removed") == ["gone"]
    assert await names(ready="true", sort="-name") == ["b1", "a2", "a1"]
    assert await names(blocked="false", paused="false", healthy="unknown", sort="trouble") == ["a1", "a2", "b1"]
    assert await names(synced="True") == []
    assert (await admin.get("/v1/cluster", params={"healthy": "ill"})).json()["where"] == "query healthy"
    item = (await admin.get("/v1/cluster", params={"name": "a1"})).json()["items"][0]
    assert (item["blocked"], item["synced"], item["healthy"], item["paused"]) == (False, "Unknown", "Unknown", False)
    assert (await admin.get("/v1/cluster", params={"label": "site"})).status_code == 422
    assert (await admin.get("/v1/cluster", params={"sort": "shoe-size"})).status_code == 422
    assert (await admin.get("/v1/cluster", params={"limit": 501})).json()["where"] == "query limit"


async def test_unknown_clusters_and_texts_that_are_no_uuid_are_404(admin: httpx.AsyncClient) -> None:
    for path in (f"/v1/cluster/{uuid4()}", "/v1/cluster/not-a-uuid", f"/v1/cluster/{uuid4()}/ready"):
        answer = await admin.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_patch_merges_and_keeps_the_rest(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("patched", values={"a": 1, "b": {"c": 2}}, labels={"site": "x", "line": "4"})
    patch = {"values": {"b": {"c": 3}, "a": None}, "labels": {"line": None}, "lease_seconds": 60}
    answer = await admin.patch(f"/v1/cluster/{cluster}", json=patch)
    body = answer.json()
    assert answer.status_code == 200
    assert (body["values"], body["labels"], body["lease_seconds"]) == ({"b": {"c": 3}}, {"site": "x"}, 60)
    assert body["name"] == "patched"
    assert (await admin.get(f"/v1/cluster/{cluster}")).json()["values"] == {"b": {"c": 3}}


async def test_a_patch_of_an_older_revision_is_refused(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("raced")
    etag = (await admin.get(f"/v1/cluster/{cluster}")).headers["ETag"]
    path = f"/v1/cluster/{cluster}"
    assert (await admin.patch(path, json={"bare": True}, headers={"If-Match": etag})).status_code == 200
    late = await admin.patch(path, json={"bare": False}, headers={"If-Match": etag})
    assert late.status_code == 412
    assert (await admin.get(path)).json()["bare"] is True


async def test_a_cluster_keeps_its_name(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("first")
    refused = await admin.patch(f"/v1/cluster/{cluster}", json={"name": "second"})
    assert (refused.status_code, refused.json()["code"]) == (409, "name_immutable")


async def test_labels_that_no_label_can_be_are_refused(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    refused = await admin.post("/v1/cluster", json={"name": "labelled", "labels": {"bad key!": "x"}})
    assert refused.status_code == 422
    cluster = await centre.create("labelled")
    refused = await admin.patch(f"/v1/cluster/{cluster}", json={"lease_seconds": 1})
    assert refused.status_code == 422


async def test_a_deletion_asked_for_again_is_the_same_deletion(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("doomed")
    first = await admin.delete(f"/v1/cluster/{cluster}", params={"deadline": "2h", "workloads": "keep"})
    assert first.status_code == 202
    again = await admin.delete(f"/v1/cluster/{cluster}", params={"deadline": "2h", "workloads": "keep"})
    assert again.json()["deletion"] == first.json()["deletion"]
    assert first.json()["deletion"]["workloads"] == "keep"
    assert (await centre.row(cluster)).desired is Desired.DELETED


async def test_a_deletion_says_what_it_waits_for(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    alone, attached, revoked = [await centre.create(name) for name in ("alone", "attached", "revoked")]
    for number, cluster in enumerate((attached, revoked)):
        await centre.register(cluster, uid=f"uid-{number}")
    await admin.delete(f"/v1/cluster/{revoked}/credential")
    told = {}
    for cluster in (alone, attached, revoked):
        asked = await admin.delete(f"/v1/cluster/{cluster}")
        told[cluster] = asked.json()["deletion"]
        shown = (await admin.get(f"/v1/cluster/{cluster}")).json()
        assert shown["deletion"] == told[cluster]
        [event] = [
            one
            for one in (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
            if one["kind"] == "cluster.deletion_requested"
        ]
        edge = "" if cluster == alone else " The kind SealedSecret and the sealing keys stay on the edge."
        assert told[cluster]["edge"] == edge.strip()
        assert event["message"] == f"The deletion of {shown['name']} was requested; {told[cluster]['message']}.{edge}"
    assert (told[alone]["message"], told[alone]["deadline"]) == (
        "no edge is attached, so it does not wait",
        None,
    )
    assert told[attached]["message"].startswith("it waits for the edge until 20")
    assert told[attached]["deadline"]
    assert told[revoked]["message"] == (
        "the edge has no credential to answer with, so the deletion does not wait for it"
    )
    forced = await admin.delete(f"/v1/cluster/{attached}", params={"force": "true"})
    assert forced.json()["deletion"]["message"] == "it does not wait for the edge"
    assert forced.json()["deletion"]["deadline"] is None


async def test_a_deleted_cluster_answers_with_its_end_and_its_timeline(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("gone")
    path, entry = f"/v1/cluster/{cluster}", f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{cluster}"
    await admin.delete(path)
    await centre.steps.remove_central_entries(fence_of(await centre.row(cluster)), StepName.REMOVE_SETUP_STATUS)
    listed = (await admin.get("/v1/cluster", params={"phase": "Deleted"})).json()["items"]
    for refused in (
        await admin.get(path),
        await admin.get(f"{path}/ready"),
        await admin.get(f"{path}/status"),
        await admin.get(f"{path}/secret"),
        await admin.patch(path, json={"bare": True}),
        await admin.delete(path),
        await admin.post(f"{path}/undelete"),
        await admin.post(f"{path}/recreate"),
        await admin.post(f"{path}/accept"),
        await admin.post(f"{path}/pause"),
        await admin.post(f"{path}/registration-token"),
        await admin.delete(f"{path}/credential"),
        await admin.put(f"{path}/secret/default/db/password", content=b"x"),
        await admin.put(entry, json={"name": "gone", "namespace": "edgewright"}),
        await admin.put(entry, json={"bare": True}),
        await admin.patch(entry, json={"bare": True}),
        await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json={"hosts": []}),
        await admin.patch(f"/v1/app/{STATUS_APP}/object/{cluster}", json={"hosts": []}),
        await admin.post(f"{path}/reject"),
        await admin.post(f"{path}/resume"),
        await admin.post(f"{path}/reseal"),
        await admin.post(f"{path}/credential/rotate"),
        await admin.post(f"{path}/certificate", json={"fingerprint": "0" * 64}),
        await admin.post(f"{path}/bootstrap-url"),
        await admin.post(f"{path}/step/remove_workloads/skip", json={"reason": "x"}),
        await admin.post(f"{path}/step/remove_workloads/retry"),
        await admin.post(f"{path}/secret", json={"changes": [SECRET_CHANGE]}),
        await admin.delete(f"{path}/secret/default/db/password"),
        await admin.get(f"/uuid/{cluster}/info/refs", params={"service": "git-upload-pack"}),
        await admin.get(f"/uuid/{cluster}/info/refs", params={"service": "git-receive-pack"}),
        await admin.post(f"/uuid/{cluster}/git-receive-pack", content=b""),
    ):
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (410, "cluster_deleted"), refused.request.url
        assert problem["ended_at"] == listed[0]["deleted_at"]
        told = (await admin.get(problem["timeline"])).json()["items"]
        assert "cluster.deleted" in {event["kind"] for event in told}
    unknown = await admin.get(f"/v1/cluster/{uuid4()}")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "cluster_unknown")


async def test_a_deadline_that_is_none_is_refused(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("doomed")
    for deadline in ("soon", "-5", "31d", "1.5h", ""):
        refused = await admin.delete(f"/v1/cluster/{cluster}", params={"deadline": deadline})
        assert (refused.status_code, refused.json()["code"]) == (422, "duration_invalid"), deadline
    assert (await admin.delete(f"/v1/cluster/{cluster}", params={"workloads": "some"})).status_code == 422


async def test_a_deletion_can_be_taken_back(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("spared", values={"x": 1})
    await admin.delete(f"/v1/cluster/{cluster}")
    answer = await admin.post(f"/v1/cluster/{cluster}/undelete")
    assert (answer.status_code, answer.json()["desired"], answer.json()["values"]) == (200, "present", {"x": 1})


async def test_recreation_for_new_hardware_raises_the_generation_once_per_key(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("moved")
    path, headers = f"/v1/cluster/{cluster}/recreate", {"Idempotency-Key": "r"}
    first = await admin.post(path, json={"new_hardware": True, "values": {"v": 2}}, headers=headers)
    again = await admin.post(path, json={"new_hardware": True, "values": {"v": 2}}, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["generation"] == 2
    row = await centre.row(cluster)
    assert (row.generation, row.spec.values) == (2, {"v": 2})


async def test_a_recreation_without_a_body_keeps_the_hardware(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("again")
    assert (await admin.post(f"/v1/cluster/{cluster}/recreate")).status_code == 202
    assert (await centre.row(cluster)).generation == 1


async def test_each_write_nudges_the_workflow(centre: GatewayCentre) -> None:
    operator = await centre.operator(Permission.CLUSTERS)
    cluster = UUID((await operator.post("/v1/cluster", json={"name": "nudged"})).json()["uuid"])
    centre.fleet.nudged.clear()
    await operator.patch(f"/v1/cluster/{cluster}", json={"bare": True})
    await operator.delete(f"/v1/cluster/{cluster}")
    await operator.post(f"/v1/cluster/{cluster}/undelete")
    assert centre.fleet.nudged == [(cluster, False)] * 3
