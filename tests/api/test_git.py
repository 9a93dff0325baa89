"""Driving repositories with the real git, over a real socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from flux_file import flux_file, sha256_of
from gateway_centre import EdgeCredentials, GatewayCentre, basic, bearer
from git_client import git, serving

from api.git_guests import AT_ONCE, OF_ONE_TOKEN, OF_OPERATORS
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission

UPLOAD, RECEIVE = "service=git-upload-pack", "service=git-receive-pack"


@pytest.fixture
async def port(centre: GatewayCentre) -> AsyncIterator[int]:
    async with serving(centre.app) as port:
        yield port


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    return await centre.create("Press-Shop")


@pytest.fixture
def charts(centre: GatewayCentre) -> None:
    """The shared repository that every cluster reads."""
    centre.git.create_repository(REPOSITORY_HELM_CHARTS)
    message = CommitMessage(subject="charts", actor="centre")
    centre.git.commit(REPOSITORY_HELM_CHARTS, {"chart.yaml": b"x\n"}, message, expected_head=None)


async def test_plain_git_clones_by_name_and_uuid_with_every_protocol(
    centre: GatewayCentre, cluster: UUID, port: int, tmp_path: Path
) -> None:
    token = (await centre.token(Permission.READ)).text
    base = f"http://git:{token}@127.0.0.1:{port}"
    urls = (f"{base}/git/cluster/press-shop", f"{base}/git/cluster/Press-Shop.git", f"{base}/uuid/{cluster}")
    for number, url in enumerate(urls):
        into = f"c{number}"
        cloned = await git("-c", f"protocol.version={number}", "clone", "-q", url, into, cwd=tmp_path)
        assert cloned.returncode == 0, cloned.stderr
        assert (tmp_path / into / "edo/cluster/self-link.yaml").is_file()
        head = await git("-C", into, "rev-parse", "HEAD", cwd=tmp_path)
        assert head.stdout.strip() == centre.git.head(cluster)


async def test_a_push_by_hand_is_told_in_the_timeline_and_nudges(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, port: int, tmp_path: Path
) -> None:
    token = (await centre.token(Permission.READ, Permission.PUSH)).text
    url = f"http://git:{token}@127.0.0.1:{port}/git/cluster/press-shop"
    assert (await git("clone", "-q", url, "work", cwd=tmp_path)).returncode == 0
    old = centre.git.head(cluster)
    work = tmp_path / "work"
    (work / "by-hand" / "mine.yaml").write_text("kind: ConfigMap\n")
    await git("add", ".", cwd=work)
    await git("commit", "-q", "-m", "mine", cwd=work)
    centre.fleet.nudged.clear()
    pushed = await git("push", "-q", "origin", "HEAD:main", cwd=work)
    assert pushed.returncode == 0, pushed.stderr
    new = centre.git.head(cluster)
    assert new != old
    assert (cluster, False) in centre.fleet.nudged
    last = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"][-1]
    assert (last["kind"], last["detail"]) == ("git.pushed", {"old": old, "new": new})
    assert last["actor"].startswith("token:test-")


async def test_a_refused_push_changes_and_tells_nothing(
    centre: GatewayCentre, admin: httpx.AsyncClient, cluster: UUID, port: int, tmp_path: Path
) -> None:
    token = (await centre.token(Permission.READ, Permission.PUSH)).text
    url = f"http://git:{token}@127.0.0.1:{port}/git/cluster/press-shop"
    await git("clone", "-q", url, "work", cwd=tmp_path)
    work = tmp_path / "work"
    (work / "edo" / "cluster" / "self-link.yaml").write_text("kind: Nothing\n")
    await git("commit", "-q", "-a", "-m", "not mine", cwd=work)
    before = centre.git.head(cluster), await centre.ports.audit.last_position()
    pushed = await git("push", "origin", "HEAD:main", cwd=work)
    assert pushed.returncode != 0
    assert "by-hand" in pushed.stderr
    assert (centre.git.head(cluster), await centre.ports.audit.last_position()) == before


@pytest.mark.parametrize("bare", [False, True])
async def test_a_push_brings_nothing_that_is_edgewrights_on_the_edge_of_its_cluster(
    centre: GatewayCentre, admin: httpx.AsyncClient, port: int, tmp_path: Path, *, bare: bool
) -> None:
    file = flux_file()
    assert (await admin.put("/v1/flux", params={"sha256": sha256_of(file)}, content=file)).status_code == 200
    await centre.create("Paint-Shop", namespace="plant", bare=bare)
    token = (await centre.token(Permission.READ, Permission.PUSH)).text
    await git("clone", "-q", f"http://git:{token}@127.0.0.1:{port}/git/cluster/paint-shop", "work", cwd=tmp_path)
    work = tmp_path / "work"
    refused = {}
    for what in (
        *(f"v1 Namespace - {name}" for name in ("plant", "edgewright", "flux-system", "kube-system", "press")),
        *("apps/v1 Deployment plant edgewright-agent", "apps/v1 Deployment press edgewright-agent"),
        *("kustomize.toolkit.fluxcd.io/v1 Kustomization plant by-hand", "v1 Secret plant flux-secrets"),
        "apps/v1 Deployment flux-system source-controller",
    ):
        version, kind, namespace, name = what.split(" ")
        metadata = f"{{name: {name}}}" if namespace == "-" else f"{{name: {name}, namespace: {namespace}}}"
        (work / "by-hand" / "mine.yaml").write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata: {metadata}\n")
        await git("add", ".", cwd=work)
        await git("commit", "-q", "-m", what, cwd=work)
        refused[what] = (await git("push", "origin", "HEAD:main", cwd=work)).returncode != 0
        if refused[what]:
            await git("reset", "-q", "--hard", "origin/main", cwd=work)
    taken = {"v1 Namespace - press", "apps/v1 Deployment press edgewright-agent"}
    if bare:  # its Flux is its owner's
        taken.add("apps/v1 Deployment flux-system source-controller")
    assert {what for what, no in refused.items() if not no} == taken


async def test_without_credentials_git_is_always_401(
    centre: GatewayCentre, anybody: httpx.AsyncClient, cluster: UUID
) -> None:
    for path in (
        f"/uuid/{cluster}",
        f"/uuid/{uuid4()}",
        "/git/cluster/press-shop",
        "/git/cluster/x",
        "/git/shared/x",
    ):
        for service in (UPLOAD, RECEIVE):
            answer = await anybody.get(f"{path}/info/refs?{service}")
            assert answer.status_code == 401
            assert "Basic" in answer.headers["WWW-Authenticate"]
        assert (await anybody.post(f"{path}/git-upload-pack")).status_code == 401


@pytest.mark.usefixtures("charts")
async def test_permissions_decide_who_reads_and_pushes(centre: GatewayCentre, cluster: UUID) -> None:
    statuses = {}
    for permissions in ((Permission.READ,), (Permission.PUSH,), (Permission.READ, Permission.PUSH)):
        client = await centre.operator(*permissions)
        own = f"/uuid/{cluster}/info/refs"
        shared = "/git/shared/helm-charts.git/info/refs"
        asked = (f"{own}?{UPLOAD}", f"{own}?{RECEIVE}", f"{shared}?{UPLOAD}", f"{shared}?{RECEIVE}")
        statuses[permissions] = [(await client.get(path)).status_code for path in asked]
    assert statuses == {
        (Permission.READ,): [200, 403, 200, 403],
        (Permission.PUSH,): [403, 200, 403, 403],
        (Permission.READ, Permission.PUSH): [200, 200, 200, 403],
    }


async def test_a_cluster_that_is_being_deleted_takes_no_pushes(centre: GatewayCentre, cluster: UUID) -> None:
    operator = await centre.operator(Permission.CLUSTERS, Permission.PUSH, Permission.READ)
    assert (await operator.delete(f"/v1/cluster/{cluster}")).status_code == 202
    refused = await operator.get(f"/uuid/{cluster}/info/refs?{RECEIVE}")
    assert (refused.status_code, refused.json()["code"]) == (409, "deleting")
    assert (await operator.post(f"/uuid/{cluster}/git-receive-pack", content=b"")).status_code == 409
    assert (await operator.get(f"/uuid/{cluster}/info/refs?{UPLOAD}")).status_code == 200


async def test_an_unknown_repository_is_404_for_those_who_may_read(centre: GatewayCentre) -> None:
    reader = await centre.operator(Permission.READ)
    for path in (f"/uuid/{uuid4()}", "/git/cluster/nobody", "/git/shared/nothing", "/uuid/not-a-uuid"):
        assert (await reader.get(f"{path}/info/refs?{UPLOAD}")).status_code == 404, path


@pytest.mark.usefixtures("charts")
async def test_flux_reads_its_own_repository_and_shared_ones_only(centre: GatewayCentre, cluster: UUID) -> None:
    other = await centre.create("other")
    edge: EdgeCredentials = await centre.register(cluster)
    flux, agent = centre.client(edge.as_flux), centre.client(edge.as_agent)
    allowed = (
        f"/uuid/{cluster}",
        "/git/cluster/press-shop.git",
        "/git/shared/helm-charts",
        f"/uuid/{REPOSITORY_HELM_CHARTS}",
    )
    for path in allowed:
        assert (await flux.get(f"{path}/info/refs?{UPLOAD}")).status_code == 200, path
        assert (await flux.get(f"{path}/info/refs?{RECEIVE}")).status_code == 403, path
        assert (await agent.get(f"{path}/info/refs?{UPLOAD}")).status_code == 403, path
    for path in (f"/uuid/{other}", "/git/cluster/other", f"/uuid/{uuid4()}", "/git/cluster/nobody", "/git/shared/x"):
        assert (await flux.get(f"{path}/info/refs?{UPLOAD}")).status_code == 403, path


async def test_a_clone_by_flux_proves_its_credential(
    centre: GatewayCentre, cluster: UUID, port: int, tmp_path: Path
) -> None:
    edge = await centre.register(cluster)
    url = f"http://{cluster}:{edge.flux}@127.0.0.1:{port}/uuid/{cluster}"
    cloned = await git("clone", "-q", url, "edge", cwd=tmp_path)
    assert cloned.returncode == 0, cloned.stderr
    proven = [each.role for each in await centre.ports.edge_access.credentials(cluster) if each.proven_at]
    assert proven == ["flux"]


async def test_one_cluster_cannot_keep_the_others_from_git(centre: GatewayCentre, port: int, cluster: UUID) -> None:
    other = await centre.create("other")
    slow, patient = await centre.register(cluster), await centre.register(other, uid="uid-2")
    head = (
        f"POST /uuid/{cluster}/git-upload-pack HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {slow.as_flux['Authorization']}\r\n"
        "Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 100\r\n\r\n0011"
    )
    kind = {"Content-Type": "application/x-git-upload-pack-request"}

    async def fetch(edge: EdgeCredentials) -> int:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=edge.as_flux) as client:
            answer = await client.post(f"/uuid/{edge.cluster}/git-upload-pack", content=b"0000", headers=kind)
            return answer.status_code

    held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    async with asyncio.timeout(20):
        try:
            while await fetch(slow) != 429:  # a fetch may itself have taken a place that was meant to be held
                held.append(await asyncio.open_connection("127.0.0.1", port))
                held[-1][1].write(head.encode())
            assert len(held) >= AT_ONCE
            assert await fetch(patient) == 200
        finally:
            for _, writer in held:
                writer.close()
        while await fetch(slow) != 200:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("service", ["git-upload-pack", "git-receive-pack"])
async def test_who_sends_a_request_slowly_holds_no_git_process(
    centre: GatewayCentre, port: int, cluster: UUID, service: str
) -> None:
    edge, token = await centre.register(cluster), await centre.token(Permission.READ, Permission.PUSH)
    centre.change(git_http=GitHttp(centre.git, processes=1, patience=1))
    head = (
        f"POST /uuid/{cluster}/{service} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token.text}\r\n"
        f"Content-Type: application/x-{service}-request\r\nContent-Length: 100\r\n\r\n0011"
    )
    kind = {"Content-Type": "application/x-git-upload-pack-request"}
    held: list[asyncio.StreamWriter] = []
    async with asyncio.timeout(60):
        try:
            for _ in range(OF_ONE_TOKEN):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                held.append(writer)
                writer.write(head.encode())
            while len(centre.app.state.git_room.git_guests) < OF_ONE_TOKEN:
                await asyncio.sleep(0.05)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=edge.as_flux) as client:
                answer = await client.post(f"/uuid/{cluster}/git-upload-pack", content=b"0000", headers=kind)
                assert answer.status_code == 200, answer.text
        finally:
            for writer in held:
                writer.close()


async def test_one_token_cannot_keep_the_others_from_git(centre: GatewayCentre, cluster: UUID) -> None:
    guests = centre.app.state.git_room.git_guests
    path, kind = f"/uuid/{cluster}/git-upload-pack", {"Content-Type": "application/x-git-upload-pack-request"}
    token = await centre.token(Permission.READ)
    client = centre.client(bearer(token.text))
    with ExitStack() as under_way:
        for _ in range(OF_ONE_TOKEN):
            under_way.enter_context(guests.of_operator(token.id))
        refused = await client.post(path, content=b"0000", headers=kind)
        assert (refused.status_code, refused.json()["code"]) == (429, "git_busy")
        assert refused.headers["Retry-After"] == "5"
        other = await centre.operator(Permission.READ)
        assert (await other.post(path, content=b"0000", headers=kind)).status_code == 200
        for number in range(OF_OPERATORS - OF_ONE_TOKEN):
            under_way.enter_context(guests.of_operator(f"another-{number}"))
        assert (await other.post(path, content=b"0000", headers=kind)).status_code == 503
        scraped = centre.gateway.metrics.exposition(None, {}).decode()
        assert 'edgewright_limited_total{code="git_busy"} 2.0' in scraped
    assert (await client.post(path, content=b"0000", headers=kind)).status_code == 200


async def test_a_service_that_git_has_not_is_refused(centre: GatewayCentre, cluster: UUID) -> None:
    client = await centre.operator(Permission.ADMIN)
    answer = await client.post(f"/uuid/{cluster}/git-frobnicate")
    assert (answer.status_code, answer.json()["code"]) == (403, "service_unknown")
    answer = await client.post(f"/uuid/{cluster}/git-upload-pack", content=b"0000")
    assert answer.json()["code"] == "content_type_unsupported"


async def test_a_credential_of_one_cluster_with_the_uuid_of_another_is_wrong(
    centre: GatewayCentre, cluster: UUID
) -> None:
    other = await centre.create("other")
    edge = await centre.register(cluster)
    answer = await centre.client(basic(str(other), edge.flux)).get(f"/uuid/{other}/info/refs?{UPLOAD}")
    assert answer.status_code == 401
