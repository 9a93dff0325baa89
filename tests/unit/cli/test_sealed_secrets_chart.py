"""The published chart says where edges get sealed-secrets from, and serves what the centre was given."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import LARGEST_ARCHIVE, UPSTREAM, SealedSecretsChart
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Stalled
from edgewright.settings import Settings


@pytest.fixture
def git(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "repositories")


def archive(
    version: object = "2.99.1", *, name: str = "sealed-secrets", more: Mapping[str, bytes] | None = None
) -> bytes:
    content = yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for file, body in {"Chart.yaml": content, **(more or {})}.items():
            member = tarfile.TarInfo(f"sealed-secrets/{file}")
            member.size = len(body)
            opened.addfile(member, io.BytesIO(body))
    return packed.getvalue()


def read(git: BareGitServer, name: str) -> bytes:
    head = git.head(REPOSITORY_HELM_CHARTS)
    content = git.read(REPOSITORY_HELM_CHARTS, f"edge-cluster/{name}", at=head) if head else None
    assert content is not None
    return content


def published(git: BareGitServer, name: str) -> Any:
    return yaml.safe_load(read(git, name))


def dependency(git: BareGitServer) -> Any:
    [one] = published(git, "Chart.yaml")["dependencies"]
    return one


def test_by_default_it_is_upstreams(git: BareGitServer) -> None:
    publish_charts(git, charts_path(), SealedSecretsChart(Settings().sealing_chart))
    assert dependency(git)["repository"] == UPSTREAM
    assert published(git, "values.yaml")["sealed-secrets"]["image"]["registry"] == "docker.io"


def test_a_mirror_stands_in_for_both_and_nothing_else_changes(git: BareGitServer) -> None:
    publish_charts(git, charts_path(), SealedSecretsChart())
    before, values = published(git, "Chart.yaml"), published(git, "values.yaml")
    mirrors = SealedSecretsChart("oci://registry.example.com/charts", "registry.example.com/edge")
    publish_charts(git, charts_path(), mirrors)
    before["dependencies"][0]["repository"] = "oci://registry.example.com/charts"
    values["sealed-secrets"]["image"]["registry"] = "registry.example.com/edge"
    assert (published(git, "Chart.yaml"), published(git, "values.yaml")) == (before, values)


def names_taken(git: BareGitServer) -> tuple[bool, set[str]]:
    """Whether the schema refuses other values of sealed-secrets, and those that it knows."""
    stated = published(git, "values.schema.json")["properties"]["sealed-secrets"]
    return stated.get("additionalProperties") is False, set(stated["properties"])


def test_the_schema_has_the_names_of_the_archives_version(git: BareGitServer, tmp_path: Path) -> None:
    ours = {"enabled", "namespace", "fullnameOverride"}
    file = tmp_path / "newer.tgz"
    newer = {"values.yaml": b"brandNew: {}\n", "templates/a.yaml": b"{{ .Values.onlyHere }}"}
    file.write_bytes(archive(more=newer))
    publish_charts(git, charts_path(), SealedSecretsChart(file.as_uri()))
    assert names_taken(git) == (True, {*ours, "brandNew", "onlyHere", "global"})
    file.write_bytes(archive(more={**newer, "values.schema.json": b"{}"}))
    publish_charts(git, charts_path(), SealedSecretsChart(file.as_uri()))
    assert names_taken(git) == (False, ours)
    publish_charts(git, charts_path(), SealedSecretsChart())
    assert read(git, "values.schema.json") == (charts_path() / "edge-cluster/values.schema.json").read_bytes()


@pytest.mark.parametrize("values", [b"[", b"a: " + b"[" * 100])
def test_an_archive_whose_values_cannot_be_read_is_refused(git: BareGitServer, tmp_path: Path, values: bytes) -> None:
    file = tmp_path / "broken.tgz"
    file.write_bytes(archive(more={"values.yaml": values}))
    with pytest.raises(Stalled, match=r"values\.yaml") as error:
        publish_charts(git, charts_path(), SealedSecretsChart(file.as_uri()))
    assert error.value.code == "sealing_chart_unusable"


def test_an_archive_is_served_with_its_own_version_and_goes_with_the_setting(
    git: BareGitServer, tmp_path: Path
) -> None:
    file = tmp_path / "sealed secrets.tgz"
    file.write_bytes(archive())
    publish_charts(git, charts_path(), SealedSecretsChart(file.as_uri()))
    assert (dependency(git)["version"], dependency(git)["repository"]) == ("2.99.1", "")
    assert read(git, "charts/sealed-secrets-2.99.1.tgz") == file.read_bytes()
    head = publish_charts(git, charts_path(), SealedSecretsChart())
    assert not [path for path in git.list(REPOSITORY_HELM_CHARTS, "", at=head) if path.endswith(".tgz")]


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"no archive",
        archive(name="another"),
        archive(version="../../x"),
        archive(version=2),
        archive()[:80],
        b"x" * (LARGEST_ARCHIVE + 1),
    ],
    ids=["absent", "empty", "text", "another", "path", "number", "cut", "huge"],
)
def test_what_is_no_such_archive_is_refused_and_nothing_is_published(
    git: BareGitServer, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "chart.tgz"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Stalled) as refused:
        publish_charts(git, charts_path(), SealedSecretsChart(file.as_uri()))
    assert refused.value.code == "sealing_chart_unusable"
    assert not git.exists(REPOSITORY_HELM_CHARTS)


@pytest.mark.parametrize(
    "source",
    ["https://charts.example.com/sealed-secrets/", "oci://registry.example.com:5000/charts", "file:///srv/c-1.tgz"],
)
def test_a_source_that_helm_knows_is_a_setting(source: str) -> None:
    assert Settings(sealing_chart=source).sealing_chart == source.rstrip("/")


@pytest.mark.parametrize(
    "source",
    [
        "http://charts.example.com",
        "charts.example.com",
        "https://user:secret@charts.example.com",
        "https://charts.example.com?x=1",
        "https://charts.example.com\n  - name: other",
        "file://elsewhere/c.tgz",
        "file:///srv/charts",
    ],
)
def test_any_other_source_is_none(source: str) -> None:
    with pytest.raises(ValidationError, match="chart repository"):
        Settings(sealing_chart=source)
