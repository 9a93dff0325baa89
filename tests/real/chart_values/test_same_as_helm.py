"""The centre and the real helm say the same of values: what one refuses, the other does, too."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from components import component
from edge_cluster.helm import Helm
from edge_cluster.helm_release import checked_out_chart, packed_sealed_secrets
from memory_git_server import MemoryGitServer

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.charts.folders import unpacked
from edgewright.adapters.charts.misfits import Misfit
from edgewright.adapters.charts.schemas import ChartSchemas
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart, with_names_of
from edgewright.domain.rendering import ChartRelease
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

if TYPE_CHECKING:
    from pathlib import Path

    from edgewright.ports.git_server import GitServer

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

IDENTITY = {"name": "press-shop", "uuid": "f59cc279-9125-4d36-a37f-d9fcc13ba0c4", "organisation": "ACME"}
REFUSALS = ("values don't meet the specifications", "type mismatch on ")
"""How Helm refuses values: by a schema, or for what stands where the values of a dependency belong."""
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    folder = tmp_path_factory.mktemp("helm")
    return Helm(component("helm"), folder / "none", folder)


def takes(helm: Helm, chart: Path, values: dict[str, Any]) -> bool:
    """Whether helm takes the values for a chart; all else about the chart is in order."""
    file = chart.parent / "given.yaml"
    file.write_text(yaml.safe_dump(values))
    done = helm.try_("template", "release", chart, "--values", file, "--kube-version", "1.33")
    assert done.returncode == 0 or any(refusal in done.stderr for refusal in REFUSALS), done.stderr
    return done.returncode == 0


def refused(git: GitServer, chart: str, values: dict[str, Any]) -> bool:
    verdicts = list(ChartSchemas(git).verdicts([ChartRelease(chart, values)]))
    assert all(isinstance(verdict, Misfit) for verdict in verdicts), verdicts
    return bool(verdicts)


def test_of_the_chart_that_clusters_get(helm: Helm, tmp_path: Path) -> None:
    git = BareGitServer(tmp_path / "repositories")
    publish_charts(git, charts_path(), SealedSecretsChart(packed_sealed_secrets(helm, tmp_path).as_uri()))
    chart = checked_out_chart(git, tmp_path / "checked-out")
    cases: list[tuple[bool, dict[str, Any]]] = [
        (True, {}),
        (True, {"global": {"any": ["thing"]}}),
        (True, {"sealed-secrets": {"enabled": True, "resources": {"limits": None}}}),
        (True, {"sealed-secrets": {"enabled": True, "tolerations": None, "podLabels": None, "image": {"tag": None}}}),
        (True, {"sealed-secrets": {"livenessProbe": {"terminationGracePeriodSeconds": 1}, "global": {"a": 1}}}),
        (True, {"sealed-secrets": {"metrics": {"service": {"labels": {"a": "b"}}}, "affinity": {"any": 1}}}),
        (False, {"sealed-secrets": {"enabled": False, "misspelt": 1}}),
        (False, {"sealed-secrets": {"enabled": True, "enabld": False}}),
        (False, {"sealed-secrets": {"image": {"repo": "own"}}}),
        (False, {"sealed-secrets": {"metrics": {"serviceMonitor": {"enable": True}}}}),
        (False, {"sealed-secrets": {"rbac": "none"}}),
        (False, {"replicas": 2}),
        (False, {"replicas": None}),
        (False, {"global": "text"}),
        (False, {"sealed-secret": {"enabled": False}}),
        (False, {"sealed-secrets": {"enabled": "yes"}}),
        (False, {"sealed-secrets": {"namespace": ""}}),
        (False, {"cluster": {**IDENTITY, "site": "leeds"}}),
        (False, {"cluster": {**IDENTITY, "uuid": "none"}}),
        (False, {"cluster": {**IDENTITY, "organisation": None}}),
        (False, {"cluster": {**IDENTITY, "name": 7}}),
        (False, {"cluster": None}),
    ]
    for fits, given in cases:
        values = {"cluster": IDENTITY, **given}
        assert (takes(helm, chart, values), not refused(git, "edge-cluster", values)) == (fits, fits), given
        assert (takes(helm, chart, values), not refused(git, "edge-cluster", values)) == (fits, fits), given


def test_names_of_the_dependency_are_those_of_its_version(helm: Helm, tmp_path: Path) -> None:
    archive = unpacked(packed_sealed_secrets(helm, tmp_path).read_bytes(), "sealed-secrets")
    metadata = yaml.safe_load((charts_path() / "edge-cluster/Chart.yaml").read_text())
    schema = json.loads((charts_path() / "edge-cluster/values.schema.json").read_text())
    stated = schema["properties"]["sealed-secrets"]
    version = yaml.safe_load(archive.read("Chart.yaml") or b"")["version"]
    assert version == metadata["dependencies"][0]["version"]
    assert with_names_of(archive, stated) == stated


DEPENDENCIES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # What Chart.yaml says of the dependency, the defaults of the chart itself, and the values of the release
    ({}, {}, {"mqtt": {"port": "x"}}),
    ({}, {}, {"mqtt": {"port": 2}}),
    ({}, {}, {"mqtt": {"prt": 2}}),
    ({}, {}, {"mqtt": {"port": None}}),
    ({}, {}, {"mqtt": None}),
    ({}, {"mqtt": {"port": 2}}, {"mqtt": {"port": None}}),
    ({}, {"mqtt": {"port": "x"}}, {}),
    ({}, {"mqtt": {"port": "x"}}, {"mqtt": {"port": 2}}),
    ({}, {}, {"global": {"site": "leeds"}}),
    ({}, {}, {"global": {"site": 7}}),
    ({}, {}, {"mqtt": {"global": {"site": 7}}}),
    ({}, {}, {"mqtt": {"global": {"site": 7}}, "global": {"site": "leeds"}}),
    ({"alias": "bus"}, {}, {"bus": {"port": "x"}}),
    ({"alias": "bus"}, {}, {"mqtt": {"port": "x"}}),
    ({"condition": "mqtt.enabled"}, {}, {"mqtt": {"enabled": False, "port": "x"}}),
    ({"condition": "mqtt.enabled"}, {}, {"mqtt": {"enabled": True, "port": 2}}),
    ({"condition": "mqtt.enabled"}, {}, {"mqtt": {"enabled": "no", "port": 2}}),
    ({"condition": "on,mqtt.enabled"}, {"on": True}, {"mqtt": {"enabled": False, "port": "x"}}),
    ({"condition": "on"}, {"on": False}, {"mqtt": {"port": "x"}}),
    ({"tags": ["bus"]}, {}, {"tags": {"bus": False}, "mqtt": {"port": "x"}}),
    ({"tags": ["bus", "all"]}, {}, {"tags": {"bus": False, "all": True}, "mqtt": {"port": "x"}}),
    ({"tags": ["bus"], "condition": "on"}, {"on": True}, {"tags": {"bus": False}, "mqtt": {"port": "x"}}),
    ({"import-values": [{"child": "own", "parent": "taken"}]}, {}, {}),
    ({"import-values": [{"child": "own", "parent": "taken"}]}, {}, {"taken": {"size": 2}}),
    ({"import-values": [{"child": "own", "parent": "other"}]}, {}, {}),
    ({}, {}, {"mqtt": {"cache": {"size": "x"}}}),
    ({}, {}, {"mqtt": {"cache": {"size": 2}}}),
    ({}, {}, {"mqtt": {"cache": {"on": False, "size": "x"}}}),
]


@pytest.mark.parametrize("packed", [False, True])
def test_of_what_a_chart_depends_on(helm: Helm, tmp_path: Path, packed: bool) -> None:
    verdicts = set()
    for number, (stated, defaults, values) in enumerate(DEPENDENCIES):
        folder = tmp_path / str(number)
        chart = _chart(folder, {"properties": {"taken": {"properties": {"size": {"maximum": 3}}}}}, defaults)
        _requires(chart, {"name": "mqtt", "version": "0.1.0", **stated})
        closed = {"port": {"type": "integer"}, "own": {}, "cache": {}, "enabled": {"type": "boolean"}}
        schema = {"additionalProperties": False, "required": ["port"], "properties": {**closed, "global": SITE}}
        below = _chart(chart / "charts", schema, {"port": 1, "own": {"size": 7}}, name="mqtt")
        _requires(below, {"name": "cache", "version": "0.1.0", "condition": "cache.on"})
        _chart(below / "charts", {"properties": {"size": {"type": "integer"}}}, {"size": 1}, name="cache")
        if packed:
            helm("package", below, "--destination", chart / "charts")
            shutil.rmtree(below)
        taken = takes(helm, chart, values)
        assert refused(_held(folder), "broker", values) != taken, (stated, defaults, values)
        verdicts.add(taken)
    assert verdicts == {True, False}


SITE = {"properties": {"site": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "defaults", "values"),
    [
        ({"$schema": DRAFT_4, "properties": {"port": {"minimum": 1, "exclusiveMinimum": True}}}, {}, {"port": 1}),
        ({"$schema": DRAFT_7, "properties": {"a": {"items": [{"type": "string"}]}}}, {}, {"a": [1]}),
        ({"$schema": DRAFT_7, "properties": {"a": {"format": "ipv4"}}, "required": ["b"]}, {}, {"a": "x"}),
        ({"$schema": DRAFT_2020, "properties": {"a": {"prefixItems": [{"type": "string"}]}}}, {}, {"a": [1]}),
        ({"properties": {"a": {"pattern": "^[a-z]+$"}}}, {}, {"a": "A"}),
        ({"required": ["port"]}, {"port": 1883}, {"port": None}),
        ({"properties": {"a": {"required": ["b"]}}}, {"a": {"b": 1}}, {"a": {"b": None}}),
        ({"properties": {"a": {"type": "object"}}}, {"a": {"b": 1}}, {"a": [1]}),
        ({"definitions": {"a": {"type": "string"}}, "properties": {"b": {"$ref": "#/definitions/a"}}}, {}, {"b": 1}),
        ({"properties": {"a": False}}, {}, {"a": 1}),
    ],
)
def test_of_what_no_chart_takes(
    helm: Helm, tmp_path: Path, schema: dict[str, Any], defaults: dict[str, Any], values: dict[str, Any]
) -> None:
    assert not takes(helm, _chart(tmp_path, schema, defaults), values)
    assert refused(_held(tmp_path), "broker", values)


@pytest.mark.parametrize(
    ("schema", "defaults", "values"),
    [
        ({"$schema": DRAFT_4, "properties": {"port": {"minimum": 1}}}, {}, {"port": 1}),
        ({"$schema": DRAFT_7, "$defs": {"a": False}, "properties": {"b": {"items": [{}]}}}, {}, {"b": ["x", 1]}),
        ({"required": ["port"]}, {"port": 1883}, {}),
        ({"properties": {"a": {"required": ["b", "c"]}}}, {"a": {"b": 1}}, {"a": {"c": 2}}),
        ({"properties": {"a": {"additionalProperties": False}}}, {"a": {"b": 1}}, {"a": {"b": None}}),
        ({"properties": {"a": {"type": "integer"}}}, {}, {"a": 1.0}),
        ({}, {}, {"anything": [None, {}]}),
    ],
)
def test_of_what_a_chart_takes(
    helm: Helm, tmp_path: Path, schema: dict[str, Any], defaults: dict[str, Any], values: dict[str, Any]
) -> None:
    assert takes(helm, _chart(tmp_path, schema, defaults), values)
    assert not refused(_held(tmp_path), "broker", values)


def _requires(chart: Path, requirement: dict[str, Any]) -> None:
    with (chart / "Chart.yaml").open("a") as metadata:
        metadata.write(yaml.safe_dump({"dependencies": [requirement]}))


def _chart(folder: Path, schema: dict[str, Any], defaults: dict[str, Any], *, name: str = "broker") -> Path:
    """A chart that is in order, and installs nothing."""
    chart = folder / name
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 0.1.0\n")
    (chart / "values.schema.json").write_text(json.dumps(schema))
    (chart / "values.yaml").write_text(yaml.safe_dump(defaults))
    return chart


def _held(folder: Path) -> GitServer:
    """A centre that holds the same chart."""
    git = MemoryGitServer()
    git.create_repository(REPOSITORY_HELM_CHARTS)
    found = [path for path in (folder / "broker").rglob("*") if path.is_file()]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
    git.commit(REPOSITORY_HELM_CHARTS, files, CommitMessage(subject="Ours", actor="test"), expected_head=None)
    return git
