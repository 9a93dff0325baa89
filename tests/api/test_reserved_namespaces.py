"""Namespaces whose Secrets steer the edge itself: nothing is sealed into them; what is there can be taken away."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
import pytest
import yaml
from flux_file import CONTROLLERS, flux_file, sha256_of
from gateway_centre import CONFIGURATION_APP, EdgeCredentials, GatewayCentre, bearer, fence_of
from pod_environment import variables_of
from resealing_edge import ResealingEdge, status, to_put

from edgewright.adapters.database.clusters import configuration_writes
from edgewright.agent.settings import SEALING_URL, read_settings
from edgewright.bootstrap import AgentPod
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.ports.operators import Permission

FILE = flux_file()
EARLIER = "edgewright/earlier"
"""A Secret that was sealed into the cluster's own namespace before that was refused."""
RESERVED = ("edgewright", "flux-system", "kube-system")
ATTACK = "edgewright-proxy/EDGEWRIGHT_AGENT_SEALING_URL"
PLANTED = {
    "HTTPS_PROXY": "http://proxy.example:3128",
    "EDGEWRIGHT_AGENT_SEALING_URL": "http://attacker.example:8080",
    "EDGEWRIGHT_AGENT_NAMESPACE": "attacker",
    "SSL_CERT_FILE": "/attacker.pem",
    "LD_PRELOAD": "/attacker.so",
    "PYTHONPATH": "/attacker",
}
"""What an attacker would have in the Secret with the proxies."""


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    """An edge whose own namespace is `edgewright`; it has reported its first sealing certificate."""
    edge = await centre.register(await centre.create("press-shop", namespace="edgewright"))
    await report(centre, edge, 1)
    return edge


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS, Permission.READ)


@pytest.fixture
async def earlier(centre: GatewayCentre, edge: EdgeCredentials) -> ResealingEdge:
    """The edge's controller, with a value of an earlier version in the cluster's own namespace."""
    await centre.ports.staging.stage(to_put(edge.cluster, EARLIER, {"password": b"s3cr3t"}, 1))
    await centre.workflow.commit(edge.cluster, [])
    controller = ResealingEdge(centre.git, edge.cluster)
    assert controller.opened(EARLIER) == {"password": b"s3cr3t"}
    return controller


async def report(centre: GatewayCentre, edge: EdgeCredentials, number: int) -> None:
    answer = await centre.client(edge.as_agent).put("/v1/agent/status", json=status(number))
    assert answer.status_code == 204, answer.text


async def import_flux(admin: httpx.AsyncClient, file: bytes) -> None:
    answer = await admin.put("/v1/flux", params={"sha256": sha256_of(file)}, content=file)
    assert answer.status_code == 200, answer.text


def place(cluster: UUID, namespace: str, rest: str = ATTACK) -> str:
    return f"/v1/cluster/{cluster}/secret/{namespace}/{rest}"


def change(namespace: str, name: str, value: bytes | None) -> dict[str, Any]:
    key = {"namespace": namespace, "name": name, "key": "password"}
    return {**key, "delete": True} if value is None else {**key, "value_base64": b64encode(value).decode()}


def refusal(answer: httpx.Response) -> tuple[int, str]:
    assert answer.is_error, f"answered with {answer.status_code}"
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("namespace", RESERVED)
async def test_every_door_refuses_a_reserved_namespace_and_stores_nothing(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, namespace: str
) -> None:
    before, many = centre.git.head(edge.cluster), f"/v1/cluster/{edge.cluster}/secret"
    both = {"changes": [change("press", "db", b"x"), change(namespace, "db", b"x")]}
    for answer in (
        await operator.put(place(edge.cluster, namespace), content=b"x"),
        await operator.put(place(edge.cluster, namespace), content=b"x", params={"dryrun": "true"}),
        await operator.post(many, json=both),
        await operator.post(many, json=both, params={"dryrun": "true"}),
    ):
        assert refusal(answer) == (422, "namespace_reserved")
        assert answer.json()["where"] == "namespace"
        assert f"namespace {namespace} " in answer.json()["detail"]
        assert "a namespace of your own workloads" in answer.json()["hint"]
    assert (await centre.ports.staging.pending(edge.cluster)).changes == []
    assert centre.git.head(edge.cluster) == before


@pytest.mark.parametrize("secret", ["edgewright-proxy", "edgewright-agent", "flux-secrets"])
async def test_where_workloads_live_beside_edgewright_only_its_own_secrets_are_refused(
    centre: GatewayCentre, operator: httpx.AsyncClient, secret: str
) -> None:
    """ACS keeps both in `fplus-edge`, and its clients seal what their workloads read there."""
    shared = await centre.register(await centre.create("paint-shop", namespace="fplus-edge"))
    await report(centre, shared, 1)
    assert (await operator.put(place(shared.cluster, "fplus-edge", "db/password"), content=b"x")).status_code == 204
    ours = place(shared.cluster, "fplus-edge", f"{secret}/HTTPS_PROXY")
    assert refusal(await operator.put(ours, content=b"x")) == (422, "namespace_reserved")


@pytest.mark.parametrize("namespace", ["kube-system", "flux-system"])
async def test_a_cluster_that_names_anothers_namespace_for_its_own_opens_nothing_of_it(
    centre: GatewayCentre, operator: httpx.AsyncClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:  # an earlier version took kube-system
        earlier.setattr(configuration_writes, "check_cluster_namespace", lambda _namespace: None)
        cluster = await centre.create("paint-shop", namespace=namespace)
    bold = await centre.register(cluster)
    await report(centre, bold, 1)
    wanted = place(bold.cluster, namespace, "db/password")
    assert refusal(await operator.put(wanted, content=b"x")) == (422, "namespace_reserved")


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "kube-more"])
async def test_no_door_puts_a_cluster_into_a_namespace_of_kubernetes(
    centre: GatewayCentre, admin: httpx.AsyncClient, namespace: str
) -> None:
    cluster = await centre.create("paint-shop")
    shown, entry = f"/v1/cluster/{cluster}", f"/v1/app/{CONFIGURATION_APP}/object/{cluster}"
    for answer in (
        await admin.post("/v1/cluster", json={"name": "line-4", "namespace": namespace}),
        await admin.patch(shown, json={"namespace": namespace}),
        await admin.post(f"{shown}/recreate", json={"namespace": namespace}),
        await admin.post(f"{shown}/recreate", json={"namespace": namespace, "new_hardware": True}),
        await admin.put(entry, json={"name": "paint-shop", "namespace": namespace}),
    ):
        assert refusal(answer) == (422, "namespace_reserved")
        assert answer.json()["where"] == "/namespace"
    assert [each["name"] for each in (await admin.get("/v1/cluster")).json()["items"]] == ["paint-shop"]
    assert (await centre.row(cluster)).spec.namespace == "edgewright"


async def test_a_cluster_of_an_earlier_version_keeps_its_namespace_of_kubernetes(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(configuration_writes, "check_cluster_namespace", lambda _namespace: None)
        cluster = await centre.create("paint-shop", namespace="kube-system")
    shown, entry = f"/v1/cluster/{cluster}", f"/v1/app/{CONFIGURATION_APP}/object/{cluster}"
    assert (await admin.patch(shown, json={"values": {"a": 1}})).status_code == 200
    assert (await admin.post(f"{shown}/recreate")).status_code == 202
    assert (await admin.post(f"{shown}/recreate", json={"new_hardware": True})).status_code == 202
    body = (await admin.get(entry)).json()
    assert (await admin.delete(entry)).status_code == 204
    assert (await admin.put(entry, json=body)).status_code == 201
    assert refusal(await admin.patch(shown, json={"namespace": "kube-public"})) == (422, "namespace_reserved")
    assert (await admin.patch(shown, json={"namespace": "edgewright"})).status_code == 200
    assert refusal(await admin.patch(shown, json={"namespace": "kube-system"})) == (422, "namespace_reserved")


async def test_the_namespace_of_the_flux_that_edges_get_is_reserved(
    edge: EdgeCredentials, operator: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    elsewhere = place(edge.cluster, "gitops")
    assert (await operator.put(elsewhere, content=b"x")).status_code == 204
    await import_flux(admin, FILE.replace(b"flux-system", b"gitops"))
    assert refusal(await operator.put(elsewhere, content=b"x")) == (422, "namespace_reserved")
    assert refusal(await operator.put(place(edge.cluster, "flux-system"), content=b"x"))[1] == "namespace_reserved"
    await import_flux(admin, FILE)
    assert (await operator.put(elsewhere, content=b"x")).status_code == 204


async def test_what_is_there_already_is_listed_and_can_be_deleted(
    edge: EdgeCredentials, operator: httpx.AsyncClient, earlier: ResealingEdge
) -> None:
    listed = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()["items"]
    assert [(each["namespace"], each["name"], each["key"]) for each in listed] == [
        ("edgewright", "earlier", "password")
    ]
    there = place(edge.cluster, "edgewright", "earlier/password")
    assert refusal(await operator.put(there, content=b"newer")) == (422, "namespace_reserved")
    assert (await operator.delete(there, params={"dryrun": "true"})).status_code == 204
    moved = {"changes": [change("press", "earlier", b"s3cr3t"), change("edgewright", "earlier", None)]}
    answer = await operator.post(f"/v1/cluster/{edge.cluster}/secret", json=moved)
    assert answer.status_code == 200, answer.text
    assert earlier.opened(EARLIER) == {}
    assert earlier.opened("press/earlier") == {"password": b"s3cr3t"}
    assert refusal(await operator.delete(there)) == (404, "secret_unknown")


async def test_what_is_there_already_is_resealed(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, earlier: ResealingEdge
) -> None:
    await report(centre, edge, 2)
    assert (await operator.post(f"/v1/cluster/{edge.cluster}/reseal", json={})).status_code == 202
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", json=earlier.body([EARLIER]))
    assert (answer.status_code, answer.json()["ignored"]) == (200, []), answer.text
    await centre.workflow.commit(edge.cluster, [])
    earlier.keys = [2]
    assert earlier.opened(EARLIER) == {"password": b"s3cr3t"}
    [listed] = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()["items"]
    assert listed["state"] == "current"


async def test_what_can_never_be_entered_again_is_given_up_by_deleting_it(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient
) -> None:
    lost = [SecretKey("default", "db", "password"), SecretKey("edgewright", "earlier", "password")]
    await centre.steps.record_reentry(fence_of(await centre.row(edge.cluster)), taken=lost)
    head = centre.git.head(edge.cluster)
    there = place(edge.cluster, "edgewright", "earlier/password")
    assert refusal(await operator.put(there, content=b"again")) == (422, "namespace_reserved")
    assert (await operator.delete(there)).status_code == 204
    assert refusal(await operator.delete(there)) == (404, "secret_unknown")
    assert refusal(await operator.delete(place(edge.cluster, "default", "db/password"))) == (404, "secret_unknown")
    listed = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()
    assert listed["must_reenter"] == ["default/db/password"]
    assert centre.git.head(edge.cluster) == head


async def test_what_can_be_entered_again_beside_edgewright_is_not_given_up(
    centre: GatewayCentre, operator: httpx.AsyncClient
) -> None:
    """In a namespace that Edgewright shares with workloads, only its own Secrets can never be entered again."""
    shared = await centre.register(await centre.create("paint-shop", namespace="fplus-edge"))
    await report(centre, shared, 1)
    lost = [SecretKey("fplus-edge", name, "password") for name in ("db", "edgewright-proxy")]
    await centre.steps.record_reentry(fence_of(await centre.row(shared.cluster)), taken=lost)
    theirs, ours = (place(shared.cluster, each.namespace, f"{each.name}/{each.key}") for each in lost)
    assert refusal(await operator.delete(theirs)) == (404, "secret_unknown")
    assert (await operator.delete(ours)).status_code == 204


async def test_a_secrets_token_cannot_have_the_agent_report_a_foreign_certificate(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    """The attack: EDGEWRIGHT_AGENT_SEALING_URL by way of the Secret with the proxies. Both steps of it fail."""
    edge = await centre.register(await centre.create("press-shop"))
    await report(centre, edge, 1)
    attacker = await centre.operator(Permission.SECRETS)
    answer = await attacker.put(place(edge.cluster, "edgewright"), content=b"http://attacker.example:8080")
    assert refusal(answer) == (422, "namespace_reserved")
    head = centre.git.head(edge.cluster)
    assert head and centre.git.list(edge.cluster, "edo/secrets", at=head) == ["edo/secrets/README.md"]

    await import_flux(admin, FILE)
    given = await environments(centre, edge, PLANTED)
    assert given.keys() == {"edgewright-agent", "edgewright-detach", *CONTROLLERS}
    for name, environment in given.items():
        assert environment.pop("RUNTIME_NAMESPACE", None) == ("flux-system" if name in CONTROLLERS else None)
        image = "registry.example.com/edgewright:1" if name == "edgewright-agent" else None
        assert environment.pop("EDGEWRIGHT_AGENT_RUNS", None) == image
        assert environment == {"HTTPS_PROXY": PLANTED["HTTPS_PROXY"]}
        assert read_settings(environment).sealing_url == SEALING_URL


async def test_no_manifest_takes_a_whole_secret_for_an_environment(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("press-shop")
    await import_flux(admin, FILE)
    served = "\n".join(await manifests(centre, cluster))
    assert served.count("kind: Deployment") == 2 * (2 + len(CONTROLLERS))
    assert "edgewright-proxy" in served
    assert "envFrom" not in served


async def manifests(centre: GatewayCentre, cluster: UUID) -> list[str]:
    """All that an edge applies: what the script fetches, and what is there for those who pipe nothing to a shell."""
    centre.offer(agent=AgentPod("registry.example.com/edgewright:1"))
    token = await centre.bootstrap_token(cluster)
    served = centre.client(bearer(token))
    answers = [await served.get(f"/v1/cluster/{cluster}/install/{part}") for part in ("agent", "flux")]
    by_hand = {"token": token, "format": "manifests"}
    answers.append(await centre.client().get(f"/v1/cluster/{cluster}/bootstrap", params=by_hand))
    assert {answer.status_code for answer in answers} == {200}
    return [answer.text for answer in answers]


async def environments(
    centre: GatewayCentre, edge: EdgeCredentials, planted: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """What the container of each Deployment is given, by its name, where the Secret with the proxies holds this."""
    data = {key: b64encode(value.encode()).decode() for key, value in planted.items()}
    found: dict[str, dict[str, str]] = {}
    for text in await manifests(centre, edge.cluster):
        for one in yaml.safe_load_all(text):
            if one["kind"] == "Deployment":
                pod = one["spec"]["template"]
                pod["metadata"]["namespace"] = one["metadata"]["namespace"]
                [container] = pod["spec"]["containers"]
                given = dict(variables_of(pod, container, {"edgewright-proxy": data}.get))
                assert found.setdefault(one["metadata"]["name"], given) == given
    return found


async def test_a_file_that_is_to_be_entered_again_as_a_whole_stops_no_other_secret(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient
) -> None:
    """Nobody could read it, so nobody knows its keys: the list has the Secret itself."""
    broken = SecretReference("default", "broken")
    await centre.steps.record_reentry(fence_of(await centre.row(edge.cluster)), taken=[broken])
    assert (await operator.put(place(edge.cluster, "default", "db/password"), content=b"again")).status_code == 204
    assert refusal(await operator.delete(place(edge.cluster, "default", "none/key"))) == (404, "secret_unknown")
