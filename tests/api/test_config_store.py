"""The Config Store, as ACS clients use it; and what entries of clusters mean."""

from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, SETUP_STATUS_APP, STATUS_APP, GatewayCentre

from edgewright.domain.cluster import Desired, Phase
from edgewright.domain.wellknown import (
    APP_BOOTSTRAP_SCRIPT,
    APP_CONFIG_SCHEMA,
    APP_EDGE_DEPLOYMENTS,
    APP_GIT_REPOSITORY,
    APP_HELM_CHART_TEMPLATE,
    APP_INSTALLATION,
    APP_KUBERNETES_TEMPLATE,
    APP_SPARKPLUG_ADDRESS,
    CLASS_APPLICATION,
    CLASS_CLASS,
    CLASS_KUBERNETES_TEMPLATE,
    OBJECT_BOOTSTRAP_SCRIPT,
    OBJECT_DEFAULT_CHART,
    SERVICE_CLUSTER_MANAGER,
)
from edgewright.ports.operators import Permission

EDGE_CLUSTER = "f24d354d-abc1-4e32-98e1-0667b3e40b61"
SETTINGS_APP = "020f8fa8-2079-43e8-94e9-3bf0e60f449a"
INFO_APP = "64a8bfa9-7772-45c4-9d1a-9e6290690957"
FLUX_APP = "72804a19-636b-4836-b62b-7ad1476f2b86"


async def new_object(admin: httpx.AsyncClient, version: str = "v2") -> str:
    answer = await admin.post(f"/{version}/object", json={"class": EDGE_CLUSTER})
    assert answer.status_code == 201
    assert answer.json()["class"] == EDGE_CLUSTER
    uuid: str = answer.json()["uuid"]
    return uuid


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_cluster_lives_and_goes_by_entries_alone(
    centre: GatewayCentre, admin: httpx.AsyncClient, version: str
) -> None:
    uuid = await new_object(admin, version)
    entry = f"/{version}/app/{CONFIGURATION_APP}/object/{uuid}"
    status = f"/{version}/app/{SETUP_STATUS_APP}/object/{uuid}"
    body = {"name": "by-entries", "namespace": "fplus-edge"}

    assert (await admin.put(entry, json=body)).status_code == 201
    assert (await admin.get(status)).json()["ready"] is True
    assert (await admin.get(f"/v1/cluster/{uuid}/status")).json()["ready"] is True
    assert uuid in (await admin.get(f"/{version}/app/{CONFIGURATION_APP}/object")).json()

    assert (await admin.delete(entry)).status_code == 204
    assert (await admin.get(status)).status_code == 404
    assert (await admin.get(f"/v1/cluster/{uuid}/status")).status_code == 404
    assert (await admin.delete(entry)).status_code == 404
    row = await centre.row(UUID(uuid))
    assert (row.desired, row.projection.phase if row.projection else None) == (Desired.REMOVED, Phase.REMOVED)

    other = await admin.put(entry, json={**body, "name": "another"})
    assert (other.status_code, other.json()["code"]) == (409, "name_immutable")
    assert (await admin.put(entry, json=body)).status_code == 201
    assert (await admin.get(status)).json()["ready"] is True


async def test_both_doors_refuse_bad_names_at_once(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{CONFIGURATION_APP}/object/{await new_object(admin)}"
    refused = await admin.put(entry, json={"name": "Bad Name/../x @", "namespace": "edgewright"})
    assert (refused.status_code, refused.json()["code"]) == (422, "name_invalid")
    assert (await admin.get(entry)).status_code == 404


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"a": "x\u0085y"}, "/values/a"),
        ({"a": {"list": ["fine", "\ufffe"]}}, "/values/a/list/1"),
        ({"a": {"<<": 1}}, "/values/a/<<"),
        ({"a": {"b\u007f": 1}}, "/values/a"),
        ({"a/b": {"~": "\u0090"}}, "/values/a~1b/~0"),
    ],
)
async def test_values_that_yaml_cannot_carry_are_refused_at_both_doors_with_the_pointer(
    centre: GatewayCentre, admin: httpx.AsyncClient, values: dict[str, object], where: str
) -> None:
    known = await centre.create("known")
    shown, entry = f"/v1/cluster/{known}", f"/v1/app/{CONFIGURATION_APP}/object/{known}"
    new = f"/v1/app/{CONFIGURATION_APP}/object/{await new_object(admin)}"
    for refused in (
        await admin.post("/v1/cluster", json={"name": "new", "values": values}),
        await admin.patch(shown, json={"values": values}),
        await admin.post(f"{shown}/recreate", json={"values": values}),
        await admin.put(new, json={"name": "new", "namespace": "edgewright", "values": values}),
        await admin.put(entry, json={"name": "known", "namespace": "edgewright", "values": values}),
        await admin.patch(entry, json={"values": values}),
    ):
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["where"]) == (422, "values_undeliverable", where)
    assert (await admin.get(new)).status_code == 404
    assert (await admin.get(shown)).json()["values"] == {}


async def test_values_that_no_rendered_file_could_hold_are_refused_at_both_doors(admin: httpx.AsyncClient) -> None:
    deep: dict[str, object] = {}
    for _ in range(50):
        deep = {"a": deep}
    large = {"text": "x" * 800_000}
    for values in (deep, large):
        by_rest = await admin.post("/v1/cluster", json={"name": "new", "values": values})
        entry = f"/v1/app/{CONFIGURATION_APP}/object/{await new_object(admin)}"
        by_entry = await admin.put(entry, json={"name": "new", "namespace": "edgewright", "values": values})
        for refused in (by_rest, by_entry):
            assert (refused.status_code, refused.json()["code"]) == (422, "values_undeliverable")
            assert refused.json()["where"].startswith("/values")


async def test_an_entry_that_nobody_would_act_on_is_refused_with_a_sentence(admin: httpx.AsyncClient) -> None:
    other = str(uuid4())
    made = await admin.post("/v1/object", json={"class": str(CLASS_KUBERNETES_TEMPLATE), "uuid": other})
    assert made.status_code == 201
    for app, object_, body, where in (
        (APP_EDGE_DEPLOYMENTS, await new_object(admin), {"cluster": "x"}, None),
        (APP_GIT_REPOSITORY, str(uuid4()), {"path": "shared/mine", "pull": {}}, "/pull"),
        (APP_BOOTSTRAP_SCRIPT, OBJECT_BOOTSTRAP_SCRIPT, {"files": {}, "wrapper": "#!/bin/sh"}, "/wrapper"),
        (APP_BOOTSTRAP_SCRIPT, other, {"files": {}}, None),
        (APP_KUBERNETES_TEMPLATE, other, {"template": {}}, None),
    ):
        for entry in (f"/v1/app/{app}/object/{object_}", f"/v2/app/{app}/object/{object_}"):
            for refused in (await admin.put(entry, json=body), await admin.patch(entry, json=body)):
                problem = refused.json()
                assert (refused.status_code, problem["code"]) == (422, "entry_without_effect"), entry
                assert (problem.get("where"), bool(problem["hint"])) == (where, True)
    script = f"/v1/app/{APP_BOOTSTRAP_SCRIPT}/object/{OBJECT_BOOTSTRAP_SCRIPT}"
    assert (await admin.put(script, json={"files": {}, "hooks": {"before": "true"}})).status_code == 204


async def test_what_does_not_fit_the_schema_says_where(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{CONFIGURATION_APP}/object/{await new_object(admin)}"
    refused = await admin.put(entry, json={"name": "x", "namespace": "n", "bare": "yes"})
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["where"]) == (422, "schema_violation", "/bare")
    for body in (b"[]", b'"text"', b"5", b"null"):
        assert (await admin.put(entry, content=body)).status_code == 422


async def test_an_object_that_was_never_made_is_unknown(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{INFO_APP}/object/{uuid4()}"
    refused = await admin.put(entry, json={"name": "x"})
    assert (refused.status_code, refused.json()["code"]) == (404, "object_unknown")


async def test_an_object_of_another_class_is_refused(admin: httpx.AsyncClient) -> None:
    known = await new_object(admin)
    other = {"class": "97756c9a-38e6-4238-b78c-3df6f227a6c9", "uuid": known}
    refused = await admin.post("/v2/object", json=other)
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_class")
    again = await admin.post("/v2/object", json={"class": EDGE_CLUSTER, "uuid": known})
    assert (again.status_code, again.json()["uuid"]) == (200, known)
    entry = f"/v1/app/{CONFIGURATION_APP}/object/{FLUX_APP}"
    refused = await admin.put(entry, json={"name": "x", "namespace": "y"})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_class")


async def test_etags_guard_reads_and_writes(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{INFO_APP}/object/{await new_object(admin)}"
    made = await admin.put(entry, json={"name": "one"}, headers={"If-None-Match": "*"})
    assert made.status_code == 201
    etag = made.headers["ETag"]
    assert (await admin.put(entry, json={"name": "two"}, headers={"If-None-Match": "*"})).status_code == 412

    for known in (etag, f"W/{etag}", f'"other", {etag}', "*", etag.strip('"')):
        same = await admin.get(entry, headers={"If-None-Match": known})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", etag), known
    assert (await admin.get(entry, headers={"If-None-Match": '"other"'})).status_code == 200

    changed = await admin.put(entry, json={"name": "two"}, headers={"If-Match": etag})
    assert changed.status_code == 204
    assert changed.headers["ETag"] != etag
    assert (await admin.put(entry, json={"name": "x"}, headers={"If-Match": etag})).status_code == 412
    assert (await admin.patch(entry, json={"name": "x"}, headers={"If-Match": etag})).status_code == 412
    assert (await admin.delete(entry, headers={"If-Match": etag})).status_code == 412
    assert (await admin.get(entry)).json() == {"name": "two"}
    malformed = await admin.put(entry, json={"name": "x"}, headers={"If-Match": '"half'})
    assert (malformed.status_code, malformed.json()["code"]) == (400, "precondition_malformed")


async def test_an_equal_body_keeps_its_revision(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{INFO_APP}/object/{await new_object(admin)}"
    first = await admin.put(entry, json={"name": "same"})
    again = await admin.put(entry, json={"name": "same"})
    assert (again.status_code, again.headers["ETag"]) == (204, first.headers["ETag"])


async def test_a_patch_merges_whatever_content_type_the_client_says(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{SETTINGS_APP}/object/{await new_object(admin)}"
    configuration = entry.replace(SETTINGS_APP, CONFIGURATION_APP)
    await admin.put(configuration, json={"name": "merged", "namespace": "n", "values": {"a": {"b": 1, "c": 2}}})
    for content_type in ("application/merge-patch+json", "application/json", "text/plain", "application/json-patch"):
        answer = await admin.patch(
            configuration,
            content=b'{"values": {"a": {"b": null, "d": 3}}}',
            headers={"Content-Type": content_type},
        )
        assert answer.status_code == 204, content_type
    assert (await admin.get(configuration)).json()["values"] == {"a": {"c": 2, "d": 3}}


async def test_a_patch_of_nothing_makes_an_entry(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{INFO_APP}/object/{await new_object(admin)}"
    assert (await admin.patch(entry, json={"name": "made"})).status_code == 204
    assert (await admin.get(entry)).json() == {"name": "made"}


async def test_settings_are_an_entry_of_their_own(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("settled")
    entry = f"/v1/app/{SETTINGS_APP}/object/{cluster}"
    assert (await admin.put(entry, json={"labels": {"site": "x"}, "lease_seconds": 60})).status_code in {201, 204}
    shown = (await admin.get(f"/v1/cluster/{cluster}")).json()
    assert (shown["labels"], shown["lease_seconds"]) == ({"site": "x"}, 60)
    assert (await admin.put(entry, json={"lease_seconds": 1})).status_code == 422


async def test_the_setup_status_is_the_centres_own(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("honest")
    entry = f"/v1/app/{SETUP_STATUS_APP}/object/{cluster}"
    for answer in (
        await admin.put(entry, json={"ready": True}),
        await admin.patch(entry, json={"ready": False}),
        await admin.delete(entry),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "written_by_centre")


async def test_what_the_centre_allocates_is_not_written_by_clients(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("addressed")
    for app, body in (
        (APP_SPARKPLUG_ADDRESS, {"group_id": "Edgewright-somebody-else"}),
        (APP_GIT_REPOSITORY, {"path": "cluster/somebody-else"}),
    ):
        entry = f"/v1/app/{app}/object/{cluster}"
        before = (await admin.get(entry)).json()
        for answer in (
            await admin.put(entry, json=body),
            await admin.patch(entry, json=body),
            await admin.delete(entry),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "written_by_centre")
        assert (await admin.get(entry)).json() == before


async def test_a_schema_that_lets_no_schema_pass_cannot_be_written(admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{APP_CONFIG_SCHEMA}/object/{APP_CONFIG_SCHEMA}"
    assert (await admin.put(entry, json=False)).json()["code"] == "written_by_centre"
    assert (await admin.put(f"/v1/app/{APP_CONFIG_SCHEMA}/object/{INFO_APP}", json={})).status_code == 204


async def test_settings_stay_with_their_cluster(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    entry = f"/v1/app/{SETTINGS_APP}/object/{await centre.create('settled')}"
    answer = await admin.delete(entry)
    assert (answer.status_code, answer.json()["code"]) == (409, "settings_stay")


async def test_what_was_fixed_at_the_first_start_is_written_by_the_centre_alone(
    admin: httpx.AsyncClient,
) -> None:
    entry = f"/v1/app/{APP_INSTALLATION}/object/{SERVICE_CLUSTER_MANAGER}"
    for answer in (await admin.put(entry, json={"organisation": "Mallory"}), await admin.delete(entry)):
        assert (answer.status_code, answer.json()["code"]) == (403, "written_by_centre")


async def test_a_changed_template_nudges_the_clusters_that_use_it(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("templated")
    entry = f"/v1/app/{FLUX_APP}/object/{FLUX_APP}"
    template = (await admin.get(entry)).json()
    centre.fleet.nudged.clear()
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "{{ namespace }}"}}
    assert (await admin.put(entry, json={**template, "extra.yaml": [extra]})).status_code == 204
    assert centre.fleet.nudged == [(cluster, True)]


async def test_direct_members_come_and_go(admin: httpx.AsyncClient) -> None:
    member = f"/v2/class/{EDGE_CLUSTER}/direct/member/{await new_object(admin)}"
    assert (await admin.get(member)).status_code == 204
    klass = (await admin.post("/v2/object", json={"class": str(CLASS_CLASS)})).json()["uuid"]
    group = f"/v1/class/{klass}/direct/member/{await new_object(admin)}"
    assert (await admin.get(group)).status_code == 404
    assert (await admin.put(group)).status_code == 204
    assert (await admin.put(group)).status_code == 204
    assert (await admin.get(group)).status_code == 204
    assert (await admin.delete(group)).status_code == 204
    assert (await admin.get(group)).status_code == 404
    unknown = await admin.put(f"/v1/class/{klass}/direct/member/{uuid4()}")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "object_unknown")


async def test_readers_do_not_write(centre: GatewayCentre) -> None:
    reader = await centre.operator(Permission.READ)
    entry = f"/v1/app/{INFO_APP}/object/{FLUX_APP}"
    assert (await reader.get(entry)).status_code == 200
    for answer in (
        await reader.put(entry, json={"name": "x"}),
        await reader.patch(entry, json={"name": "x"}),
        await reader.delete(entry),
    ):
        assert answer.status_code == 403


async def test_an_entry_that_is_not_there_is_404(admin: httpx.AsyncClient) -> None:
    answer = await admin.get(f"/v1/app/{INFO_APP}/object/{uuid4()}")
    assert (answer.status_code, answer.json()["code"]) == (404, "entry_unknown")
    unknown = await admin.get(f"/v1/app/{uuid4()}/object")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "app_unknown")


async def test_the_schema_of_a_well_known_application_is_an_admins(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    clusters = await centre.operator(Permission.CLUSTERS, Permission.READ)
    known = f"/v1/app/{APP_CONFIG_SCHEMA}/object/{STATUS_APP}"
    schema = (await admin.get(known)).json()
    for attempt in (clusters.put(known, json=schema), clusters.patch(known, json={}), clusters.delete(known)):
        refused = await attempt
        assert (refused.status_code, refused.json()["code"]) == (403, "schema_needs_admin")
    assert (await admin.put(known, json=schema)).status_code == 204

    own = str(uuid4())
    assert (await clusters.post("/v1/object", json={"class": str(CLASS_APPLICATION), "uuid": own})).status_code == 201
    assert (await clusters.put(f"/v1/app/{APP_CONFIG_SCHEMA}/object/{own}", json={})).status_code == 201


async def test_a_pattern_that_would_stop_the_gateway_is_harmless(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    edge = await centre.register(await centre.create("edge"))
    known = f"/v1/app/{APP_CONFIG_SCHEMA}/object/{STATUS_APP}"
    assert (await admin.put(known, json={"properties": {"note": {"pattern": "^(a+)+$"}}})).status_code == 204
    answer = await centre.client(edge.as_agent).put("/v1/agent/status", json={"note": "a" * 5000 + "b"})
    assert (answer.status_code, answer.json()["code"]) == (422, "schema_violation")


async def test_an_event_of_a_changed_entry_names_its_fields_and_never_what_they_hold(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("press-shop")
    made = await admin.post("/v1/object", json={"class": str(CLASS_APPLICATION)})
    entry = f"/v1/app/{made.json()['uuid']}/object/{cluster}"
    first = {"name": "s3cr3t", "values": {"password": "s3cr3t", "port": 1}, "list": ["s3cr3t"]}
    second = {"name": "s3cr3t too", "values": {"password": "new s3cr3t", "port": 1}, "own": {"a/b": "s3cr3t"}}
    many = {**second, "values": {f"key-{number:03}": "s3cr3t" for number in range(100)}}
    for body in (first, second, many, ["s3cr3t"]):
        assert (await admin.put(entry, json=body)).is_success
    timeline = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    told = [each for each in timeline if each["kind"] == "entry.put"]
    assert [each["message"].split(f"{cluster} was ")[1].removesuffix(".") for each in told] == [
        "written",
        "changed: /list, /name, /own, /values/password",
        "changed: " + ", ".join(f"/values/key-{number:03}" for number in range(8)) + " and 94 more",
        "written",
    ]
    assert [each["detail"]["changed"] for each in told] == [0, 4, 102, 0]
    assert told[1]["detail"]["fields"] == "/list,/name,/own,/values/password"
    assert "s3cr3t" not in str(timeline)


async def test_an_event_of_a_changed_template_names_its_fields(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    entry = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{OBJECT_DEFAULT_CHART}"
    template = (await admin.get(entry)).json()
    changed = {**template, "values": {**template["values"], "password": "s3cr3t"}}
    assert (await admin.put(entry, json=changed)).is_success
    [told] = [each for each in await centre.ports.audit.events(after=0) if each.kind == "entry.put"]
    assert told.message.endswith(f"for {OBJECT_DEFAULT_CHART} was changed: /values/password.")
    assert "s3cr3t" not in str(told)
