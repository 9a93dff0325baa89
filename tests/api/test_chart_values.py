"""Values that the chart of a cluster would not take are refused at each door, before an edge is given them."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, GatewayCentre

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.wellknown import (
    APP_HELM_CHART_TEMPLATE,
    CLASS_EDGE_CLUSTER,
    CLASS_HELM_CHART,
    OBJECT_DEFAULT_CHART,
    REPOSITORY_HELM_CHARTS,
)
from edgewright.ports.git_server import CommitMessage

SCHEMA = "edge-cluster/values.schema.json"
TEMPLATE = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{OBJECT_DEFAULT_CHART}"
NO_SUCH_VALUE = "there is no such value."
MISFITS = [
    ({"sealed-secrets": {"enabled": "s3cr3t"}}, "/sealed-secrets/enabled", "has to be true or false."),
    ({"sealed-secret": {"enabled": False}}, "/sealed-secret", NO_SUCH_VALUE),
    ({"sealed-secrets": {"enabld": "s3cr3t"}}, "/sealed-secrets/enabld", NO_SUCH_VALUE),
    ({"sealed-secrets": {"image": {"repo": "s3cr3t"}}}, "/sealed-secrets/image/repo", NO_SUCH_VALUE),
    ({"cluster": {"site": "s3cr3t"}}, "/cluster/site", NO_SUCH_VALUE),
    ({"cluster": {"organisation": ""}}, "/cluster/organisation", "must not be empty."),
    ({"global": ["s3cr3t"]}, "/global", "has to be an object."),
]


@pytest.fixture(autouse=True)
def published(centre: GatewayCentre) -> None:
    publish_charts(centre.git, charts_path(), SealedSecretsChart())


def push(centre: GatewayCentre, files: Mapping[str, bytes | None]) -> None:
    """What an administrator of the installation does to the charts."""
    head = centre.git.head(REPOSITORY_HELM_CHARTS)
    message = CommitMessage(subject="Our own", actor="test")
    centre.git.commit(REPOSITORY_HELM_CHARTS, files, message, expected_head=head)


async def new_object(admin: httpx.AsyncClient, klass: UUID = CLASS_EDGE_CLUSTER) -> UUID:
    answer = await admin.post("/v1/object", json={"class": str(klass)})
    return UUID(answer.json()["uuid"])


def entry_of(cluster: UUID | str) -> str:
    return f"/v1/app/{CONFIGURATION_APP}/object/{cluster}"


@pytest.mark.parametrize(("values", "pointer", "reason"), MISFITS)
async def test_a_misfit_is_refused_at_every_door_in_words(
    centre: GatewayCentre, admin: httpx.AsyncClient, values: dict[str, Any], pointer: str, reason: str
) -> None:
    known, removed = await centre.create("known"), await centre.create("removed")
    await admin.delete(entry_of(removed))
    shown, entry, new = f"/v1/cluster/{known}", entry_of(known), entry_of(await new_object(admin))
    for refused in (
        await admin.post("/v1/cluster", json={"name": "new", "values": values}),
        await admin.patch(shown, json={"values": values}),
        await admin.post(f"{shown}/recreate", json={"values": values}),
        await admin.post(f"/v1/cluster/{removed}/recreate", json={"values": values}),
        await admin.put(new, json={"name": "new", "namespace": "edgewright", "values": values}),
        await admin.put(entry, json={"name": "known", "namespace": "edgewright", "values": values}),
        await admin.put(entry_of(removed), json={"name": "removed", "namespace": "edgewright", "values": values}),
        await admin.patch(entry, json={"values": values}),
    ):
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["where"]) == (422, "values_misfit", f"/values{pointer}")
        name = pointer[1:].replace("/", ".")
        assert problem["detail"] == f"These values do not fit the chart edge-cluster: {name}: {reason}"
        assert "s3cr3t" not in refused.text
    assert (await admin.get(new)).status_code == 404
    assert (await admin.get(shown)).json()["values"] == {}


async def test_a_name_that_is_nearly_right_is_suggested(admin: httpx.AsyncClient) -> None:
    refused = await admin.post("/v1/cluster", json={"name": "new", "values": {"sealed_secrets": {"enabled": False}}})
    assert refused.json()["hint"] == "Did you mean sealed-secrets?"
    refused = await admin.post("/v1/cluster", json={"name": "new", "values": {"sealed-secrets": {"enabld": False}}})
    assert refused.json()["hint"] == "Did you mean sealed-secrets.enabled?"


async def test_a_default_that_null_takes_away_is_missed(admin: httpx.AsyncClient) -> None:
    refused = await admin.post("/v1/cluster", json={"name": "new", "values": {"cluster": {"organisation": None}}})
    assert refused.json()["detail"].endswith("cluster.organisation: is missing.")


async def test_what_the_chart_takes_is_stored(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    values = {"global": {"any": ["thing"]}, "sealed-secrets": {"enabled": False, "resources": {"limits": None}}}
    cluster = await centre.create("fits", values=values)
    assert (await admin.patch(f"/v1/cluster/{cluster}", json={"values": {"global": {"more": 1}}})).status_code == 200


async def test_a_misfit_that_is_stored_stands_in_the_way_of_nothing_else(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    push(centre, {SCHEMA: None})
    cluster = await centre.create("old", values={"replicas": 2})
    publish_charts(centre.git, charts_path(), SealedSecretsChart())
    path, body = f"/v1/cluster/{cluster}", {"name": "old", "namespace": "edgewright", "values": {"replicas": 2}}
    assert (await admin.patch(path, json={"labels": {"site": "leeds"}, "bare": True})).status_code == 200
    assert (await admin.put(entry_of(cluster), json={**body, "bare": False})).status_code == 204
    assert (await admin.post(f"{path}/recreate", json={"bare": True})).status_code == 202
    worse = await admin.patch(path, json={"values": {"replica": 2}})
    assert (worse.status_code, worse.json()["where"]) == (422, "/values/replicas")
    assert (await admin.patch(path, json={"values": {"replicas": None}})).status_code == 200


async def test_a_template_with_a_misfit_that_is_stored_can_be_written_again_and_mended(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    push(centre, {SCHEMA: None})
    template = (await admin.get(TEMPLATE)).json()
    old = {**template, "values": {**template["values"], "replicas": 2}}
    assert (await admin.put(TEMPLATE, json=old)).status_code == 204
    publish_charts(centre.git, charts_path(), SealedSecretsChart())
    assert (await admin.put(TEMPLATE, json=old)).status_code == 204
    refused = await admin.post("/v1/cluster", json={"name": "new"})
    assert (refused.json()["code"], refused.json()["where"]) == ("values_misfit", "/values/replicas")
    assert "Helm chart template" in refused.json()["hint"]
    assert (await admin.put(TEMPLATE, json=template)).status_code == 204
    await centre.create("new")


async def test_the_schema_that_counts_is_the_one_at_the_head_of_the_charts(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    schema = json.loads((charts_path() / SCHEMA).read_text())
    schema["properties"]["replicas"] = {"type": "integer", "minimum": 1}
    push(centre, {SCHEMA: json.dumps(schema).encode()})
    assert (await admin.post("/v1/cluster", json={"name": "a", "values": {"replicas": 2}})).status_code == 201
    refused = await admin.post("/v1/cluster", json={"name": "b", "values": {"replicas": 0}})
    assert refused.json()["detail"].endswith("replicas: has to be 1 at least.")


@pytest.mark.parametrize(
    "schema",
    [
        b"{",
        b'{"type": 3}',
        b'{"$ref": "https://example.com/values.json"}',
        b'{"$ref": "#"}',
        b'{"properties": {"replicas": {"pattern": "(?=x)"}}}',
        b'{"$schema": "https://example.com/own-dialect", "type": "boolean"}',
        b'{"a": ' + b"[" * 100_000,
        b" " * 300_000,
        json.dumps({"$defs": {"a": {"items": {}}}, "allOf": [{"$ref": "#/$defs/a"}] * 30_000}).encode(),
    ],
)
async def test_a_schema_that_cannot_be_used_refuses_nothing(
    centre: GatewayCentre, admin: httpx.AsyncClient, schema: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    push(centre, {SCHEMA: schema})
    made = await admin.post("/v1/cluster", json={"name": "new", "values": {"replicas": "x"}})
    assert made.status_code == 201
    assert "chart values not checked" in capsys.readouterr().out


async def test_charts_that_the_centre_does_not_hold_are_not_asked(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    chart = await new_object(admin, CLASS_HELM_CHART)
    template = {"chart": "edge-cluster", "source": "site-charts", "values": {"own": 1}}
    place = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{chart}"
    assert (await admin.put(place, json=template)).status_code == 201
    await centre.create("elsewhere", chart=str(chart), values={"replicas": 2})


async def test_another_chart_brings_its_own_schema(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster, chart = await centre.create("moving"), await new_object(admin, CLASS_HELM_CHART)
    push(centre, {"broker/values.schema.json": b'{"required": ["port"]}', "broker/values.yaml": b"host: broker\n"})
    place = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{chart}"
    assert (await admin.put(place, json={"chart": "broker", "values": {}})).status_code == 201
    refused = await admin.patch(f"/v1/cluster/{cluster}", json={"chart": str(chart)})
    assert (refused.status_code, refused.json()["where"]) == (422, "/values/port")
    assert "Helm chart template" in refused.json()["hint"]
    fits = {"chart": str(chart), "values": {"port": 1883}}
    assert (await admin.patch(f"/v1/cluster/{cluster}", json=fits)).status_code == 200


async def test_the_schema_of_a_dependency_counts_at_every_door(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster, chart = await centre.create("moving"), await new_object(admin, CLASS_HELM_CHART)
    schema = b'{"properties": {"port": {"type": "integer"}}, "additionalProperties": false}'
    push(centre, {"broker/Chart.yaml": b"name: broker\ndependencies: [{name: mqtt, condition: mqtt.on}]\n"})
    push(centre, {"broker/charts/mqtt/Chart.yaml": b"name: mqtt", "broker/charts/mqtt/values.schema.json": schema})
    template = {"chart": "broker", "values": {"mqtt": {"port": "s3cr3t"}}}
    place = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{chart}"
    refused = await admin.put(place, json=template)
    assert (refused.status_code, refused.json()["where"]) == (422, "/values/mqtt/port")
    assert (await admin.put(place, json={"chart": "broker", "values": {}})).status_code == 201
    misfits: list[dict[str, Any]] = [{"mqtt": {"prt": 1}}, {"mqtt": []}]
    for values in misfits:
        refused = await admin.patch(f"/v1/cluster/{cluster}", json={"chart": str(chart), "values": values})
        assert (refused.status_code, refused.json()["code"]) == (422, "values_misfit")
    off = {"chart": str(chart), "values": {"mqtt": {"on": False, "port": "x"}}}
    assert (await admin.patch(f"/v1/cluster/{cluster}", json=off)).status_code == 200


async def test_a_template_that_no_cluster_could_use_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    template = (await admin.get(TEMPLATE)).json()
    misspelt = {**template, "values": {**template["values"], "sealedSecrets": {"enabled": True}}}
    refused = await admin.put(TEMPLATE, json=misspelt)
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (422, "values_misfit")
    assert problem["where"] == "/values/sealedSecrets"
    assert (await admin.get(TEMPLATE)).json() == template


async def test_a_template_may_leave_values_to_its_clusters(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    template = (await admin.get(TEMPLATE)).json()
    del template["values"]["cluster"]["organisation"]
    assert (await admin.put(TEMPLATE, json=template)).status_code == 204
    refused = await admin.post("/v1/cluster", json={"name": "new"})
    assert refused.json()["detail"].endswith("cluster.organisation: must not be empty.")
    await centre.create("own", values={"cluster": {"organisation": "Own"}})


async def test_what_is_wrong_otherwise_is_said_first(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    misfit = {"replicas": 1}
    unknown = await admin.post("/v1/cluster", json={"name": "x", "values": misfit, "chart": str(uuid4())})
    assert unknown.json()["code"] == "chart_unknown"
    entry = entry_of(await new_object(admin))
    no_name = await admin.put(entry, json={"namespace": "edgewright", "values": misfit})
    assert no_name.json()["code"] == "schema_violation"
    undeliverable = await admin.post("/v1/cluster", json={"name": "x", "values": {**misfit, "a": "\u0085"}})
    assert undeliverable.json()["code"] == "values_undeliverable"
