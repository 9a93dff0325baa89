"""Secrets: sealed byte for byte, refused with a reason, never shown."""

from base64 import b64encode
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import httpx
import pytest
from cluster_states import remove_content
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre
from sealed_values import STATUS, change, in_git, path

from edgewright.domain.cluster import Phase
from edgewright.sealing import SECRET_LIMIT


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


async def test_an_empty_value_is_refused_unless_it_is_allowed(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    many = {"changes": [{"namespace": "default", "name": "db", "key": "password", "value_base64": ""}]}
    for answer in (
        await operator.put(path(cluster)),
        await operator.put(path(cluster), content=b"", params={"allow_empty": "false"}),
        await operator.put(path(cluster), content=b"", params={"dryrun": "true"}),
        await operator.post(f"/v1/cluster/{cluster}/secret", json=many),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "secret_empty")
        assert "?allow_empty=true" in answer.json()["hint"]
    odd = await operator.put(path(cluster), content=b"", params={"allow_empty": "perhaps"})
    assert (odd.status_code, odd.json()["where"]) == (422, "query allow_empty")
    assert centre.git.head(cluster) == before
    assert (await operator.put(path(cluster), content=b"", params={"allow_empty": "true"})).status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"password": b""}
    url = f"/v1/cluster/{cluster}/secret"
    assert (await operator.post(url, json=many, params={"allow_empty": "true"})).status_code == 200
    assert in_git(centre, cluster, "default", "db") == {"password": b""}


@pytest.mark.parametrize("query", ["dryrun", "dryrun=true", "dryrun=1"])
async def test_a_dry_run_stores_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, query: str
) -> None:
    before = centre.git.head(cluster)
    assert (await operator.put(f"{path(cluster)}?{query}", content=b"x")).status_code == 204
    assert centre.git.head(cluster) == before
    assert (await centre.ports.staging.pending(cluster)).changes == []


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


async def test_a_secret_is_not_called_as_the_file_that_flux_takes_for_instructions(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    bulk = {"changes": [change("db", "k", b"x"), change("kustomization", "k", b"x")]}
    for answer in (
        await operator.put(path(cluster, name="kustomization"), content=b"x"),
        await operator.put(f"{path(cluster, name='kustomization')}?dryrun", content=b"x"),
        await operator.post(f"/v1/cluster/{cluster}/secret", json=bulk),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "secret_name_invalid"), answer.text
        assert "kustomization.yaml" in answer.json()["hint"]
    assert centre.git.head(cluster) == before
    gone = await operator.delete(path(cluster, name="kustomization"))
    assert gone.status_code == 404, "one that an earlier version has stored can be deleted"


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

    async def pieces() -> AsyncIterator[bytes]:
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
    edge: EdgeCredentials = await centre.register(fresh)
    reported = await centre.client(edge.as_agent).put("/v1/agent/status", json=STATUS)
    assert reported.status_code == 204
    assert (await admin.put(path(fresh), content=b"x")).status_code == 204
    await centre.project(fresh, phase=Phase.ACTIVE)
    assert in_git(centre, fresh, "default", "db") == {"password": b"x"}


async def test_keys_whose_annotations_the_edge_would_refuse_are_refused_at_the_door(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    changes = [
        {"namespace": "default", "name": "db", "key": f"{n:04d}-{'k' * 240}", "value_base64": ""} for n in range(1000)
    ]
    answer = await operator.post(
        f"/v1/cluster/{cluster}/secret", json={"changes": changes}, params={"allow_empty": "true"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "secret_too_large")
    assert "annotations" in answer.json()["detail"]
    assert (await centre.ports.staging.pending(cluster)).changes == []
    assert centre.git.head(cluster) == before
