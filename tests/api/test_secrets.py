"""Secrets: sealed byte for byte, committed once, never shown."""

import asyncio
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from cluster_states import remove_content
from gateway_centre import BASE_URL, STATUS_APP, Edge, GatewayCentre
from opening_edge import opening, saying
from sealing_keys import certificate_pem, open_envelope, private_key
from temporalio.testing import ActivityEnvironment

from activities.clusters import ClusterActivities
from activities.rendering import RenderInputs
from api.secret_writes import outcome_of
from edgewright.agent.opening import Opening, Stage
from edgewright.domain.cluster import EdgeHealth, Phase
from edgewright.errors import Conflict, Waiting
from edgewright.messages.steps import ReadWanted
from edgewright.ports.operators import Permission
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import SECRET_LIMIT, read_values

KEY = private_key()
CERTIFICATE = certificate_pem(
    KEY, not_before=datetime.now(UTC) - timedelta(days=1), not_after=datetime.now(UTC) + timedelta(days=100)
)
STATUS = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": CERTIFICATE}


@pytest.fixture
async def cluster(centre: GatewayCentre, admin: httpx.AsyncClient) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = await centre.create("sealed")
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=STATUS)).status_code == 201
    return made


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS)


def in_git(centre: GatewayCentre, cluster: UUID, namespace: str, name: str) -> dict[str, bytes]:
    """The values of a Secret, opened with the edge's key."""
    head = centre.git.head(cluster)
    assert head is not None
    document = centre.git.read(cluster, f"edo/secrets/{namespace}/{name}.yaml", at=head)
    if document is None:
        return {}
    label = f"{namespace}/{name}".encode()
    return {key: open_envelope(value.ciphertext, KEY, label) for key, value in read_values(document).items()}


def path(cluster: UUID, key: str = "password", name: str = "db", namespace: str = "default") -> str:
    return f"/v1/cluster/{cluster}/secret/{namespace}/{name}/{key}"


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", None])
async def test_the_bodys_bytes_are_sealed_whatever_the_content_type(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, content_type: str | None
) -> None:
    value = b'{"a": 1}\x00\xff\r\n'
    headers = {"Content-Type": content_type} if content_type else {}
    answer = await operator.put(path(cluster), content=value, headers=headers)
    assert answer.status_code == 204
    assert answer.headers["Edgewright-Commit"] == centre.git.head(cluster)
    assert in_git(centre, cluster, "default", "db") == {"password": value}


async def test_a_damaged_repository_is_called_damaged_and_loses_no_other_key(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    assert (await admin.put(path(cluster, key="user"), content=b"u")).status_code == 204
    head = centre.git.head(cluster)
    remove_content(centre.git.folder(cluster), "edo/secrets/default/db.yaml")
    for answer in (
        await admin.put(path(cluster), content=b"v"),
        await admin.put(path(cluster), content=b"v", params={"dryrun": "true"}),
        await admin.delete(path(cluster, key="user")),
        await admin.get(f"/v1/cluster/{cluster}/secret"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "repository_damaged")
        assert "the content of edo/secrets/default/db.yaml is missing" in answer.json()["detail"]
    assert centre.git.head(cluster) == head


async def test_an_empty_value_is_a_value(centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient) -> None:
    assert (await operator.put(path(cluster), content=b"")).status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"password": b""}


@pytest.mark.parametrize("query", ["dryrun", "dryrun=true", "dryrun=1"])
async def test_a_dry_run_stores_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, query: str
) -> None:
    before = centre.git.head(cluster)
    assert (await operator.put(f"{path(cluster)}?{query}", content=b"x")).status_code == 204
    assert centre.git.head(cluster) == before
    assert await centre.gateway.staging.pending(cluster) == []


async def test_dryrun_false_is_no_dry_run(centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient) -> None:
    assert (await operator.put(f"{path(cluster)}?dryrun=false", content=b"x")).status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"password": b"x"}


async def test_a_dry_run_that_is_not_understood_stores_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    for answer in (
        await operator.put(f"{path(cluster)}?dryrun=yes", content=b"x"),
        await operator.delete(f"{path(cluster)}?dryrun=on"),
    ):
        assert (answer.status_code, answer.json()["where"]) == (422, "query dryrun")
    assert centre.git.head(cluster) == before


async def test_what_cannot_take_a_secret_says_why(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    bare = await centre.create("bare")

    async def refused(cluster: UUID) -> tuple[int, str]:
        answer = await admin.put(path(cluster), content=b"x")
        return answer.status_code, answer.json()["code"]

    assert await refused(uuid4()) == (404, "cluster_unknown")
    assert await refused(bare) == (404, "no_edge_status")
    await admin.put(f"/v1/app/{STATUS_APP}/object/{bare}", json={"hosts": []})
    assert await refused(bare) == (503, "no_certificate")
    await admin.put(f"/v1/app/{STATUS_APP}/object/{bare}", json=STATUS)
    assert (await admin.put(path(bare), content=b"x")).status_code == 204

    assert (await admin.post(f"/v1/cluster/{bare}/pause", json={"reason": "freeze"})).status_code == 200
    assert await refused(bare) == (409, "paused")
    await admin.post(f"/v1/cluster/{bare}/resume")
    await admin.delete(f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{bare}")
    assert await refused(bare) == (409, "removed")
    await admin.delete(f"/v1/cluster/{bare}")
    assert await refused(bare) == (409, "deleting")


async def test_names_that_kubernetes_would_refuse_are_422(cluster: UUID, operator: httpx.AsyncClient) -> None:
    for place in ("Bad_NS/name/key", "ns/UPPER_Name/key", "ns/name/key%20with%20space", "ns/name/..k"):
        answer = await operator.put(f"/v1/cluster/{cluster}/secret/{place}", content=b"t")
        assert answer.status_code == 422, place


async def test_no_name_leads_out_of_the_secrets_folder(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    for place in (
        "fplus-edge/..%2f..%2f..%2fby-hand%2fpwn/k",
        "..%2f..%2fby-hand/pwn/k",
        "%2e%2e/%2e%2e/k",
        "ns/%2e%2e/k",
        "ns/a%2fb/k",
        "ns/a%5cb/k",
        "ns/a%00b/k",
    ):
        answer = await operator.put(f"/v1/cluster/{cluster}/secret/{place}", content=b"t")
        assert answer.status_code in {404, 422}, place
    assert centre.git.head(cluster) == before


async def test_a_secret_too_large_is_413_also_in_pieces(cluster: UUID, operator: httpx.AsyncClient) -> None:
    large = b"x" * (SECRET_LIMIT + 1)
    answer = await operator.put(path(cluster), content=large)
    assert (answer.status_code, answer.json()["code"]) == (413, "secret_too_large")

    async def pieces() -> object:
        for _ in range(17):
            yield large[: SECRET_LIMIT // 16]

    answer = await operator.put(path(cluster), content=pieces())
    assert (answer.status_code, answer.json()["code"]) == (413, "secret_too_large")


async def test_all_keys_of_one_secret_count_together(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    part = b"x" * (600 * 1024)
    assert (await operator.put(path(cluster, "one"), content=part)).status_code == 204
    answer = await operator.put(path(cluster, "two"), content=part)
    assert (answer.status_code, answer.json()["code"]) == (413, "secret_too_large")
    assert (await operator.put(path(cluster, "one"), content=part)).status_code == 204  # replaced, not added
    assert list(in_git(centre, cluster, "default", "db")) == ["one"]


async def test_the_same_idempotency_key_gets_the_first_commit(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await operator.put(path(cluster), content=b"one", headers=headers)
    await operator.put(path(cluster, "other"), content=b"two", headers=headers)
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert again.headers["Edgewright-Commit"] == first.headers["Edgewright-Commit"]
    assert in_git(centre, cluster, "default", "db") == {"password": b"one", "other": b"two"}


async def test_somebody_elses_idempotency_key_is_another_key(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await operator.put(path(cluster), content=b"one", headers=headers)
    somebody = await centre.operator(Permission.SECRETS)
    second = await somebody.put(path(cluster), content=b"two", headers=headers)
    assert second.headers["Edgewright-Commit"] != first.headers["Edgewright-Commit"]
    assert in_git(centre, cluster, "default", "db") == {"password": b"two"}


async def test_an_unconfirmed_commit_is_found_with_the_same_key(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "late"}
    centre.fleet.available = False
    answer = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "commit_unconfirmed")
    assert int(answer.headers["Retry-After"]) >= 1
    centre.fleet.available = True
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert again.status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"password": b"one"}


async def test_a_key_is_deleted_and_the_file_goes_with_the_last(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    await operator.put(path(cluster, "one"), content=b"1")
    await operator.put(path(cluster, "two"), content=b"2")
    assert (await operator.delete(path(cluster, "one"))).status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"two": b"2"}
    gone = await operator.delete(path(cluster, "two"), headers={"Idempotency-Key": "d"})
    assert gone.status_code == 204
    assert "edo/secrets/default/db.yaml" not in centre.git.list(cluster, "", at=centre.git.head(cluster) or "")
    again = await operator.delete(path(cluster, "two"))
    assert (again.status_code, again.json()["code"]) == (404, "secret_unknown")
    repeated = await operator.delete(path(cluster, "two"), headers={"Idempotency-Key": "d"})
    assert repeated.headers["Edgewright-Commit"] == gone.headers["Edgewright-Commit"]


def change(name: str, key: str, value: bytes | None) -> dict[str, object]:
    place = {"namespace": "default", "name": name, "key": key}
    return {**place, "delete": True} if value is None else {**place, "value_base64": b64encode(value).decode()}


async def test_many_changes_are_one_commit(centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient) -> None:
    await operator.put(path(cluster, "old", "one"), content=b"0")
    before = len(centre.git.log(cluster, limit=100))
    changes = [change("one", "a", b"1"), change("one", "old", None), change("two", "b", b"\xff2")]
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": changes})
    assert answer.status_code == 200
    assert answer.json() == {"commit": centre.git.head(cluster), "warnings": []}
    assert len(centre.git.log(cluster, limit=100)) == before + 1
    assert in_git(centre, cluster, "default", "one") == {"a": b"1"}
    assert in_git(centre, cluster, "default", "two") == {"b": b"\xff2"}


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (change("one", "absent", None), 404),
        (change("UPPER", "k", b"x"), 422),
        ({**change("one", "k", b"x"), "value_base64": "%%%"}, 422),
        ({**change("one", "k", b"x"), "delete": True}, 422),
        ({"namespace": "default", "name": "one", "key": "k"}, 422),
        (change("good", "a", b"again"), 422),
        (change("large", "k", b"x" * (SECRET_LIMIT + 1)), 413),
    ],
)
async def test_one_wrong_change_stops_all(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, wrong: dict[str, object], status: int
) -> None:
    before = centre.git.head(cluster)
    answer = await operator.post(
        f"/v1/cluster/{cluster}/secret", json={"changes": [change("good", "a", b"1"), wrong]}
    )
    assert answer.status_code == status, answer.text
    assert centre.git.head(cluster) == before


async def test_a_key_that_is_used_for_other_changes_is_refused(cluster: UUID, operator: httpx.AsyncClient) -> None:
    bulk, headers = f"/v1/cluster/{cluster}/secret", {"Idempotency-Key": "b"}
    first = await operator.post(bulk, json={"changes": [change("one", "a", b"1")]}, headers=headers)
    again = await operator.post(bulk, json={"changes": [change("one", "a", b"1")]}, headers=headers)
    assert again.json() == first.json()
    other = await operator.post(bulk, json={"changes": [change("two", "a", b"1")]}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_more_than_eight_mebibytes_at_once_are_refused(cluster: UUID, operator: httpx.AsyncClient) -> None:
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", content=b" " * (8 * 1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_the_list_tells_current_from_stale_and_no_value(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster, "old"), content=b"hunter2-old")
    another = certificate_pem(
        private_key(3072), not_before=datetime.now(UTC), not_after=datetime.now(UTC) + timedelta(days=9)
    )
    await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json={**STATUS, "kubeseal_cert": another})
    await admin.put(path(cluster, "new"), content=b"hunter2-new")
    answer = await admin.get(f"/v1/cluster/{cluster}/secret")
    items = {item["key"]: item for item in answer.json()["items"]}
    assert {key: item["state"] for key, item in items.items()} == {"old": "stale", "new": "current"}
    assert items["new"]["namespace"] == "default"
    assert items["new"]["sealed_at"]
    assert "hunter2" not in answer.text
    assert b64encode(b"hunter2-new").decode()[:8] not in answer.text


async def test_a_burst_of_writers_all_succeed_with_few_commits(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = len(centre.git.log(cluster, limit=100))
    answers = await asyncio.gather(*(operator.put(path(cluster, f"k{n}"), content=b"%d" % n) for n in range(24)))
    assert {answer.status_code for answer in answers} == {204}
    assert in_git(centre, cluster, "default", "db") == {f"k{n}": b"%d" % n for n in range(24)}
    assert len(centre.git.log(cluster, limit=100)) - before < 24


async def test_no_plaintext_reaches_log_problem_or_database(
    centre: GatewayCentre,
    cluster: UUID,
    operator: httpx.AsyncClient,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    marker = b"MARKED-s3cr3t-value"
    encoded = b64encode(marker).decode()
    answers = [
        await operator.put(path(cluster), content=marker),
        await operator.put(path(cluster, "bad%20key"), content=marker),
        await operator.post(f"/v1/cluster/{cluster}/secret", content=b'{"changes": "' + marker),
        await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": marker.decode()}),
        await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": [{"value_base64": encoded}]}),
        await operator.post(
            f"/v1/cluster/{cluster}/secret", json={"changes": [{**change("one", "k", marker), "extra": encoded}]}
        ),
    ]
    assert [answer.status_code for answer in answers] == [204, 422, 400, 422, 422, 422]
    shown = capfd.readouterr()
    seen = [shown.out, shown.err, caplog.text, *(answer.text for answer in answers)]
    assert not [text for text in seen if marker.decode() in text or encoded in text]
    async with centre.database.read() as connection:
        tables = await connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'")
        dump = ""
        for table in tables.scalars().all():
            dump += str((await connection.exec_driver_sql(f'SELECT * FROM "{table}"')).all())
    assert "password" in dump  # the name of the key is there: this is where a value would be seen
    assert marker.decode() not in dump
    assert encoded not in dump


async def test_a_bad_certificate_never_seals_an_empty_secret(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    """Defect 5 of the system before: a bad certificate stored an empty secret and answered 204."""
    bad = await centre.create("bad-certificate")
    agent = centre.client((await centre.register(bad, uid="uid-bad")).as_agent)
    taken = await agent.put("/v1/agent/status", json={**STATUS, "kubeseal_cert": "not a certificate"})
    assert taken.status_code == 204
    before = centre.git.head(bad)
    answer = await admin.put(path(bad), content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (503, "no_certificate")
    assert centre.git.head(bad) == before


async def test_a_secret_works_once_the_certificate_came(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    """Defect 8 of the system before: a cached 404 kept secrets refused for 20 s."""
    fresh = await centre.create("fresh")
    assert (await admin.put(path(fresh), content=b"x")).status_code == 404
    edge: Edge = await centre.register(fresh)
    reported = await centre.client(edge.as_agent).put("/v1/agent/status", json=STATUS)
    assert reported.status_code == 204
    assert (await admin.put(path(fresh), content=b"x")).status_code == 204
    await centre.project(fresh, phase=Phase.ACTIVE)
    assert in_git(centre, fresh, "default", "db") == {"password": b"x"}


async def test_a_request_is_committed_although_one_of_its_keys_was_overtaken() -> None:
    overtaken = StagedChange(
        request=uuid4(),
        cluster=uuid4(),
        generation=1,
        namespace="default",
        name="db",
        key="password",
        ciphertext=None,
        fingerprint=None,
        sealed_at=datetime.now(UTC),
        actor="token:test",
        state=StagedState.SUPERSEDED,
    )
    committed = replace(overtaken, key="user", state=StagedState.COMMITTED, commit="c0ffee")
    assert outcome_of([overtaken, committed]) == "c0ffee"
    with pytest.raises(Waiting):
        outcome_of([overtaken, replace(committed, state=StagedState.STAGED)])
    with pytest.raises(Conflict) as refusal:
        outcome_of([overtaken])
    assert refusal.value.code == "superseded"


async def test_keys_whose_annotations_the_edge_would_refuse_are_refused_at_the_door(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    changes = [
        {"namespace": "default", "name": "db", "key": f"{n:04d}-{'k' * 240}", "value_base64": ""} for n in range(1000)
    ]
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": changes})
    assert (answer.status_code, answer.json()["code"]) == (413, "secret_too_large")
    assert "annotations" in answer.json()["detail"]
    assert await centre.gateway.staging.pending(cluster) == []
    assert centre.git.head(cluster) == before


TAKEN = 'failed update: Resource "db" already exists and is not managed by SealedSecret'


async def on_edge(admin: httpx.AsyncClient, cluster: UUID, *openings: Opening) -> list[tuple[str, str, str | None]]:
    """Key, state on the edge and refusal of each, after the edge has said that."""
    answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=saying(STATUS, *openings))
    assert answer.is_success, answer.text
    return await listed(admin, cluster)


async def listed(admin: httpx.AsyncClient, cluster: UUID, **params: str) -> list[tuple[str, str, str | None]]:
    items = (await admin.get(f"/v1/cluster/{cluster}/secret", params=params)).json()["items"]
    return [(f"{each['name']}/{each['key']}", each["edge_state"], each["refusal"]) for each in items]


async def test_each_secret_says_how_far_it_is_on_the_edge(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    assert (await admin.put(path(cluster), content=b"v")).status_code == 204
    assert await listed(admin, cluster) == [("db/password", "unknown", None)], "an agent that does not say"
    assert await on_edge(admin, cluster) == [("db/password", "sealed", None)]
    for stage, state in ((Stage.PENDING, "applied"), (Stage.OPENED, "opened")):
        now = opening(centre.git, cluster, stage)
        assert await on_edge(admin, cluster, now) == [("db/password", state, None)]
    now = opening(centre.git, cluster, Stage.REFUSED, TAKEN)
    assert await on_edge(admin, cluster, now) == [("db/password", "refused", TAKEN)]


async def test_what_the_edge_says_of_another_sealing_is_not_said_of_this_one(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster), content=b"v")
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.OPENED))
    await admin.put(path(cluster, key="user"), content=b"u")
    assert {state for _, state, _ in await listed(admin, cluster)} == {"sealed"}, "the whole Secret is another one"
    now = opening(centre.git, cluster, Stage.OPENED)
    assert {state for _, state, _ in await on_edge(admin, cluster, now)} == {"opened"}
    await admin.put(path(cluster), content=b"v")  # the same value
    assert {state for _, state, _ in await listed(admin, cluster)} == {"sealed"}


async def test_one_secret_can_be_listed_alone(cluster: UUID, admin: httpx.AsyncClient) -> None:
    for namespace, name in (("default", "db"), ("default", "other"), ("else", "db")):
        await admin.put(path(cluster, namespace=namespace, name=name), content=b"v")
    assert len(await listed(admin, cluster)) == 3
    assert len(await listed(admin, cluster, name="db")) == 2
    assert len(await listed(admin, cluster, namespace="default")) == 2
    assert len(await listed(admin, cluster, namespace="default", name="db")) == 1
    assert await listed(admin, cluster, namespace="../..", name="*") == []


async def test_the_workflow_reads_a_refused_secret_as_unhealthy_until_it_is_opened(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    inputs = RenderInputs(centre.gateway.config, BASE_URL)
    reader = ClusterActivities(centre.gateway.clusters, centre.git, inputs, lambda _seconds: None)

    async def health() -> EdgeHealth | None:
        reading = await ActivityEnvironment().run(reader.read_wanted, ReadWanted(cluster=cluster))
        return reading.wanted.edge_health if reading.wanted is not None else None

    await admin.put(path(cluster), content=b"v")
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.REFUSED, TAKEN))
    said = await health()
    assert said is not None and said.reason == "SecretRefused"
    assert said.message == f"The secret default/db is not opened on the edge: {TAKEN}."
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.OPENED))
    said = await health()
    assert said is None or not said.message
