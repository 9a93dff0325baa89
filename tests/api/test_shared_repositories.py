"""A *Git repository* entry makes a repository that people push to and every edge reads."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import GatewayCentre, bearer
from git_client import git, serving

from api.routes import git as git_routes
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_push import PushContext
from edgewright.adapters.git.memory_limit import MIB
from edgewright.application import repository_uses
from edgewright.application.repository_uses import RepositoryUses
from edgewright.application.shared_repositories import MOST_SHARED, SharedRepositories
from edgewright.domain.wellknown import (
    APP_FLUX_TEMPLATE,
    APP_GIT_REPOSITORY,
    APP_HELM_CHART_TEMPLATE,
    CLASS_GIT_REPOSITORY,
    CLASS_HELM_CHART,
    OBJECT_FLUX_TEMPLATE,
    REPOSITORY_HELM_CHARTS,
)
from edgewright.ports.config_store import ConfigStore, Entry
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission

UPLOAD, RECEIVE = "service=git-upload-pack", "service=git-receive-pack"
LINE = "/v1/repository/press-line"
BODY = {"path": "shared/press-line"}


@pytest.fixture
async def port(centre: GatewayCentre) -> AsyncIterator[int]:
    async with serving(centre.app) as port:
        yield port


def entry_of(repository: object, version: int = 1) -> str:
    return f"/v{version}/app/{APP_GIT_REPOSITORY}/object/{repository}"


async def listed(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    answer = await client.get("/v1/repository")
    assert answer.status_code == 200
    return {each["name"]: each for each in answer.json()["items"]}


def problem_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def a_template(admin: httpx.AsyncClient, body: dict[str, Any]) -> str:
    made = await admin.post("/v1/object", json={"class": str(CLASS_HELM_CHART)})
    entry = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{made.json()['uuid']}"
    assert (await admin.put(entry, json=body)).status_code == 201
    return entry


async def test_made_by_name_it_is_there_once(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made, again = [await admin.put(LINE) for _ in range(2)]
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json()
    body = made.json()
    assert (body["name"], body["own"], body["commit"]) == ("press-line", True, None)
    assert body["url"].endswith("/git/shared/press-line")
    assert centre.git.exists(UUID(body["uuid"]))
    assert (await admin.get(entry_of(body["uuid"]))).json() == BODY
    assert list(await listed(admin)) == ["helm-charts", "press-line"]
    assert not (await listed(admin))["helm-charts"]["own"]


@pytest.mark.parametrize("version", [1, 2])
async def test_the_entry_of_a_new_object_makes_it_too(
    centre: GatewayCentre, admin: httpx.AsyncClient, version: int
) -> None:
    repository = uuid4()
    before = await centre.ports.audit.last_position()
    first, again = [await admin.put(entry_of(repository, version), json=BODY) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 204)
    assert first.headers["ETag"] == again.headers["ETag"]
    assert [event.kind for event in await centre.ports.audit.events(after=before)] == ["repository.created"]
    assert await centre.ports.config.class_of(repository) == CLASS_GIT_REPOSITORY
    assert (await listed(admin))["press-line"]["uuid"] == str(repository)
    assert (await admin.put(LINE)).json()["uuid"] == str(repository)
    patched = await admin.patch(entry_of(uuid4(), version), json={"path": "shared/patched"})
    assert patched.status_code == 204
    assert "patched" in await listed(admin)


@pytest.mark.parametrize(
    ("body", "code", "where"),
    [
        ({"path": "press-line"}, "name_invalid", "/path"),
        ({"path": "cluster/press-line"}, "name_invalid", "/path"),
        ({"path": "shared/"}, "name_invalid", "/path"),
        ({"path": "shared/../x"}, "name_invalid", "/path"),
        ({"path": "shared/a/b"}, "name_invalid", "/path"),
        ({"path": "shared/Press"}, "name_invalid", "/path"),
        ({"path": "shared/press-"}, "name_invalid", "/path"),
        ({"path": "shared/$(rm -rf /)"}, "name_invalid", "/path"),
        ({"path": "shared/" + "a" * 64}, "name_invalid", "/path"),
        ({"path": "shared/a\n"}, "name_invalid", "/path"),
        ({"path": 5}, "name_invalid", "/path"),
        ({}, "name_invalid", "/path"),
        ([], "name_invalid", "/path"),
        (None, "name_invalid", "/path"),
        ({**BODY, "pull": {}}, "entry_without_effect", "/pull"),
        ({**BODY, "hooks": {"post-receive": "x"}}, "entry_without_effect", "/hooks"),
        ({**BODY, "else": 1}, "entry_without_effect", None),
    ],
    ids=str,
)
async def test_an_entry_that_no_repository_can_follow_from_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient, body: Any, code: str, where: str | None
) -> None:
    repository = uuid4()
    refused = await admin.put(entry_of(repository), content=json.dumps(body))
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem.get("where")) == (422, code, where)
    assert problem["hint"]
    assert not centre.git.exists(repository)
    assert await centre.ports.config.class_of(repository) is None


@pytest.mark.parametrize("name", ["Press", "a.b", "-", "a" * 64, "%24%28reboot%29", "a.git"])
async def test_a_name_that_is_no_label_is_refused(admin: httpx.AsyncClient, name: str) -> None:
    assert problem_of(await admin.put(f"/v1/repository/{name}")) == (422, "name_invalid")
    assert problem_of(await admin.delete(f"/v1/repository/{name}")) == (404, "repository_unknown")


async def test_what_others_have_is_not_taken(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = (await admin.put(LINE)).json()
    taken = (409, "repository_name_taken")
    other = uuid4()
    assert problem_of(await admin.put(entry_of(other), json=BODY)) == taken
    assert problem_of(await admin.put(entry_of(other), json={"path": "shared/helm-charts"})) == taken
    assert problem_of(await admin.put("/v1/repository/helm-charts")) == taken
    assert not centre.git.exists(other)
    renamed = await admin.put(entry_of(made["uuid"]), json={"path": "shared/other"})
    assert problem_of(renamed) == (409, "name_immutable")
    template, _ = await centre.ports.config.create_object(CLASS_HELM_CHART)
    assert problem_of(await admin.put(entry_of(template), json={"path": "shared/a"})) == (409, "wrong_class")
    cluster = await centre.create("press-shop")
    for answer in (
        await admin.put(entry_of(cluster), json={"path": "shared/a"}),
        await admin.put(entry_of(cluster), json=BODY),
        await admin.delete(entry_of(cluster)),
    ):
        assert problem_of(answer) == (403, "written_by_centre")


async def test_the_charts_stay_as_they_are(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    charts = entry_of(REPOSITORY_HELM_CHARTS)
    present = (await admin.get(charts)).json()
    for body in ({"path": "shared/other"}, {**present, "pull": {}}):
        assert problem_of(await admin.put(charts, json=body)) == (422, "entry_without_effect")
    assert (await admin.put(charts, json=present)).status_code == 204
    for path in (charts, "/v1/repository/helm-charts"):
        assert problem_of(await admin.delete(path)) == (403, "written_by_centre")
    assert centre.git.exists(REPOSITORY_HELM_CHARTS)


async def test_it_needs_the_permission_to_change_clusters(centre: GatewayCentre) -> None:
    for permission in (Permission.READ, Permission.PUSH, Permission.SECRETS):
        client = await centre.operator(permission)
        assert (await client.put(LINE)).status_code == 403
        assert (await client.put(entry_of(uuid4()), json=BODY)).status_code == 403
        assert (await client.delete(LINE)).status_code == 403
    maker = await centre.operator(Permission.CLUSTERS)
    assert (await maker.put(LINE)).status_code == 201
    assert (await maker.get("/v1/repository")).status_code == 403


async def test_of_many_who_make_one_name_at_once_all_get_the_same(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    answers = await asyncio.gather(*(admin.put(LINE) for _ in range(8)))
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert len({answer.json()["uuid"] for answer in answers}) == 1
    others = await asyncio.gather(*(admin.put(entry_of(uuid4()), json={"path": "shared/raced"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in others) == [201, *[409] * 7]
    assert list(await listed(admin)) == ["helm-charts", "press-line", "raced"]
    there = {each.uuid for each in await SharedRepositories.on(centre.ports).all()}
    assert {folder.name for folder in centre.git.root.glob("*.git")} == {f"{uuid}.git" for uuid in there}


async def test_there_are_so_many_at_most(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    for number in range(MOST_SHARED):
        assert (await admin.put(f"/v1/repository/a{number}")).status_code == 201
    assert problem_of(await admin.put("/v1/repository/more")) == (409, "too_many_repositories")
    assert (await admin.put("/v1/repository/a0")).status_code == 200
    assert (await admin.delete("/v1/repository/a0")).status_code == 204
    assert (await admin.put("/v1/repository/more")).status_code == 201


async def test_whoever_died_between_entry_and_repository_is_followed_by_the_same_request(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(type(centre.git), "create_repository", die)
        assert (await admin.put(LINE)).status_code == 500
    [half] = [each for each in (await listed(admin)).values() if each["own"]]
    assert not centre.git.exists(UUID(half["uuid"]))
    unknown = await admin.get(f"/git/shared/press-line/info/refs?{UPLOAD}")
    assert problem_of(unknown) == (404, "repository_unknown")
    assert (await admin.put(LINE)).status_code == 200
    assert (await admin.get(f"/git/shared/press-line/info/refs?{UPLOAD}")).status_code == 200


async def test_whoever_died_while_removing_is_followed_by_the_same_request(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = UUID((await admin.put(LINE)).json()["uuid"])

    async def die(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(type(centre.ports.config), "delete", die)
        assert (await admin.delete(LINE)).status_code == 500
    assert not centre.git.exists(repository)
    assert (await admin.get(f"/uuid/{repository}/info/refs?{UPLOAD}")).status_code == 404
    assert (await admin.delete(LINE)).status_code == 204
    assert "press-line" not in await listed(admin)


async def test_making_and_removing_are_told_once_with_who_did_it(centre: GatewayCentre) -> None:
    maker = centre.client(bearer((await centre.token(Permission.CLUSTERS, name="maker")).text))
    ender = centre.client(bearer((await centre.token(Permission.CLUSTERS, name="ender")).text))
    before = await centre.ports.audit.last_position()
    for _ in range(2):
        uuid = (await maker.put(LINE)).json()["uuid"]
    for _ in range(2):
        await ender.delete(LINE)
    told = await centre.ports.audit.events(after=before)
    assert [(each.kind, each.actor, each.cluster, each.message) for each in told] == [
        ("repository.created", "token:maker", None, "The repository shared/press-line was created."),
        ("repository.removed", "token:ender", None, "The repository shared/press-line was removed."),
    ]
    assert [(each.detail["repository"], each.detail["object"]) for each in told] == [("shared/press-line", uuid)] * 2


class Held:
    """A Config Store that stands still between entry and repository until ``asked`` is set."""

    def __init__(self, inner: ConfigStore, asked: asyncio.Event) -> None:
        self._inner, self._asked = inner, asked
        self.stands = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put(self, *arguments: Any, **named: Any) -> Entry:
        written = await self._inner.put(*arguments, **named)
        await self._stand()
        return written

    async def delete(self, *arguments: Any, **named: Any) -> bool:
        await self._stand()
        return await self._inner.delete(*arguments, **named)

    async def _stand(self) -> None:
        self.stands.set()
        await self._asked.wait()


class Asking(BareGitServer):
    """Repositories of another process, which sets ``asked`` when it wants to be the sole maker."""

    def __init__(self, root: Path, asked: asyncio.Event) -> None:
        super().__init__(root)
        self._ask = partial(asyncio.get_running_loop().call_soon_threadsafe, asked.set)

    @contextmanager
    def sole_maker(self) -> Iterator[None]:
        self._ask()
        with super().sole_maker():
            yield


@pytest.mark.parametrize("removal_first", [True, False])
async def test_whoever_makes_one_while_somebody_removes_it_waits_and_the_reverse(
    centre: GatewayCentre, *, removal_first: bool
) -> None:
    asked = asyncio.Event()
    config: Any = Held(centre.ports.config, asked)
    uses = RepositoryUses(centre.ports.config, centre.ports.directory, centre.git)
    slow = SharedRepositories(config, centre.git, uses)
    fast = SharedRepositories(centre.ports.config, Asking(centre.git.root, asked), uses)
    uuid = uuid4()
    if removal_first:
        await SharedRepositories.on(centre.ports).write(uuid, BODY, actor="test")

    async def do(repositories: SharedRepositories, *, removes: bool) -> None:
        if removes:
            assert await repositories.remove(uuid, actor="test")
        else:
            assert await repositories.write(uuid, BODY, actor="test")
        asked.set()  # where nobody asks, nothing stands still for ever

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(do(slow, removes=removal_first))
        await config.stands.wait()
        tasks.create_task(do(fast, removes=not removal_first))
    entry = await centre.ports.config.get(APP_GIT_REPOSITORY, uuid)
    assert (entry is not None, centre.git.exists(uuid)) == (removal_first, removal_first)


async def test_a_removed_one_is_archived_and_gone_for_git_and_can_be_made_again(
    centre: GatewayCentre, admin: httpx.AsyncClient, port: int, tmp_path: Path
) -> None:
    repository = uuid4()
    made = await admin.put(entry_of(repository), json=BODY)
    await pushed_first(centre, port, tmp_path)
    kept = centre.git.head(repository)
    assert problem_of(await admin.delete(entry_of(repository), headers={"If-Match": '"x"'})) == (
        412,
        "precondition_failed",
    )
    assert centre.git.head(repository) == kept
    assert (await admin.delete(entry_of(repository), headers={"If-Match": made.headers["ETag"]})).status_code == 204
    for path in (f"/uuid/{repository}", "/git/shared/press-line"):
        for service in (UPLOAD, RECEIVE):
            assert problem_of(await admin.get(f"{path}/info/refs?{service}")) == (404, "repository_unknown")
    assert [folder.name for folder in (centre.git.root / "archive").glob("*.git")] == [f"{repository}-{kept}.git"]
    assert (await admin.delete(entry_of(repository))).status_code == 404
    assert problem_of(await admin.delete(LINE)) == (404, "repository_unknown")
    assert (await admin.put(entry_of(repository), json=BODY)).status_code == 201
    assert centre.git.head(repository) is None
    await pushed_first(centre, port, tmp_path)
    told = [event.detail["new"] for event in await centre.ports.audit.events(after=0) if event.kind == "git.pushed"]
    assert told == [kept, kept]


@pytest.mark.parametrize("spelled", ["/git/shared/press-line", "/git/shared/press-line.git", "/uuid/{uuid}"])
async def test_one_that_a_template_names_stays(centre: GatewayCentre, admin: httpx.AsyncClient, spelled: str) -> None:
    uuid = (await admin.put(LINE)).json()["uuid"]
    url = f"https://centre.example{spelled.format(uuid=uuid)}"
    entry = f"/v1/app/{APP_FLUX_TEMPLATE}/object/{OBJECT_FLUX_TEMPLATE}"
    template = (await admin.get(entry)).json()
    source = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "spec": {"url": url}}
    assert (await admin.put(entry, json={**template, "more.yaml": [source]})).status_code == 204
    refused = await admin.delete(LINE)
    assert problem_of(refused) == (409, "repository_in_use")
    assert "Flux template" in refused.json()["detail"]
    assert centre.git.exists(UUID(uuid))
    assert (await admin.put(entry, json=template)).status_code == 204
    chart = await a_template(admin, {"chart": "x", "source": "site-charts", "values": {"url": url}})
    assert problem_of(await admin.delete(entry_of(uuid))) == (409, "repository_in_use")
    similar = {"chart": "x", "source": "site-charts", "values": {"url": "https://x/git/shared/press-line-2"}}
    assert (await admin.put(chart, json=similar)).status_code == 204
    assert (await admin.delete(LINE)).status_code == 204


def by_hand(centre: GatewayCentre, cluster: UUID, files: dict[str, bytes | None]) -> None:
    """Commits files as a push does."""
    message = CommitMessage("By hand", "desk")
    centre.git.commit(cluster, files, message, expected_head=centre.git.head(cluster))


SOURCE = b"kind: GitRepository\nspec: {url: 'https://centre.example%s'}\n"


@pytest.mark.parametrize("spelled", ["/git/shared/press-line", "/git/shared/press-line.git", "/uuid/{uuid}"])
async def test_one_that_a_cluster_names_by_hand_stays(
    centre: GatewayCentre, admin: httpx.AsyncClient, spelled: str
) -> None:
    uuid = UUID((await admin.put(LINE)).json()["uuid"])
    await centre.create("quiet")
    cluster = await centre.create("press-shop")
    similar = {"by-hand/other.yaml": SOURCE % b"/git/shared/press-line-2"}
    by_hand(centre, cluster, {"by-hand/deep/line.yaml": SOURCE % spelled.format(uuid=uuid).encode(), **similar})
    for door in (LINE, entry_of(uuid), entry_of(uuid, 2)):
        refused = await admin.delete(door)
        assert problem_of(refused) == (409, "repository_in_use")
        assert refused.json()["detail"] == "The cluster press-shop names this repository in by-hand/deep/line.yaml."
        assert centre.git.exists(uuid)
    by_hand(centre, cluster, {"by-hand/deep/line.yaml": None})
    assert (await admin.delete(LINE)).status_code == 204


async def test_one_that_the_values_of_a_cluster_name_stays(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    await admin.put(LINE)
    url = "https://centre.example/git/shared/press-line"
    cluster = await centre.create("press-shop", values={"uuid": {"source": url}})
    refused = await admin.delete(LINE, params={"ignore_by_hand": True})
    assert problem_of(refused) == (409, "repository_in_use")
    assert "Edge cluster configuration press-shop" in refused.json()["detail"]
    assert (await admin.patch(f"/v1/cluster/{cluster}", json={"values": None})).status_code == 200
    assert (await admin.delete(LINE)).status_code == 204


async def test_what_cannot_be_searched_is_named_and_may_be_ignored(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = UUID((await admin.put(LINE)).json()["uuid"])
    cluster = await centre.create("press-shop")
    unknown = (409, "repository_use_unknown")
    with monkeypatch.context() as patch:
        patch.setattr(repository_uses, "SEARCH_SECONDS", 0.0)
        refused = await admin.delete(LINE)
        assert problem_of(refused) == unknown
        assert refused.json()["detail"].startswith("Only 0 of 1 clusters could be searched")
    (centre.git.folder(cluster) / "HEAD").unlink()
    refused = await admin.delete(LINE)
    assert problem_of(refused) == unknown
    assert refused.json()["detail"].startswith("The files of the cluster press-shop cannot be searched: ")
    assert centre.git.exists(uuid)
    assert (await admin.delete(LINE, params={"ignore_by_hand": True})).status_code == 204
    assert not centre.git.exists(uuid)


async def test_equal_folders_of_many_clusters_are_read_once(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await admin.put(LINE)
    clusters = [await centre.create(f"line-{number}") for number in range(4)]
    for cluster in clusters[2:]:
        by_hand(centre, cluster, {"by-hand/a.yaml": b"kind: ConfigMap\n"})
    read, paths = type(centre.git).read, list[str]()

    def noted(git: BareGitServer, repository: UUID, path: str, *, at: str) -> bytes | None:
        paths.append(path)
        return read(git, repository, path, at=at)

    monkeypatch.setattr(type(centre.git), "read", noted)
    assert (await admin.delete(LINE)).status_code == 204
    assert sorted(path for path in paths if path.startswith("by-hand/")) == [
        "by-hand/README.md",
        "by-hand/README.md",
        "by-hand/a.yaml",
    ]


@pytest.mark.parametrize("door", ["git/shared/press-line", "git/shared/press-line.git", "uuid/{uuid}"])
async def test_every_door_has_the_bounds_of_pushes(
    centre: GatewayCentre,
    admin: httpx.AsyncClient,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    door: str,
) -> None:
    uuid = (await admin.put(LINE)).json()["uuid"]
    token = (await centre.token(Permission.READ, Permission.PUSH)).text
    url, work = f"http://git:{token}@127.0.0.1:{port}/{door.format(uuid=uuid)}", tmp_path / "work"

    async def refusal() -> str:
        await git("add", ".", cwd=work)
        await git("commit", "-q", "-m", "Ours", cwd=work)
        pushed = await git("push", url, "main", cwd=work)
        assert pushed.returncode != 0
        await git("reset", "-q", "--hard", "empty", cwd=work)
        return pushed.stderr

    await git("init", "-q", "-b", "main", str(work), cwd=tmp_path)
    await git("commit", "-q", "--allow-empty", "-m", "Nothing", cwd=work)
    await git("tag", "empty", cwd=work)
    (work / "large").write_bytes(bytes(17 * MIB))
    assert "The push has a file larger than 16 MiB" in await refusal()
    (work / "link").symlink_to("/etc/passwd")
    assert "link is a symbolic link" in await refusal()
    monkeypatch.setattr(git_routes, "PushContext", partial(PushContext, limit=MIB))
    (work / "random").write_bytes(os.urandom(2 * MIB))
    assert "The push is larger than 1 MiB" in await refusal()
    assert centre.git.head(UUID(uuid)) is None


async def pushed_first(centre: GatewayCentre, port: int, folder: Path, name: str | None = None) -> None:
    """A first push by whoever may push. ``name``: of the token."""
    token = (await centre.token(Permission.READ, Permission.PUSH, name=name)).text
    work = folder / "work"
    await git("init", "-q", "-b", "main", str(work), cwd=folder)
    (work / "apps").mkdir(exist_ok=True)
    (work / "apps" / "press.yaml").write_text("kind: ConfigMap\n")
    await git("add", ".", cwd=work)
    await git("commit", "-q", "-m", "Ours", cwd=work)
    pushed = await git("push", f"http://git:{token}@127.0.0.1:{port}/git/shared/press-line", "main", cwd=work)
    assert pushed.returncode == 0, pushed.stderr


async def test_people_push_any_path_and_every_edge_fetches_it(
    centre: GatewayCentre, admin: httpx.AsyncClient, port: int, tmp_path: Path
) -> None:
    repository = UUID((await admin.put(LINE)).json()["uuid"])
    cluster = await centre.create("press-shop")
    edge = await centre.register(cluster)
    centre.fleet.nudged.clear()
    position = await centre.ports.audit.last_position()
    await pushed_first(centre, port, tmp_path, "pusher")
    head = centre.git.head(repository)
    assert (await listed(admin))["press-line"]["commit"] == head
    [event] = [each for each in await centre.ports.audit.events(after=position) if each.kind == "git.pushed"]
    assert (event.cluster, event.actor) == (None, "token:pusher")
    assert event.message == f"Pushed to main of shared/press-line: nothing → {(head or '')[:12]}."
    assert event.detail == {"old": "0" * 40, "new": head, "repository": "shared/press-line"}
    assert not centre.fleet.nudged
    for number, path in enumerate((f"uuid/{repository}", "git/shared/press-line", "git/shared/press-line.git")):
        url = f"http://{cluster}:{edge.flux}@127.0.0.1:{port}/{path}"
        cloned = await git("clone", "-q", url, f"edge{number}", cwd=tmp_path)
        assert cloned.returncode == 0, cloned.stderr
        assert (tmp_path / f"edge{number}/apps/press.yaml").is_file()
        assert (await git("-C", f"edge{number}", "push", url, "HEAD:main", cwd=tmp_path)).returncode != 0


async def test_credentials_read_and_push_what_they_may(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    repository = (await admin.put(LINE)).json()["uuid"]
    edge = await centre.register(await centre.create("press-shop"))
    callers = {
        "read": await centre.operator(Permission.READ),
        "push": await centre.operator(Permission.PUSH),
        "flux": centre.client(edge.as_flux),
        "agent": centre.client(edge.as_agent),
        "nobody": centre.client(),
    }
    for path in (f"/uuid/{repository}", "/git/shared/press-line"):
        statuses = {
            who: [(await each.get(f"{path}/info/refs?{service}")).status_code for service in (UPLOAD, RECEIVE)]
            for who, each in callers.items()
        }
        assert statuses == {
            "read": [200, 403],
            "push": [403, 200],
            "flux": [200, 403],
            "agent": [403, 403],
            "nobody": [401, 401],
        }
    pending = await centre.register(await centre.create("pending", accept="manual"), uid="uid-2")
    refused = await centre.client(pending.as_flux).get(f"/uuid/{repository}/info/refs?{UPLOAD}")
    assert problem_of(refused) == (403, "pending_acceptance")


async def test_edges_that_poll_cause_no_look_at_shared_repositories(centre: GatewayCentre) -> None:
    cluster = await centre.create("press-shop")
    edge = await centre.register(cluster)
    room = centre.app.state.git_room
    nothing: Any = None
    centre.app.state.git_room = replace(room, repositories=SharedRepositories(nothing, nothing, nothing))
    flux = centre.client(edge.as_flux)
    for path in (f"/uuid/{cluster}", "/git/shared/helm-charts", f"/uuid/{REPOSITORY_HELM_CHARTS}"):
        assert (await flux.get(f"{path}/info/refs?{UPLOAD}")).status_code == 200
    assert (await flux.get(f"/uuid/{uuid4()}/info/refs?{UPLOAD}")).status_code == 500
