"""Charts that people push: whole or not at all, tried with what they feed, and kept apart from the centre's."""

import asyncio
import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import GatewayCentre
from shared_statements import statements_of

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.charts.folders import LARGEST_ARCHIVE
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.application import own_charts
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission

SCHEMA = '{"type": "object", "additionalProperties": false, "properties": {"line": {"type": "string"}}}'
PRESS = "/v1/chart/press"


@pytest.fixture(autouse=True)
def published(centre: GatewayCentre) -> None:
    publish_charts(centre.git, charts_path(), SealedSecretsChart())


@pytest.fixture
async def pusher(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.PUSH)


def chart(version: str = "1.0.0", **files: str) -> dict[str, str]:
    """The files of a chart."""
    metadata = f"apiVersion: v2\nname: press\nversion: {version}\nappVersion: 4.1\ndescription: A press\n"
    named = {path.replace("__", "/").replace("_", "."): content for path, content in files.items()}
    return {"Chart.yaml": metadata, "values.yaml": "line: one\n", **named}


def packed(files: Mapping[str, str | bytes], folder: str = "press") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, text in files.items():
            body = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return gzip.compress(content.getvalue())


def on_shelf(centre: GatewayCentre) -> dict[str, bytes | None]:
    """The files of the chart in the repository."""
    head = centre.git.head(REPOSITORY_HELM_CHARTS) or ""
    paths = centre.git.list(REPOSITORY_HELM_CHARTS, "own/press", at=head)
    return {path: centre.git.read(REPOSITORY_HELM_CHARTS, path, at=head) for path in paths}


def commits(centre: GatewayCentre) -> int:
    return len(centre.git.log(REPOSITORY_HELM_CHARTS, limit=100))


async def told(centre: GatewayCentre) -> list[tuple[str, str, str]]:
    found = await centre.ports.audit.events(after=0)
    kinds = {EventKind.CHART_PUSHED, EventKind.CHART_REMOVED}
    return [(each.kind, each.actor, each.message) for each in found if each.kind in kinds]


async def uses(admin: httpx.AsyncClient, **values: Any) -> None:
    """A Helm chart template that uses the chart."""
    answer = await admin.put("/v1/template/press", json={"chart": "press", "values": values})
    assert answer.status_code == 201, answer.text


async def test_a_chart_is_pushed_in_one_commit_and_replaced_as_a_whole(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    before = commits(centre)
    first = await pusher.put(PRESS, content=packed(chart(templates__a_yaml="kind: A\n")))
    assert first.status_code == 201, first.text
    assert on_shelf(centre).keys() == {"own/press/Chart.yaml", "own/press/values.yaml", "own/press/templates/a.yaml"}
    assert first.headers["ETag"] == '"1.0.0"'
    assert first.headers["Edgewright-Commit"] == first.json()["commit"] == centre.git.head(REPOSITORY_HELM_CHARTS)
    second = await pusher.put(PRESS, content=packed(chart("1.1.0", templates__b_yaml="kind: B\n")))
    assert (second.status_code, second.json()["replaced"]) == (200, "1.0.0")
    assert "own/press/templates/a.yaml" not in on_shelf(centre)
    assert on_shelf(centre)["own/press/templates/b.yaml"] == b"kind: B\n"
    assert commits(centre) == before + 2
    assert [(kind, message) for kind, _, message in await told(centre)] == [
        ("chart.pushed", "The chart press 1.0.0 was pushed."),
        ("chart.pushed", "The chart press 1.1.0 was pushed."),
    ]
    [press] = [each for each in (await admin.get("/v1/chart")).json()["items"] if each["name"] == "press"]
    assert press == {
        "name": "press",
        "version": "1.1.0",
        "app_version": "4.1",
        "description": "A press",
        "path": "own/press",
        "own": True,
        "templates": [],
        "clusters": 0,
    }


async def test_the_same_push_again_changes_nothing_and_answers_alike(
    centre: GatewayCentre, pusher: httpx.AsyncClient
) -> None:
    archive, new = packed(chart()), {"If-None-Match": "*"}
    first = await pusher.put(PRESS, content=archive, headers=new)
    before = commits(centre)
    again = await pusher.put(PRESS, content=archive, headers=new)
    assert (again.status_code, again.json()["commit"]) == (200, first.json()["commit"])
    assert (commits(centre), len(await told(centre))) == (before, 1)


async def test_a_version_with_other_files_is_refused(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    kept = on_shelf(centre)
    refused = await pusher.put(PRESS, content=packed(chart(values_yaml="line: two\n")))
    assert (refused.status_code, refused.json()["code"]) == (409, "chart_version_taken")
    assert "Raise the version" in refused.json()["hint"]
    assert on_shelf(centre) == kept


async def test_of_two_who_push_at_once_one_is_told(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    """Same version, other files: whoever comes second is refused, however the two meet."""
    archives = [packed(chart(values_yaml=f"line: '{number}'\n")) for number in range(4)]
    answers = await asyncio.gather(*(pusher.put(PRESS, content=archive) for archive in archives))
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409]
    assert {each.json()["code"] for each in answers if each.is_error} == {"chart_version_taken"}
    assert len(await told(centre)) == 1


async def test_a_head_that_moves_meanwhile_is_built_upon(
    centre: GatewayCentre, pusher: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = own_charts.OwnCharts._commit
    moved: list[bool] = []

    def others_first(self: own_charts.OwnCharts, *arguments: Any) -> str:
        if not moved:
            moved.append(True)
            head = centre.git.head(REPOSITORY_HELM_CHARTS)
            message = CommitMessage(subject="Another chart", actor="somebody")
            files = {"own/other/Chart.yaml": b"name: other\nversion: 1.0.0\n"}
            centre.git.commit(REPOSITORY_HELM_CHARTS, files, message, expected_head=head)
        return commit(self, *arguments)

    monkeypatch.setattr(own_charts.OwnCharts, "_commit", others_first)
    pushed = await pusher.put(PRESS, content=packed(chart()))
    assert (pushed.status_code, moved) == (201, [True])
    names = {
        each["path"] for each in (await (await centre.operator(Permission.READ)).get("/v1/chart")).json()["items"]
    }
    assert {"own/press", "own/other", "edge-cluster"} <= names


async def test_whoever_expects_another_version_is_told(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    late = await pusher.put(PRESS, content=packed(chart("1.2.0")), headers={"If-Match": '"0.9.0"'})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert "1.0.0" in late.json()["detail"]
    new = await pusher.put(PRESS, content=packed(chart("1.2.0")), headers={"If-None-Match": "*"})
    assert new.status_code == 412
    assert (await pusher.put(PRESS, content=packed(chart("1.2.0")), headers={"If-Match": '"1.0.0"'})).is_success
    gone = await pusher.delete(PRESS, headers={"If-Match": '"1.0.0"'})
    assert gone.status_code == 412


BROKEN: list[tuple[Mapping[str, str | bytes], str, str]] = [
    ({"README.md": "x"}, "chart_invalid", "no Chart.yaml"),
    ({**chart(), "Chart.yaml": "{"}, "chart_invalid", "Chart.yaml is not YAML"),
    ({**chart(), "Chart.yaml": "name: press\nversion: 1.0.0\n"}, "chart_invalid", "apiVersion"),
    ({**chart(), "Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}, "chart_invalid", "no name"),
    (chart("1.0"), "chart_invalid", "no version such as"),
    (chart("v1.0.0"), "chart_invalid", "no version such as"),
    ({**chart(), "Chart.yaml": "apiVersion: v2\nname: ../x\nversion: 1.0.0\n"}, "chart_name_invalid", "cannot be"),
    ({**chart(), "Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n"}, "chart_name_invalid", "other"),
    (chart(values_yaml="- a\n"), "chart_invalid", "values.yaml is not an object"),
    (chart(values_schema_json="{"), "chart_invalid", "values.schema.json is not JSON"),
    (chart(values_schema_json='{"type": 5}'), "chart_invalid", "is no JSON Schema"),
    ({**chart(), "../../../evil": "x"}, "path_invalid", "evil"),
    ({**chart(), ".git/hooks/pre-receive": "x"}, "path_invalid", "Git's own folder"),
    ({**chart(), "a\x1b[31m": "x"}, "path_invalid", "control character"),
    ({**chart(), "a": "x", "a/b": "x"}, "path_invalid", "a file and a folder"),
]


@pytest.mark.parametrize(("files", "code", "says"), BROKEN, ids=[each[2] for each in BROKEN])
async def test_what_is_no_chart_is_refused_in_words(
    centre: GatewayCentre, pusher: httpx.AsyncClient, files: Mapping[str, str | bytes], code: str, says: str
) -> None:
    before = commits(centre)
    refused = await pusher.put(PRESS, content=packed(files))
    assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
    assert says in refused.json()["detail"]
    assert "\x1b" not in refused.text
    assert commits(centre) == before


NO_ARCHIVES = {"empty": b"", "no gzip": b"x", "no tar": gzip.compress(b"x"), "bomb": gzip.compress(bytes(9 * 2**20))}


@pytest.mark.parametrize("body", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
async def test_what_is_no_archive_is_refused(centre: GatewayCentre, pusher: httpx.AsyncClient, body: bytes) -> None:
    refused = await pusher.put(PRESS, content=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "chart_invalid"), refused.text
    large = await pusher.put(PRESS, content=b"x" * (LARGEST_ARCHIVE + 1))
    assert (large.status_code, str(LARGEST_ARCHIVE) in large.json()["detail"]) == (422, True)
    assert on_shelf(centre) == {}


async def test_a_chart_that_does_not_take_the_values_of_its_template_is_refused(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin, line="one", speed="s3cr3t")
    refused = await pusher.put(PRESS, content=packed(chart("1.1.0", values_schema_json=SCHEMA)))
    assert (refused.status_code, refused.json()["code"]) == (422, "chart_misfit")
    assert "of the Helm chart template press: speed: there is no such value." in refused.json()["detail"]
    assert "s3cr3t" not in refused.text
    assert b"1.0.0" in (on_shelf(centre)["own/press/Chart.yaml"] or b"")


async def test_a_chart_that_does_not_take_the_values_of_a_cluster_is_refused(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin, line="one")
    await centre.create("line-1", chart="press", values={"speed": 3})
    await centre.create("line-2")
    refused = await pusher.put(PRESS, content=packed(chart("1.1.0", values_schema_json=SCHEMA)))
    assert (refused.status_code, refused.json()["code"]) == (422, "chart_misfit")
    assert "of the cluster line-1: speed: there is no such value." in refused.json()["detail"]
    fitting = SCHEMA.replace('"line"', '"speed": {}, "line"')
    pushed = await pusher.put(PRESS, content=packed(chart("1.1.0", values_schema_json=fitting)))
    assert (pushed.status_code, pushed.json()["clusters"], pushed.json()["unchecked_clusters"]) == (200, 1, 0)


async def test_clusters_that_there_was_no_time_for_are_counted(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin, line="one")
    await centre.create("line-1", chart="press", values={"speed": 3})
    monkeypatch.setattr(own_charts, "TRIAL_SECONDS", -1.0)
    pushed = await pusher.put(PRESS, content=packed(chart("1.1.0", values_schema_json=SCHEMA)))
    assert (pushed.status_code, pushed.json()["unchecked_clusters"]) == (200, 1)


async def test_a_dependency_beside_the_chart_is_read(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """Its schema counts for the values below its name."""
    library = {**chart(values_schema_json=SCHEMA), "Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n"}
    assert (await pusher.put("/v1/chart/lib", content=packed(library))).is_success
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin, lib={"lime": "x"})
    depends = "dependencies: [{name: lib, version: 1.0.0, repository: 'file://../lib'}]\n"
    files = chart("1.1.0")
    refused = await pusher.put(PRESS, content=packed({**files, "Chart.yaml": files["Chart.yaml"] + depends}))
    assert (refused.status_code, refused.json()["code"]) == (422, "chart_misfit"), refused.text
    assert "lib.lime" in refused.json()["detail"]


async def test_a_chart_that_another_depends_on_stays(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    library = {**chart(), "Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n"}
    await pusher.put("/v1/chart/lib", content=packed(library))
    depends = "dependencies: [{name: lib, version: 1.0.0, repository: 'file://../lib'}]\n"
    files = chart()
    await pusher.put(PRESS, content=packed({**files, "Chart.yaml": files["Chart.yaml"] + depends}))
    refused = await pusher.delete("/v1/chart/lib")
    assert (refused.status_code, refused.json()["code"]) == (409, "chart_in_use")
    assert "The chart press depends on this one." in refused.json()["detail"]
    assert (await pusher.delete(PRESS)).status_code == 204
    assert (await pusher.delete("/v1/chart/lib")).status_code == 204


async def test_names_of_the_centres_charts_are_taken(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    files = {**chart(), "Chart.yaml": "apiVersion: v2\nname: edge-cluster\nversion: 9.0.0\n"}
    refused = await pusher.put("/v1/chart/edge-cluster", content=packed(files))
    assert (refused.status_code, refused.json()["code"]) == (409, "chart_name_taken")
    removed = await pusher.delete("/v1/chart/edge-cluster")
    assert (removed.status_code, removed.json()["code"]) == (404, "chart_unknown")


async def test_there_is_room_for_so_many_charts(
    centre: GatewayCentre, pusher: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_charts, "MOST_OWN_CHARTS", 1)
    await pusher.put(PRESS, content=packed(chart()))
    other = {**chart(), "Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n"}
    refused = await pusher.put("/v1/chart/other", content=packed(other))
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_charts")
    assert (await pusher.put(PRESS, content=packed(chart("1.1.0")))).is_success


async def test_a_chart_in_use_stays_until_no_template_uses_it(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin)
    refused = await pusher.delete(PRESS)
    assert (refused.status_code, refused.json()["code"]) == (409, "chart_in_use")
    assert (await admin.delete("/v1/template/press")).status_code == 204
    removed = await pusher.delete(PRESS)
    assert (removed.status_code, removed.headers["Edgewright-Commit"]) == (
        204,
        centre.git.head(REPOSITORY_HELM_CHARTS),
    )
    assert on_shelf(centre) == {}
    assert (await pusher.delete(PRESS)).json()["code"] == "chart_unknown"
    assert (await told(centre))[-1][::2] == ("chart.removed", "The chart press 1.0.0 was removed.")


async def test_a_start_of_the_centre_leaves_pushed_charts_alone(
    centre: GatewayCentre, pusher: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    kept, head = on_shelf(centre), centre.git.head(REPOSITORY_HELM_CHARTS)
    assert publish_charts(centre.git, charts_path(), SealedSecretsChart()) == head
    assert on_shelf(centre) == kept


@pytest.mark.parametrize("permission", [Permission.READ, Permission.CLUSTERS, Permission.SECRETS])
async def test_only_who_may_push_pushes(centre: GatewayCentre, permission: Permission) -> None:
    other = await centre.operator(permission)
    for answer in (await other.put(PRESS, content=packed(chart())), await other.delete(PRESS)):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert on_shelf(centre) == {}


async def test_a_centre_without_charts_says_so(centre: GatewayCentre, pusher: httpx.AsyncClient) -> None:
    centre.git.archive(REPOSITORY_HELM_CHARTS)
    answer = await pusher.put(PRESS, content=packed(chart()))
    assert (answer.status_code, answer.json()["code"]) == (503, "charts_unpublished")


# --- templates ---


async def test_a_template_is_made_changed_and_shown_by_its_name(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    made = await admin.put("/v1/template/press", json={"chart": "press", "values": {"line": "{{ name }}"}})
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["chart"], body["prefix"], body["source"]) == ("own/press", "press", "helm-charts")
    entry = await admin.get(f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{body['uuid']}")
    assert entry.json() == {"chart": "own/press", "prefix": "press", "values": {"line": "{{ name }}"}}
    assert entry.headers["ETag"] == made.headers["ETag"]
    for name in ("press", body["uuid"], body["uuid"].upper()):
        shown = await admin.get(f"/v1/template/{name}")
        assert (shown.json(), shown.headers["ETag"]) == (body, made.headers["ETag"])
    changed = await admin.put("/v1/template/press", json={"chart": "edge-cluster"})
    assert (changed.status_code, changed.json()["chart"], changed.json()["prefix"]) == (200, "edge-cluster", None)
    listed = (await admin.get("/v1/template")).json()["items"]
    assert [each["name"] for each in listed] == ["edge-cluster", "press"]
    assert "values" not in listed[0]


async def test_a_template_gives_its_chart_to_clusters_that_name_it(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    await uses(admin, line="{{ name }}")
    cluster = await centre.create("line-1", chart="press")
    release = centre.git.read(cluster, "edo/cluster/edge-cluster.yaml", at=centre.git.head(cluster) or "")
    assert release is not None and b"chart: own/press" in release and b"line: line-1" in release
    [press] = [each for each in (await admin.get("/v1/chart")).json()["items"] if each["own"]]
    assert (press["templates"], press["clusters"]) == (["press"], 1)
    assert (await admin.get("/v1/template/press")).json()["clusters"] == 1
    refused = await admin.delete("/v1/template/press")
    assert (refused.status_code, refused.json()["code"]) == (409, "template_in_use")
    assert "line-1" in refused.json()["detail"]


async def test_lists_of_charts_and_templates_take_no_more_statements_the_longer_they_are(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))

    async def listed(path: str) -> tuple[int, int]:
        with statements_of(centre.database) as run:
            items = (await admin.get(path)).json()["items"]
        return len(run), sum(each["clusters"] for each in items)

    paths = ("/v1/chart", "/v1/template")
    await listed(paths[0])  # whoever calls for the first time is looked up
    few = {path: await listed(path) for path in paths}
    values = (await admin.get("/v1/template/edge-cluster")).json()["values"]
    for number in range(6):
        wish = {"chart": "edge-cluster", "values": values} if number % 2 else {"chart": "press"}
        assert (await admin.put(f"/v1/template/t{number}", json=wish)).status_code == 201
        await centre.create(f"line-{number}", chart=f"t{number}")
    for path in paths:
        statements, clusters = few[path]
        assert await listed(path) == (statements, clusters + 6), path


async def test_of_two_who_make_a_template_one_is_told(
    centre: GatewayCentre, pusher: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await pusher.put(PRESS, content=packed(chart()))
    wishes = [{"chart": "press", "values": {"line": str(number)}} for number in range(4)]
    answers = await asyncio.gather(*(admin.put("/v1/template/press", json=wish) for wish in wishes))
    assert {each.status_code for each in answers} <= {201, 200, 412}
    assert [each.status_code for each in answers].count(201) == 1
    named = [each for each in (await admin.get("/v1/template")).json()["items"] if each["name"] == "press"]
    assert len(named) == 1


async def test_whoever_changes_an_older_template_is_told(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    made = await admin.put("/v1/template/one", json={"chart": "edge-cluster"})
    held = {"If-Match": made.headers["ETag"]}
    assert (
        await admin.put("/v1/template/one", json={"chart": "edge-cluster", "prefix": "a"}, headers=held)
    ).is_success
    late = await admin.put("/v1/template/one", json={"chart": "edge-cluster", "prefix": "b"}, headers=held)
    assert late.status_code == 412
    assert (await admin.delete("/v1/template/one", headers=held)).status_code == 412


@pytest.mark.parametrize(
    ("name", "wish", "status", "code"),
    [
        ("press", {"chart": "prss"}, 422, "chart_missing"),
        ("press", {"chart": "../../x"}, 422, "chart_missing"),
        ("press", {"chart": "own"}, 422, "chart_missing"),
        ("a b", {"chart": "edge-cluster"}, 422, "name_invalid"),
        ("$(rm -rf .)", {"chart": "edge-cluster"}, 422, "name_invalid"),
        ("00000000-0000-4000-8000-000000000000", {"chart": "edge-cluster"}, 404, "template_unknown"),
        ("press", {"chart": "edge-cluster", "values": {"clustr": {}}}, 422, "values_misfit"),
        ("press", {"chart": "edge-cluster", "source": "Bad Source"}, 422, "source_invalid"),
        ("press", {"chart": "edge-cluster", "prefix": "-"}, 422, "source_invalid"),
        ("press", {"chart": ""}, 422, "request_invalid"),
        ("press", {}, 422, "request_invalid"),
    ],
)
async def test_a_template_that_cannot_be_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient, name: str, wish: dict[str, Any], status: int, code: str
) -> None:
    refused = await admin.put(
        f"/v1/template/{httpx.URL('/').copy_with(path=f'/{name}').raw_path.decode()[1:]}", json=wish
    )
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
    assert "^" not in refused.json()["detail"]
    assert [each["name"] for each in (await admin.get("/v1/template")).json()["items"]] == ["edge-cluster"]


async def test_an_unknown_template_is_guessed(admin: httpx.AsyncClient) -> None:
    answer = await admin.get("/v1/template/edge-clustr")
    assert (answer.status_code, answer.json()["code"]) == (404, "template_unknown")
    assert answer.json()["hint"] == "Did you mean edge-cluster?"
    created = await admin.post("/v1/cluster", json={"name": "line-1", "chart": "edge-clustr"})
    assert (created.status_code, created.json()["code"]) == (422, "chart_unknown")
    assert created.json()["hint"] == "Did you mean edge-cluster?"


async def test_two_templates_of_one_name_are_told_apart_by_uuid(admin: httpx.AsyncClient) -> None:
    values = (await admin.get("/v1/template/edge-cluster")).json()["values"]
    wish, made = {"chart": "edge-cluster", "values": values}, []
    for name in "ab":
        made.append(UUID((await admin.put(f"/v1/template/{name}", json=wish)).json()["uuid"]))
    for each in made:
        info = f"/v1/app/64a8bfa9-7772-45c4-9d1a-9e6290690957/object/{each}"
        assert (await admin.put(info, json={"name": "same"})).is_success
    answer = await admin.get("/v1/template/same")
    assert (answer.status_code, answer.json()["code"]) == (409, "template_ambiguous")
    assert all(str(each) in answer.json()["hint"] for each in made)
    cluster = await admin.post("/v1/cluster", json={"name": "line-1", "chart": "same"})
    assert (cluster.status_code, cluster.json()["code"]) == (422, "template_ambiguous")
    assert (await admin.post("/v1/cluster", json={"name": "line-1", "chart": str(made[1])})).status_code == 201
    new = await admin.put("/v1/template/a", json={"chart": "edge-cluster"})
    assert new.status_code == 201, "the one that was called so is another one now"
    assert UUID(new.json()["uuid"]) not in made


async def test_the_default_template_stays(admin: httpx.AsyncClient) -> None:
    refused = await admin.delete(f"/v1/template/{OBJECT_DEFAULT_CHART}")
    assert (refused.status_code, refused.json()["code"]) == (409, "template_in_use")


async def test_templates_are_read_by_readers_and_written_by_who_may_change_clusters(centre: GatewayCentre) -> None:
    reader, pusher = await centre.operator(Permission.READ), await centre.operator(Permission.PUSH)
    assert (await reader.get("/v1/template/edge-cluster")).status_code == 200
    for other in (reader, pusher):
        assert (await other.put("/v1/template/x", json={"chart": "edge-cluster"})).status_code == 403
        assert (await other.delete("/v1/template/edge-cluster")).status_code == 403
