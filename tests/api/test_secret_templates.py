"""Type, labels and annotations of Secrets, through both doors."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP, GatewayCentre
from sealed_values import nobody_commits
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.operators import Permission
from edgewright.sealing import read_template, read_values

KEY = private_key()
NOW = datetime.now(UTC)
CERTIFICATE = certificate_pem(KEY, not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))
TLS = "kubernetes.io/tls"
REGISTRY = "kubernetes.io/dockerconfigjson"
MARKER = "MARKED-s3cr3t"


@pytest.fixture
async def cluster(centre: GatewayCentre, admin: httpx.AsyncClient) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = await centre.create("sealed")
    status = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": CERTIFICATE}
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=status)).status_code == 201
    return made


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS, Permission.READ)


def document(centre: GatewayCentre, cluster: UUID, name: str = "db") -> bytes | None:
    head = centre.git.head(cluster)
    assert head is not None
    return centre.git.read(cluster, f"edo/secrets/default/{name}.yaml", at=head)


def template(centre: GatewayCentre, cluster: UUID, name: str = "db") -> tuple[str, dict[str, str], dict[str, str]]:
    found = read_template(document(centre, cluster, name) or b"")
    return found.type, dict(found.labels), dict(found.annotations)


def path(cluster: UUID, key: str = "password", name: str = "db") -> str:
    return f"/v1/cluster/{cluster}/secret/default/{name}/{key}"


def change(key: str, value: str | None = "x", name: str = "db", namespace: str = "default") -> dict[str, Any]:
    place = {"namespace": namespace, "name": name, "key": key}
    return (
        {**place, "delete": True} if value is None else {**place, "value_base64": b64encode(value.encode()).decode()}
    )


def wish(name: str = "db", namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, **more}


async def post(
    client: httpx.AsyncClient, cluster: UUID, *changes: dict[str, Any], secrets: list[dict[str, Any]] | None = None
) -> httpx.Response:
    body = {"changes": list(changes), **({} if secrets is None else {"secrets": secrets})}
    return await client.post(f"/v1/cluster/{cluster}/secret", json=body)


async def test_the_query_of_one_value_gives_its_secret_type_labels_and_annotations(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    query = {
        "type": "kubernetes.io/basic-auth",
        "label": ["app=press", "app.kubernetes.io/part-of="],
        "annotation": ["example.com/note=a=b, and more"],
    }
    assert (await operator.put(path(cluster), content=b"x", params=query)).status_code == 204
    expected = (
        "kubernetes.io/basic-auth",
        {"app": "press", "app.kubernetes.io/part-of": ""},
        {"example.com/note": "a=b, and more"},
    )
    assert template(centre, cluster) == expected
    assert (await operator.put(path(cluster, "username"), content=b"u")).status_code == 204
    assert (await operator.delete(path(cluster))).status_code == 204
    assert template(centre, cluster) == expected
    assert list(read_values(document(centre, cluster) or b"")) == ["username"]
    later = {"label": ["app-", "site=sheffield"]}
    assert (await operator.put(path(cluster, "username"), content=b"u", params=later)).status_code == 204
    assert template(centre, cluster)[1] == {"app.kubernetes.io/part-of": "", "site": "sheffield"}


async def test_many_values_give_their_secrets_what_the_type_needs_in_one_commit(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = len(centre.git.log(cluster, limit=100))
    answer = await post(
        operator,
        cluster,
        change("tls.crt", "cert", "web"),
        change("tls.key", "key", "web"),
        change("k"),
        secrets=[wish("web", type=TLS, labels={"app": "web"}, annotations={"note": "n", "gone": None})],
    )
    assert answer.status_code == 200, answer.text
    assert len(centre.git.log(cluster, limit=100)) == before + 1
    assert template(centre, cluster, "web") == (TLS, {"app": "web"}, {"note": "n"})
    assert template(centre, cluster) == ("Opaque", {}, {})
    values = read_values(document(centre, cluster, "web") or b"")
    opened = {key: open_envelope(value.ciphertext, KEY, b"default/web") for key, value in values.items()}
    assert opened == {"tls.crt": b"cert", "tls.key": b"key"}


async def test_the_list_tells_what_secrets_are_besides_their_keys(cluster: UUID, operator: httpx.AsyncClient) -> None:
    query = {"type": "example.com/t", "label": "a=1", "annotation": "b=2"}
    await operator.put(path(cluster), content=b"x", params=query)
    await operator.put(path(cluster, name="plain"), content=b"x")
    listed = (await operator.get(f"/v1/cluster/{cluster}/secret")).json()
    assert listed["secrets"] == [
        wish("db", type="example.com/t", labels={"a": "1"}, annotations={"b": "2"}, edge_state="unknown"),
        wish("plain", type="Opaque", labels={}, annotations={}, edge_state="unknown"),
    ]
    assert {item["name"] for item in listed["items"]} == {"db", "plain"}


async def test_the_type_of_a_secret_that_is_there_cannot_be_changed_until_it_was_deleted(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204
    for answer in (
        await operator.put(path(cluster), content=b"x", params={"type": "example.com/t"}),
        await operator.put(path(cluster), content=b"x", params={"type": "example.com/t", "dryrun": "true"}),
        await post(operator, cluster, change("password", None), change("k"), secrets=[wish(type="example.com/t")]),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "secret_type_immutable")
        assert "Delete the Secret" in answer.json()["hint"]
    assert (await operator.put(path(cluster), content=b"x", params={"type": "Opaque"})).status_code == 204
    assert (await operator.delete(path(cluster))).status_code == 204
    assert (await operator.put(path(cluster), content=b"x", params={"type": "example.com/t"})).status_code == 204
    assert template(centre, cluster)[0] == "example.com/t"


async def applied(centre: GatewayCentre, cluster: UUID, commit: str | None) -> None:
    """The edge says so."""
    row = await centre.row(cluster)
    await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, row.generation, observed_revision=commit)])


async def test_another_type_waits_until_the_edge_has_applied_the_deletion(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    """The controller cannot change the type of a Secret, and would go on with the old value."""
    query = {"type": "example.com/t"}

    async def outcome(more: dict[str, str] | None = None) -> tuple[int, str]:
        answer = await operator.put(path(cluster), content=b"x", params=more)
        return answer.status_code, answer.json()["code"] if answer.content else ""

    await applied(centre, cluster, centre.git.head(cluster))
    assert await outcome() == (204, "")
    assert (await operator.delete(path(cluster))).status_code == 204
    [removal] = centre.git.log(cluster, limit=1)
    assert "\nEdgewright-Removed-Keys: default/db\n" in removal.message, "the centre knows the commit by that line"
    assert await outcome(query) == (409, "secret_type_immutable"), "the edge may have fetched what came between"
    assert await outcome() == (204, ""), "of the same type, it can come back at once"
    await applied(centre, cluster, centre.git.head(cluster))
    assert (await operator.delete(path(cluster))).status_code == 204
    assert await outcome(query) == (409, "secret_type_immutable"), "the edge has it"
    assert (await operator.put(path(cluster, name="other"), content=b"x", params=query)).status_code == 204
    await applied(centre, cluster, centre.git.head(cluster))
    assert await outcome(query) == (204, "")
    assert (await operator.delete(path(cluster))).status_code == 204
    assert await outcome() == (409, "secret_type_immutable"), "no type is a type, too"
    await applied(centre, cluster, "b" * 40)
    assert await outcome() == (409, "secret_type_immutable"), "a commit that is nowhere tells nothing"


async def test_a_key_that_the_type_needs_is_neither_left_out_nor_deleted_alone(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    half = await operator.put(path(cluster, "tls.crt"), content=b"x", params={"type": TLS})
    assert (half.status_code, half.json()["code"]) == (422, "secret_keys_missing")
    assert "tls.key" in half.json()["detail"]
    pair = [change("tls.crt"), change("tls.key")]
    assert (await post(operator, cluster, *pair, secrets=[wish(type=TLS)])).status_code == 200
    before = centre.git.head(cluster)
    alone = await operator.delete(path(cluster, "tls.key"))
    assert (alone.status_code, alone.json()["code"]) == (422, "secret_keys_missing")
    assert centre.git.head(cluster) == before
    both = await post(operator, cluster, change("tls.crt", None), change("tls.key", None))
    assert both.status_code == 200
    assert document(centre, cluster) is None


NO_JSON_OBJECTS = ("", MARKER, "[1]", "null", '{"auths": NaN}', "[" * 100_000, '{"a": "' + MARKER, "\ufeff{}")


@pytest.mark.parametrize("value", NO_JSON_OBJECTS, ids=range(len(NO_JSON_OBJECTS)))
async def test_a_docker_config_that_is_no_json_is_refused_and_never_shown(
    cluster: UUID, operator: httpx.AsyncClient, value: str, capfd: pytest.CaptureFixture[str]
) -> None:
    query = {"type": REGISTRY}
    good = b'{"auths": {"registry.example.com": {"auth": "dTpw"}}}'
    assert (await operator.put(path(cluster, ".dockerconfigjson"), content=good, params=query)).status_code == 204
    for more in ({}, query):
        params = {**more, "allow_empty": "true"}
        answer = await operator.put(path(cluster, ".dockerconfigjson"), content=value.encode(), params=params)
        assert (answer.status_code, answer.json()["code"]) == (422, "secret_value_invalid")
        assert MARKER not in answer.text
    shown = capfd.readouterr()
    assert MARKER not in shown.out + shown.err
    other = await operator.put(path(cluster, "note"), content=value.encode(), params={"allow_empty": "true"})
    assert other.status_code == 204, "another key of the same Secret may hold anything"


async def test_bytes_that_are_no_text_are_no_docker_config(cluster: UUID, operator: httpx.AsyncClient) -> None:
    answer = await operator.put(path(cluster, ".dockerconfigjson"), content=b"\xff{}", params={"type": REGISTRY})
    assert (answer.status_code, answer.json()["code"]) == (422, "secret_value_invalid")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"type": "kubernetes.io/service-account-token"}, "secret_type_invalid"),
        ({"type": ""}, "secret_type_invalid"),
        ({"label": "edgewright.dev/x=1"}, "secret_metadata_reserved"),
        ({"label": "sealedsecrets.bitnami.com/sealed-secrets-key=active"}, "secret_metadata_reserved"),
        ({"annotation": "kustomize.toolkit.fluxcd.io/prune=disabled"}, "secret_metadata_reserved"),
        ({"label": "meta.helm.sh/x-"}, "secret_metadata_reserved"),
        ({"label": "a=b c"}, "secret_label_invalid"),
        ({"annotation": "a=\x01"}, "secret_annotation_invalid"),
        ({"label": "a"}, "request_invalid"),
        ({"label": ["a=1", "a=2"]}, "request_invalid"),
        ({"label": [f"l{n}=1" for n in range(65)]}, "request_invalid"),
    ],
    ids=str,
)
async def test_what_no_secret_may_have_is_refused_at_both_doors(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, query: dict[str, Any], code: str
) -> None:
    before = centre.git.head(cluster)
    answer = await operator.put(path(cluster), content=b"x", params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    if code != "request_invalid":
        named: dict[str, Any] = {"type": query["type"]} if "type" in query else {}
        named |= {
            member: dict([text.split("=", 1) if "=" in text else (text[:-1], None)])
            for what, member in (("label", "labels"), ("annotation", "annotations"))
            if (text := query.get(what))
        }
        secret = wish(**named)
        answer = await post(operator, cluster, change("k"), secrets=[secret])
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert centre.git.head(cluster) == before
    assert (await centre.ports.staging.pending(cluster)).changes == []


@pytest.mark.parametrize(
    "secrets",
    [
        [wish("other", labels={"a": "1"})],
        [wish(labels={"a": "1"}), wish(labels={"b": "1"})],
        [wish(labels={"a": 1})],
        [wish(labels={f"l{n}": "1" for n in range(65)})],
        [wish(kind="x")],
    ],
    ids=["without a key", "twice", "no text", "too many", "unknown"],
)
async def test_secrets_that_make_no_sense_are_refused(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, secrets: list[dict[str, Any]]
) -> None:
    before = centre.git.head(cluster)
    answer = await post(operator, cluster, change("k"), secrets=secrets)
    assert answer.status_code == 422, answer.text
    assert centre.git.head(cluster) == before


async def test_a_reserved_namespace_gets_no_labels_either(cluster: UUID, operator: httpx.AsyncClient) -> None:
    deletion = change("k", None, namespace="kube-system")
    answer = await post(operator, cluster, deletion, secrets=[wish(namespace="kube-system", labels={"a": "1"})])
    assert (answer.status_code, answer.json()["code"]) == (422, "namespace_reserved")


async def test_a_dry_run_with_a_type_stores_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    query = {"type": "example.com/t", "label": "a=1", "dryrun": "true"}
    assert (await operator.put(path(cluster), content=b"x", params=query)).status_code == 204
    assert centre.git.head(cluster) == before


async def test_an_unconfirmed_request_keeps_its_template(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers, query = {"Idempotency-Key": "late"}, {"type": "example.com/t", "label": "a=1"}
    with nobody_commits(centre, cluster):
        late = await operator.put(path(cluster), content=b"one", headers=headers, params=query)
    assert late.status_code == 503
    assert (await operator.put(path(cluster), content=b"one", headers=headers, params=query)).status_code == 204
    assert template(centre, cluster) == ("example.com/t", {"a": "1"}, {})


def of(cluster: UUID, name: str = "db", namespace: str = "default") -> str:
    return f"/v1/cluster/{cluster}/secret/{namespace}/{name}"


async def test_labels_change_without_a_value_and_values_stay_sealed_as_they_are(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    query = {"label": ["app=press", "old=1"], "annotation": "note=n"}
    assert (await operator.put(path(cluster), content=b"x", params=query)).status_code == 204
    assert (await operator.put(path(cluster, "user"), content=b"u")).status_code == 204
    sealed = read_values(document(centre, cluster) or b"")
    before = len(centre.git.log(cluster, limit=100))
    body = {"labels": {"old": None, "site": "leeds"}, "annotations": {"example.com/owner": "Line 3"}}
    answer = await operator.patch(of(cluster), json=body)
    assert (answer.status_code, len(centre.git.log(cluster, limit=100))) == (204, before + 1)
    commit = centre.git.log(cluster, limit=1)[0]
    assert (answer.headers["Edgewright-Commit"], "Label and annotate default/db\n" in commit.message) == (
        commit.commit,
        True,
    )
    annotations = {"note": "n", "example.com/owner": "Line 3"}
    assert template(centre, cluster) == ("Opaque", {"app": "press", "site": "leeds"}, annotations)
    assert read_values(document(centre, cluster) or b"") == sealed
    listed = (await operator.get(f"/v1/cluster/{cluster}/secret")).json()
    assert [item["key"] for item in listed["items"]] == ["password", "user"]
    again = await operator.patch(of(cluster), json=body)
    assert (again.status_code, centre.git.log(cluster, limit=1)[0]) == (204, commit)


async def test_a_repeated_patch_finds_its_commit(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204
    keyed = {"Idempotency-Key": "label-1"}
    first = await operator.patch(of(cluster), json={"labels": {"a": "1"}}, headers=keyed)
    assert (await operator.patch(of(cluster), json={"labels": {"a": "2"}})).status_code == 204
    again = await operator.patch(of(cluster), json={"labels": {"a": "1"}}, headers=keyed)
    assert again.headers["Edgewright-Commit"] == first.headers["Edgewright-Commit"]
    assert template(centre, cluster)[1] == {"a": "2"}


async def test_a_changed_label_is_told_in_the_timeline_by_its_name(
    cluster: UUID, operator: httpx.AsyncClient
) -> None:
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204
    answer = await operator.patch(of(cluster), json={"labels": {"site": "leeds"}})
    events = (await operator.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    [told] = [event for event in events if event["kind"] == "secret.labelled"]
    assert told["detail"] == {
        "namespace": "default",
        "name": "db",
        "labels": "site",
        "annotations": "",
        "commit": answer.headers["Edgewright-Commit"],
    }


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "request_invalid"),
        ({"labels": {}}, 422, "request_invalid"),
        ({"labels": None}, 422, "request_invalid"),
        ({"values": {}}, 422, "request_invalid"),
        ({"labels": {"a b": "1"}}, 422, "secret_label_invalid"),
        ({"labels": {f"l{n}": "" for n in range(65)}}, 422, "request_invalid"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}, 422, "secret_metadata_reserved"),
        ({"annotations": {"sealedsecrets.bitnami.com/managed": "true"}}, 422, "secret_metadata_reserved"),
        ({"annotations": {"a": "x" * 70_000}}, 422, "secret_annotation_invalid"),
        ({"type": TLS}, 409, "secret_type_immutable"),
    ],
)
async def test_a_patch_that_a_put_would_not_take_is_refused_and_changes_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, body: dict[str, Any], status: int, code: str
) -> None:
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204
    before = document(centre, cluster)
    answer = await operator.patch(of(cluster), json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert document(centre, cluster) == before


async def test_only_a_secret_that_is_there_and_not_reserved_is_labelled(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    body = {"labels": {"a": "1"}}
    unknown = await operator.patch(of(cluster, "none"), json=body)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "secret_unknown")
    reserved = await operator.patch(of(cluster, namespace="kube-system"), json=body)
    assert (reserved.status_code, reserved.json()["code"]) == (422, "namespace_reserved")
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204
    before = document(centre, cluster)
    dry = await operator.patch(of(cluster), json=body, params={"dryrun": "true"})
    assert (dry.status_code, "Edgewright-Commit" in dry.headers, document(centre, cluster)) == (204, False, before)
    reader = await centre.operator(Permission.READ)
    assert (await reader.patch(of(cluster), json=body)).status_code == 403
    assert (await operator.delete(path(cluster))).status_code == 204
    assert (await operator.patch(of(cluster), json=body)).status_code == 404
