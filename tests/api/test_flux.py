"""The Flux that edges get: imported by an administrator, fetched by whoever installs it."""

from uuid import UUID

import httpx
import pytest
import yaml
from flux_file import VERSION, flux_file, sha256_of
from gateway_centre import GatewayCentre, bearer

from edgewright.bootstrap import AgentPod
from edgewright.ports.operators import Permission

FILE = flux_file()
KNOWN = {"sha256": sha256_of(FILE)}


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    return await centre.create("press-shop")


async def test_an_administrator_imports_it_and_readers_see_it(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    reader = await centre.operator(Permission.READ)
    nothing = await reader.get("/v1/flux")
    assert (nothing.status_code, nothing.json()["code"]) == (404, "flux_not_imported")
    imported = await admin.put("/v1/flux", params=KNOWN, content=FILE)
    assert imported.status_code == 200, imported.text
    shown = (await reader.get("/v1/flux")).json()
    assert shown == imported.json()
    assert (shown["version"], shown["sha256"], shown["mirror"]) == (VERSION, KNOWN["sha256"], None)
    assert "ghcr.io/fluxcd/source-controller:v1.7.0" in shown["images"]
    told = [event.message for event in await centre.ports.audit.events(after=0) if event.kind == "entry.put"]
    assert any("Flux bundle" in message for message in told)


async def test_releases_before_are_kept_and_an_older_one_is_not_offered_by_mistake(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    older, newer = (FILE.replace(VERSION.encode(), version) for version in (b"v2.6.4", b"v2.8.0"))
    for content in (FILE, newer):
        imported = await admin.put("/v1/flux", params={"sha256": sha256_of(content)}, content=content)
        assert imported.status_code == 200, imported.text
    reader = await centre.operator(Permission.READ)
    shown = (await reader.get("/v1/flux")).json()
    assert shown == imported.json()
    assert [(each["version"], each["offered"]) for each in shown["releases"]] == [("v2.8.0", True), (VERSION, False)]
    assert [each["sha256"] for each in shown["releases"]] == [sha256_of(newer), sha256_of(FILE)]
    refused = await admin.put("/v1/flux", params={"sha256": sha256_of(older)}, content=older)
    assert (refused.status_code, refused.json()["code"]) == (409, "flux_older")
    assert "v2.6.4 is older than v2.8.0" in refused.json()["detail"] and "--even-if-older" in refused.json()["hint"]
    assert (await reader.get("/v1/flux")).json() == shown
    meant = {"sha256": sha256_of(older), "even_if_older": "true"}
    taken = (await admin.put("/v1/flux", params=meant, content=older)).json()
    assert taken["version"] == "v2.6.4"
    assert [each["version"] for each in taken["releases"] if each["offered"]] == ["v2.6.4"]
    assert len(taken["releases"]) == 3


async def test_nobody_else_imports_one(centre: GatewayCentre) -> None:
    others = await centre.operator(Permission.READ, Permission.CLUSTERS, Permission.SECRETS, Permission.PUSH)
    assert (await others.put("/v1/flux", params=KNOWN, content=FILE)).status_code == 403
    application = "00aa45b5-ff6e-4289-b96a-3721e69955ee"
    entry = await others.put(f"/v1/app/{application}/object/{application}", json={})
    assert (entry.status_code, entry.json()["code"]) == (403, "written_by_centre")


@pytest.mark.parametrize(
    ("content", "params", "status", "code"),
    [
        (FILE, {}, 422, "request_invalid"),
        (FILE, {"sha256": "junk"}, 422, "request_invalid"),
        (FILE, {"sha256": "0" * 64}, 422, "checksum_differs"),
        (b"a: b", {"sha256": sha256_of(b"a: b")}, 422, "flux_bundle_invalid"),
        (b" " * (4 * 1024 * 1024 + 1), KNOWN, 413, "too_large"),
    ],
)
async def test_what_is_refused_changes_nothing(
    admin: httpx.AsyncClient, content: bytes, params: dict[str, str], status: int, code: str
) -> None:
    refused = await admin.put("/v1/flux", params=params, content=content)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert (await admin.get("/v1/flux")).status_code == 404


async def test_an_edge_fetches_it_with_its_token_and_later_with_its_credentials(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID
) -> None:
    path = f"/v1/cluster/{cluster}/install/flux"
    token = await centre.bootstrap_token(cluster)
    missing = await centre.client(bearer(token)).get(path)
    assert (missing.status_code, missing.json()["code"]) == (404, "flux_not_imported")
    await admin.put("/v1/flux", params=KNOWN, content=FILE)
    fetched = await centre.client(bearer(token)).get(path)
    assert fetched.headers["content-type"].startswith("application/yaml")
    kinds = [one["kind"] for one in yaml.safe_load_all(fetched.text)]
    assert "CustomResourceDefinition" in kinds and "Namespace" not in kinds
    edge = await centre.register(cluster)
    for credential in (edge.as_flux, edge.as_agent):
        assert (await centre.client(credential).get(path)).content == fetched.content
    assert (await (await centre.operator(Permission.READ)).get(path)).content == fetched.content


async def test_nobody_fetches_it_for_another_cluster(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    await admin.put("/v1/flux", params=KNOWN, content=FILE)
    path = f"/v1/cluster/{cluster}/install/flux"
    other = await centre.create("other")
    foreign = bearer(await centre.bootstrap_token(other))
    edge = await centre.register(other)
    manual = await centre.create("manual", accept="manual")
    pending = await centre.register(manual, uid="uid-2")
    assert (await anybody.get(path)).status_code == 401
    assert (await centre.client(bearer("ewr_" + "0" * 16 + "_" + "A" * 43)).get(path)).status_code == 401
    assert (await centre.client(foreign).get(path)).status_code == 403
    assert (await centre.client(edge.as_agent).get(path)).status_code == 403
    of_pending = await centre.client(pending.as_agent).get(f"/v1/cluster/{manual}/install/flux")
    assert (of_pending.status_code, of_pending.json()["code"]) == (403, "pending_acceptance")
    assert (await admin.get(f"/v1/cluster/{UUID(int=1)}/install/flux")).status_code == 404


async def test_the_agent_is_served_with_the_clusters_own_namespace(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("elsewhere", namespace="plant")
    path = f"/v1/cluster/{cluster}/install/agent"
    unset = await admin.get(path)
    assert (unset.status_code, unset.json()["code"]) == (404, "agent_image_unset")
    centre.offer(agent=AgentPod("registry.example.com/edgewright:1"))
    fetched = await centre.client(bearer(await centre.bootstrap_token(cluster))).get(path)
    manifests = {one["kind"]: one for one in yaml.safe_load_all(fetched.text)}
    assert {one["metadata"].get("namespace", "plant") for one in manifests.values()} == {"plant"}
    assert manifests["ClusterRoleBinding"]["subjects"][0]["namespace"] == "plant"
    [container] = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/edgewright:1"
    script = await centre.client().get(
        f"/v1/cluster/{cluster}/bootstrap", params={"token": await centre.bootstrap_token(cluster)}
    )
    assert "agent_image='registry.example.com/edgewright:1'" in script.text


async def test_a_bare_cluster_brings_its_own_flux(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient
) -> None:
    await admin.put("/v1/flux", params=KNOWN, content=FILE)
    offered = {}
    for bare in (False, True):
        made = await centre.create(f"bare-{bare}", bare=bare)
        token = await centre.bootstrap_token(made)
        script = await anybody.get(f"/v1/cluster/{made}/bootstrap", params={"token": token})
        offered[bare] = f"flux_offer='{VERSION}'" in script.text
    assert offered == {False: True, True: False}


async def test_the_script_that_takes_it_away_holds_no_secret(
    centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    token = await centre.bootstrap_token(cluster)
    path = f"/v1/cluster/{cluster}/bootstrap"
    script = await anybody.get(path, params={"token": token, "format": "uninstall"})
    assert script.status_code == 200
    assert str(cluster) in script.text and token not in script.text
    odd = await anybody.get(path, params={"token": token, "format": "odd"})
    assert "no such format" in odd.text
    assert (await anybody.get(path, params={"token": "x", "format": "uninstall"})).status_code == 403


async def test_manifests_are_there_for_those_who_pipe_nothing_to_a_shell(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    await admin.put("/v1/flux", params=KNOWN, content=FILE)
    centre.offer(agent=AgentPod("registry.example.com/edgewright:1"), registry_mirror="mirror.example")
    token = await centre.bootstrap_token(cluster)
    answer = await anybody.get(f"/v1/cluster/{cluster}/bootstrap", params={"token": token, "format": "manifests"})
    assert answer.status_code == 200
    assert token not in answer.text and "ewf_" not in answer.text
    made = list(yaml.safe_load_all(answer.text))
    kinds = {(one["kind"], one["metadata"]["name"]): one for one in made}
    assert len(kinds) == len(made)
    ours = {"edgewright.dev/cluster": str(cluster), "edgewright.dev/generation": "1"}
    assert ("ClusterRole", "edgewright-anchor") not in kinds, "it is made first, for the others need its UID"
    for known in (("Namespace", "flux-system"), ("Deployment", "edgewright-agent"), ("Namespace", "edgewright")):
        assert kinds[known]["metadata"]["labels"].items() >= {**ours, "edgewright.dev/part-of": "bootstrap"}.items()
        if known[0] == "Namespace":
            assert kinds[known]["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
    assert ("GitRepository", "self-link") in kinds
    assert "mirror.example/fluxcd/source-controller:v1.7.0" in answer.text
    assert f"{answer.request.url.scheme}://127.0.0.1:8484/v1/register" in answer.text
    told = " ".join(line.removeprefix("#").strip() for line in answer.text.partition("\n---")[0].splitlines())
    assert "This file takes nothing away. If an earlier attachment has left its Helm release" in told
    assert "run the script that is named at the end first" in told
