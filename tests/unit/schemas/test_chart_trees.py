"""A chart and what it depends on: found where Helm and Flux find it, and read within bounds."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

import pytest
from memory_git_server import MemoryGitServer

from edgewright.adapters.charts import folders, trees
from edgewright.adapters.charts.coalescing import Chart, given_to_each
from edgewright.adapters.charts.folders import Unusable
from edgewright.adapters.charts.misfits import Misfit
from edgewright.adapters.charts.schemas import ChartSchemas, Unchecked
from edgewright.adapters.charts.trees import ChartTree, read_tree
from edgewright.domain.rendering import ChartRelease
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

CHART = "broker/Chart.yaml"
SCHEMA = json.dumps({"properties": {"port": {"type": "integer"}}}).encode()


def metadata(name: str, *dependencies: Mapping[str, Any]) -> bytes:
    return json.dumps({"name": name, "dependencies": list(dependencies)}).encode()


def packed(files: Mapping[str, bytes], *, folder: str = "mqtt") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return made.getvalue()


def held(files: Mapping[str, bytes]) -> tuple[MemoryGitServer, str]:
    git = MemoryGitServer()
    git.create_repository(REPOSITORY_HELM_CHARTS)
    message = CommitMessage(subject="Ours", actor="test")
    return git, git.commit(REPOSITORY_HELM_CHARTS, files, message, expected_head=None)


def tree(files: Mapping[str, bytes]) -> ChartTree:
    git, head = held(files)
    return read_tree(git, "broker", at=head)


def verdicts(files: Mapping[str, bytes], values: Mapping[str, Any]) -> list[Misfit | Unchecked]:
    return list(ChartSchemas(held(files)[0]).verdicts([ChartRelease("broker", values)]))


MQTT = {"Chart.yaml": metadata("mqtt"), "values.schema.json": SCHEMA}
PLACES: list[Mapping[str, bytes]] = [
    {CHART: metadata("broker"), **{f"broker/charts/any/{file}": content for file, content in MQTT.items()}},
    {CHART: metadata("broker"), "broker/charts/mqtt-1.0.0.tgz": packed(MQTT)},
    {
        CHART: metadata("broker", {"name": "mqtt", "repository": "file://../common/mqtt"}),
        **{f"common/mqtt/{file}": content for file, content in MQTT.items()},
    },
    {
        CHART: b"name: broker\napiVersion: v1\n",
        "broker/requirements.yaml": b"dependencies: [{name: mqtt, repository: 'file://../mqtt'}]\n",
        **{f"mqtt/{file}": content for file, content in MQTT.items()},
    },
]


@pytest.mark.parametrize("files", PLACES, ids=["folder", "archive", "local", "requirements"])
def test_a_dependency_is_found_wherever_it_stands(files: Mapping[str, bytes]) -> None:
    [found] = verdicts(files, {"mqtt": {"port": "x"}})
    assert isinstance(found, Misfit)
    assert (found.pointer, found.sentence) == ("/mqtt/port", "mqtt.port: has to be a whole number.")
    assert verdicts(files, {"mqtt": {"port": 1883}}) == []


def test_one_inside_an_archive_inside_an_archive_is_found() -> None:
    inner = packed({"Chart.yaml": metadata("cache"), "values.schema.json": SCHEMA}, folder="cache")
    outer = packed({"Chart.yaml": metadata("mqtt"), "charts/cache-1.tgz": inner})
    files = {CHART: metadata("broker"), "broker/charts/mqtt-1.tgz": outer}
    [found] = verdicts(files, {"mqtt": {"cache": {"port": "x"}}})
    assert isinstance(found, Misfit)
    assert found.pointer == "/mqtt/cache/port"


def test_what_is_no_object_where_a_dependency_gets_its_values_is_a_misfit() -> None:
    [found] = verdicts(PLACES[0], {"mqtt": ["x"]})
    assert isinstance(found, Misfit)
    assert found.sentence == "mqtt: has to be an object."


def test_a_dependency_from_elsewhere_is_left_to_the_edge() -> None:
    files = {CHART: metadata("broker", {"name": "mqtt", "repository": "https://charts.example.com"})}
    assert verdicts(files, {"mqtt": {"port": "x"}}) == []
    outside = {CHART: metadata("broker", {"name": "mqtt", "repository": "file://../../mqtt"})}
    assert verdicts(outside, {"mqtt": {"port": "x"}}) == []


BOMB = gzip.compress(bytes(folders.LARGEST_UNPACKED + 1), mtime=0)


def with_holes() -> bytes:
    """A file that says of itself that it has 1 TB, of which nothing stands in the archive."""
    made = io.BytesIO()
    member = tarfile.TarInfo("mqtt/values.yaml")
    member.pax_headers = {"GNU.sparse.size": str(10**12), "GNU.sparse.map": "0,0"}
    with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.PAX_FORMAT) as opened:
        opened.addfile(member)
    return made.getvalue()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("charts/mqtt-1.tgz", with_holes(), "charts/mqtt-1.tgz has a file with holes"),
        ("charts/mqtt-1.tgz", b"no archive", "charts/mqtt-1.tgz is not a packed chart"),
        ("charts/mqtt-1.tgz", gzip.compress(b"no archive", mtime=0), "charts/mqtt-1.tgz is not a packed chart"),
        ("charts/mqtt-1.tgz", packed(MQTT)[:-20], "charts/mqtt-1.tgz is not a packed chart"),
        ("charts/mqtt-1.tgz", BOMB, "bytes unpacked"),
        ("charts/mqtt-1.tgz", bytes(folders.LARGEST_ARCHIVE + 1), "charts/mqtt-1.tgz has more than"),
        ("charts/mqtt/Chart.yaml", b"[", "charts/mqtt/Chart.yaml is not YAML"),
        ("charts/mqtt/values.schema.json", b"{", "charts/mqtt/values.schema.json is not JSON"),
    ],
    ids=("holes", "no gzip", "no tar", "cut off", "bomb", "too long", "no YAML", "no JSON"),
)
def test_a_dependency_that_cannot_be_read_is_told_and_the_chart_itself_still_checked(
    file: str, content: bytes, said: str
) -> None:
    own = {
        CHART: metadata("broker"),
        "broker/values.schema.json": SCHEMA,
        "broker/charts/mqtt/Chart.yaml": b"name: m",
    }
    files = {**own, f"broker/{file}": content}
    [found] = verdicts(files, {"port": 1})
    assert isinstance(found, Unchecked)
    assert said in found.reason
    [found] = verdicts(files, {"port": "x"})
    assert isinstance(found, Misfit)


def test_charts_are_bounded_in_number_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"broker/charts/c{number}/Chart.yaml": metadata(f"c{number}") for number in range(trees.MOST_CHARTS + 5)}
    found = tree({CHART: metadata("broker"), **many})
    assert len(list(found.chart.all())) == trees.MOST_CHARTS
    assert "more than 32" in found.unread[0]
    circle = {CHART: metadata("broker", {"name": "broker", "repository": "file://../broker"})}
    assert "nested too deep" in tree(circle).unread[0]


def test_files_of_an_archive_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 1)
    with pytest.raises(Unusable, match="more than 1 files"):
        folders.unpacked(packed(MQTT), "mqtt.tgz")


def test_all_schemas_of_a_release_share_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    costly = json.dumps({"properties": {"list": {"items": {"minimum": 0}}}}).encode()
    own = {CHART: metadata("broker"), "broker/values.schema.json": costly}
    more = {f"broker/charts/c{n}/values.schema.json": costly for n in range(9)}
    named = {f"broker/charts/c{n}/Chart.yaml": metadata(f"c{n}") for n in range(9)}
    values = {"list": [1] * 9_000}
    assert verdicts({**own}, values) == []
    [found] = verdicts({**own, **more, **named}, {**values, **{f"c{n}": values for n in range(9)}})
    assert isinstance(found, Unchecked)
    assert "too many steps" in found.reason


def test_values_are_laid_over_defaults_as_helm_does() -> None:
    defaults: dict[str, Any] = {"a": {"b": 1, "c": {"d": 2}}, "kept": True, "gone": 1, "list": [1, 2]}
    values = {"a": {"c": {"d": None, "e": 3}}, "gone": None, "list": [3], "own": None}
    laid = {"a": {"b": 1, "c": {"e": 3}}, "kept": True, "list": [3], "own": None}
    assert [each.values for each in given_to_each(Chart(defaults=defaults), values)] == [laid]
    assert defaults["a"] == {"b": 1, "c": {"d": 2}}
