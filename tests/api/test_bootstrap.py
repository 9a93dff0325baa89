"""The bootstrap path: a script whatever happens, and reading it spends nothing."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from edge_cluster.certificates import Authority
from gateway_centre import GatewayCentre, bearer

from edgewright.bootstrap import bootstrap_line, render_uninstall
from edgewright.domain.cluster import TokenState
from edgewright.ports.operators import Permission


def run(script: str) -> subprocess.CompletedProcess[str]:
    """The answer, as `curl … | sh -` runs it."""
    shell = shutil.which("sh")
    assert shell is not None
    without_tools = {"PATH": "/nonexistent"}
    return subprocess.run(
        [shell, "-"], input=script, capture_output=True, text=True, timeout=20, env=without_tools, check=False
    )


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    return await centre.create("press-shop")


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


async def test_the_line_fetches_a_script_for_this_cluster(
    admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    answer = await admin.post(f"/v1/cluster/{cluster}/registration-token", json={"expires_in": 600})
    line = answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert line["command"] == f"curl -sSL '{line['url']}' | sh -"
    assert 500 < (datetime.fromisoformat(line["expires_at"]) - datetime.now(UTC)).total_seconds() <= 600
    assert "is only reachable from this machine" in line["warning"]
    assert line["ca_bundle"] is None

    script = await anybody.get(path_of(line["url"]))
    assert script.status_code == 200
    assert script.headers["content-type"].startswith("text/plain")
    assert script.headers["Cache-Control"] == "no-store"
    assert len(script.content) <= 32_000
    assert str(cluster) in script.text
    assert "press-shop" in script.text
    assert f"http://127.0.0.1:8484/uuid/{cluster}" in script.text  # the self-link, from the repository
    assert "GitRepository" in script.text


async def test_the_line_of_a_centre_with_a_private_authority_carries_that(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, tmp_path: Path
) -> None:
    bundle = Authority(tmp_path).identity.certificate.read_text()
    centre.offer(ca_bundle=bundle)
    line = (await admin.post(f"/v1/cluster/{cluster}/registration-token")).json()
    assert line["ca_bundle"] == bundle
    assert line["command"] == bootstrap_line(line["url"], ca_bundle=bundle)
    carried = line["command"].partition("' | curl ")[0].removeprefix("printf '%b' '")
    assert carried.replace("\\n", "\n") == bundle


async def test_acs_clients_get_the_url_as_a_json_string(admin: httpx.AsyncClient, cluster: UUID) -> None:
    answer = await admin.post(f"/v1/cluster/{cluster}/bootstrap-url")
    assert isinstance(answer.json(), str)
    assert answer.json().startswith(f"http://127.0.0.1:8484/v1/cluster/{cluster}/bootstrap?token=ewr_")


async def test_reading_the_script_never_spends_the_token(
    centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    token = await centre.bootstrap_token(cluster)
    path = f"/v1/cluster/{cluster}/bootstrap"
    for _ in range(3):
        assert (await anybody.get(path, params={"token": token})).status_code == 200
        head = await anybody.head(path, params={"token": token})
        assert (head.status_code, head.content) == (200, b"")
        assert (await anybody.get(f"{path}/", params={"token": token})).status_code == 200
    stored = await centre.ports.edge_access.token(token.split("_")[1])
    assert stored is not None
    assert stored.state is TokenState.ISSUED


async def test_the_host_header_makes_no_url(centre: GatewayCentre, cluster: UUID) -> None:
    token = await centre.bootstrap_token(cluster)
    evil = centre.client({"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"})
    answer = await evil.get(f"/v1/cluster/{cluster}/bootstrap", params={"token": token})
    assert "evil.example" not in answer.text


async def test_every_refusal_is_a_script_that_says_one_sentence_and_exits_1(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    other = await centre.create("other")
    foreign = await centre.bootstrap_token(other)
    replaced = await centre.bootstrap_token(cluster)
    spent = await centre.bootstrap_token(cluster)
    path = f"/v1/cluster/{cluster}/bootstrap"

    edge = await centre.register(cluster)  # draws a token of its own, so `spent` is replaced as well
    await centre.client(edge.as_agent).post("/v1/agent/heartbeat")
    gone = await centre.create("gone")
    of_gone = await centre.bootstrap_token(gone)
    await admin.delete(f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{gone}")

    refusals = [
        (path, {}, "not valid"),
        (path, {"token": "x"}, "not valid"),
        (path, {"token": spent[:-1] + ("A" if spent[-1] != "A" else "B")}, "not valid"),
        (path, {"token": foreign}, "another cluster"),
        (path, {"token": replaced}, "replaced by a newer one"),
        (f"/v1/cluster/{uuid4()}/bootstrap", {"token": foreign}, "another cluster"),
        (f"/v1/cluster/{uuid4()}/bootstrap", {"token": "x"}, "not valid"),
        ("/v1/cluster/not-a-uuid/bootstrap", {"token": "x"}, "not valid"),
        ("/v1/cluster/not-a-uuid/bootstrap/", {}, "not valid"),
        (f"/v1/cluster/{gone}/bootstrap", {"token": of_gone}, ""),
        ("/v1/cluster/$(reboot)';exit 0;'/bootstrap", {"token": "'; exit 0; '"}, "not valid"),
    ]
    for where, params, sentence in refusals:
        answer = await anybody.get(where, params=params)
        assert answer.status_code == 403, (where, params)
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["Cache-Control"] == "no-store"
        ended = run(answer.text)
        assert ended.returncode == 1, (where, params)
        assert ended.stdout == ""
        assert ended.stderr.startswith("edgewright: ")
        assert len(ended.stderr.splitlines()) == 1
        assert sentence in ended.stderr


async def test_a_spent_token_says_so(centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID) -> None:
    token = await centre.bootstrap_token(cluster)
    registering = centre.client(bearer(token))
    body = {"kube_system_uid": "u", "kubernetes_version": "v1.31.0", "flux_secret": "ewf_" + "0" * 64}
    answer = await registering.post("/v1/register", json={**body, "agent_secret": "ewa_" + "1" * 64})
    assert answer.status_code == 200
    path = f"/v1/cluster/{cluster}/bootstrap"
    assert (await anybody.get(path, params={"token": token})).status_code == 200  # bound: an interrupted run goes on
    from_edge = centre.client()
    await from_edge.post("/v1/agent/heartbeat", auth=(str(cluster), "ewa_" + "1" * 64))
    refused = await anybody.get(path, params={"token": token})
    assert refused.status_code == 403
    assert "has been used" in run(refused.text).stderr


async def test_an_expired_token_says_so(centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID) -> None:
    token = await centre.bootstrap_token(cluster)
    async with centre.database.write() as connection:
        await connection.exec_driver_sql("UPDATE registration_tokens SET expires_at = '2020-01-01 00:00:00.000000'")
    refused = await anybody.get(f"/v1/cluster/{cluster}/bootstrap", params={"token": token})
    assert refused.status_code == 403
    assert "has expired" in run(refused.text).stderr


async def test_a_wrong_method_is_answered_with_a_script_too(anybody: httpx.AsyncClient, cluster: UUID) -> None:
    answer = await anybody.post(f"/v1/cluster/{cluster}/bootstrap")
    assert answer.headers["content-type"].startswith("text/plain")
    assert run(answer.text).returncode == 1


async def test_a_broken_template_is_a_sentence_in_a_script(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    app = "a807d8fc-63ff-48bb-85c7-82b93beb606e"
    broken = await admin.put(f"/v1/app/{app}/object/{app}", json={"files": {"x.yaml": "{{ nonsense }}"}})
    assert broken.status_code in {201, 204}
    token = await centre.bootstrap_token(cluster)
    answer = await anybody.get(f"/v1/cluster/{cluster}/bootstrap", params={"token": token})
    ended = run(answer.text)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "nonsense" in ended.stderr


async def test_files_and_hooks_of_the_bootstrap_entry_are_in_the_script(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    app = "a807d8fc-63ff-48bb-85c7-82b93beb606e"
    body = {"files": {"site.yaml": "name: {{ name }} at {{ url.self }}\n"}, "hooks": {"before": "echo marked-hook\n"}}
    assert (await admin.put(f"/v1/app/{app}/object/{app}", json=body)).status_code in {201, 204}
    token = await centre.bootstrap_token(cluster)
    text = (await anybody.get(f"/v1/cluster/{cluster}/bootstrap", params={"token": token})).text
    assert f"name: press-shop at http://127.0.0.1:8484/uuid/{cluster}" in text
    assert "echo marked-hook" in text


async def test_a_token_is_issued_for_ready_clusters_only(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    assert (await admin.post(f"/v1/cluster/{uuid4()}/bootstrap-url")).status_code == 404
    centre.workflow.commissions = False
    cluster = await centre.create("slow")
    refused = await admin.post(f"/v1/cluster/{cluster}/bootstrap-url")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_ready")


@pytest.mark.parametrize("seconds", [59, 604_801, "soon", None])
async def test_an_expiry_out_of_bounds_is_refused(admin: httpx.AsyncClient, cluster: UUID, seconds: object) -> None:
    answer = await admin.post(f"/v1/cluster/{cluster}/registration-token", json={"expires_in": seconds})
    assert (answer.status_code, answer.json()["where"]) == (422, "/expires_in")


async def test_a_line_lives_for_an_hour_unless_somebody_says_otherwise(
    admin: httpx.AsyncClient, cluster: UUID
) -> None:
    for wish, seconds in (({}, 3600), ({"expires_in": 604_800}, 604_800)):
        answer = await admin.post(f"/v1/cluster/{cluster}/registration-token", json=wish)
        left = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
        assert seconds - 100 < left.total_seconds() <= seconds


async def test_wrong_tokens_are_limited_and_right_ones_are_not(
    centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    token = await centre.bootstrap_token(cluster)
    path = f"/v1/cluster/{cluster}/bootstrap"
    for _ in range(31):
        answer = await anybody.get(path, params={"token": "guess"})
    assert "Too many wrong" in run(answer.text).stderr
    assert (await anybody.get(path, params={"token": token})).status_code == 200


async def test_operators_may_not_read_the_script_with_their_token(centre: GatewayCentre, cluster: UUID) -> None:
    operator = await centre.operator(Permission.ADMIN)
    assert (await operator.get(f"/v1/cluster/{cluster}/bootstrap")).status_code == 403


async def test_the_uninstall_script_is_open_and_the_same_for_every_edge(
    centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    before = await anybody.get("/v1/uninstall.sh")
    assert (before.status_code, before.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert before.text == render_uninstall()
    assert str(cluster) not in before.text
    assert (await anybody.head("/v1/uninstall.sh")).status_code == 200
    assert (await anybody.post("/v1/uninstall.sh")).status_code == 405


async def test_whoever_cannot_use_a_line_learns_how_an_edge_is_cleaned(
    centre: GatewayCentre, admin: httpx.AsyncClient, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    token = await centre.bootstrap_token(cluster)
    path = f"/v1/cluster/{cluster}/bootstrap"
    for wrong in ({"token": "x"}, {}):
        assert "edgewright cluster uninstall-script" in run((await anybody.get(path, params=wrong)).text).stderr
    assert (await admin.delete(f"/v1/cluster/{cluster}", params={"force": "true"})).status_code == 202
    done = run((await anybody.get(path, params={"token": token})).text)
    assert (done.returncode, "edgewright cluster uninstall-script" in done.stderr) == (1, True)
