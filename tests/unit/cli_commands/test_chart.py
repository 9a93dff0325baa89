"""Charts and Helm chart templates from the command line, with names wherever somebody would type one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre, Terminal

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.operators import Permission


@pytest.fixture(autouse=True)
def published(centre: ServedCentre) -> None:
    publish_charts(centre.centre.git, charts_path(), SealedSecretsChart())


@pytest.fixture
def press(tmp_path: Path) -> Path:
    """The folder of a chart."""
    folder = tmp_path / "press"
    (folder / "templates").mkdir(parents=True)
    release(folder, "1.0.0")
    (folder / "values.yaml").write_text("line: one\n")
    (folder / "templates" / "app.yaml").write_text("kind: ConfigMap\n")
    (folder / ".helmignore").write_text("*.bak\n")
    for left_out in (".git/config", "values.yaml~", "templates/.DS_Store"):
        (folder / left_out).parent.mkdir(exist_ok=True)
        (folder / left_out).write_text("x")
    return folder


def release(folder: Path, version: str) -> None:
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: press\nversion: {version}\n")


def on_shelf(centre: ServedCentre) -> set[str]:
    git = centre.centre.git
    listed = git.list(REPOSITORY_HELM_CHARTS, "own/", at=git.head(REPOSITORY_HELM_CHARTS) or "")
    return {path.removeprefix("own/") for path in listed}


def test_a_folder_becomes_the_chart_of_a_cluster(edgewright: CommandLine, centre: ServedCentre, press: Path) -> None:
    pushed = edgewright.ok("chart", "push", str(press))
    commit = centre.centre.git.head(REPOSITORY_HELM_CHARTS)
    assert pushed.out == f"Pushed press 1.0.0, commit {commit}.\n"
    assert "template put press --chart press" in pushed.err
    files = {"Chart.yaml", "values.yaml", "templates/app.yaml", ".helmignore"}
    assert on_shelf(centre) == {f"press/{path}" for path in files}

    values = press.parent / "values.yaml"
    values.write_text('line: "{{ name }}"\n')
    made = edgewright.ok("template", "put", "press", "--chart", "press", "--values", str(values))
    assert made.out == "Made the Helm chart template press.\n"
    cluster = centre.create("line-1", chart="press")
    git = centre.centre.git
    rendered = git.read(cluster, "edo/cluster/edge-cluster.yaml", at=git.head(cluster) or "") or b""
    assert b"chart: own/press" in rendered and b"line: line-1" in rendered

    header, *lines = edgewright.ok("chart", "list").out.splitlines()
    assert header.split() == ["CHART", "VERSION", "FROM", "CLUSTERS", "TEMPLATES"]
    assert [line.split()[0] for line in lines] == ["edge-cluster", "press"]
    assert lines[1].split() == ["press", "1.0.0", "you", "1", "press"]
    header, *lines = edgewright.ok("template", "list").out.splitlines()
    assert lines[1].split()[:3] == ["press", "own/press", "1"]


def test_the_same_folder_again_is_no_new_chart(edgewright: CommandLine, centre: ServedCentre, press: Path) -> None:
    edgewright.ok("chart", "push", str(press))
    before = centre.centre.git.head(REPOSITORY_HELM_CHARTS)
    assert edgewright.ok("chart", "push", str(press)).out == "press 1.0.0 was pushed before, with the same files.\n"
    assert centre.centre.git.head(REPOSITORY_HELM_CHARTS) == before
    (press / "values.yaml").write_text("line: two\n")
    refused = edgewright("chart", "push", str(press))
    assert (refused.code, "Raise the version" in refused.err) == (4, True)


def test_a_chart_that_clusters_have_is_replaced_after_a_yes(
    edgewright: CommandLine, terminal: Terminal, centre: ServedCentre, press: Path
) -> None:
    edgewright.ok("chart", "push", str(press))
    edgewright.ok("template", "put", "press", "--chart", "press")
    centre.create("line-1", chart="press")
    release(press, "1.1.0")
    unasked = edgewright("chart", "push", str(press))
    assert (unasked.code, "needs a confirmation" in unasked.err) == (2, True)
    refused = terminal("chart", "push", str(press), typed="n\n")
    assert "Clusters that have press 1.0.0: 1. Replace it on all? [y/N]" in refused.err
    assert (refused.code, "1.0.0" in edgewright.ok("chart", "list").out) == (1, True)
    pushed = edgewright.ok("chart", "push", str(press), "--yes")
    assert pushed.out.startswith("Pushed press 1.1.0 in the place of 1.0.0, commit ")
    assert pushed.err == "Clusters that get it: 1.\n"
    document = json.loads(edgewright.ok("chart", "push", str(press), "--yes", "--json").out)
    assert (document["version"], document["clusters"]) == ("1.1.0", 1)


def test_what_cannot_be_packed_says_why(edgewright: CommandLine, centre: ServedCentre, press: Path) -> None:
    empty = press.parent / "empty"
    empty.mkdir()
    shown = edgewright("chart", "push", str(empty))
    assert (shown.code, "no Chart.yaml" in shown.err) == (2, True)
    linked = press / "linked.yaml"
    linked.symlink_to("/etc/hostname")
    shown = edgewright("chart", "push", str(press))
    assert (shown.code, "symbolic link" in shown.err) == (2, True)
    linked.unlink()
    (press / "large.bin").write_bytes(b"\0" * (8 * 1024 * 1024 + 1))
    shown = edgewright("chart", "push", str(press))
    assert (shown.code, "8388608 bytes together" in shown.err) == (2, True)
    (press / "large.bin").unlink()
    release(press, "1")
    shown = edgewright("chart", "push", str(press))
    assert (shown.code, "no version such as 1.2.0" in shown.err) == (2, True)
    archive = press.parent / "press.tgz"
    archive.write_bytes(b"x")
    shown = edgewright("chart", "push", str(archive))
    assert (shown.code, "is not a packed chart" in shown.err) == (2, True)
    assert edgewright("chart", "push", str(press.parent / "none")).code == 2
    assert on_shelf(centre) == set()


def test_a_chart_in_use_is_not_removed(edgewright: CommandLine, centre: ServedCentre, press: Path) -> None:
    edgewright.ok("chart", "push", str(press))
    edgewright.ok("template", "put", "press", "--chart", "press")
    refused = edgewright("chart", "remove", "press", "--yes")
    assert (refused.code, "The Helm chart template press uses this chart." in refused.err) == (4, True)
    assert edgewright("template", "remove", "press").code == 2
    assert edgewright.ok("template", "remove", "press", "--yes").out == "Removed the Helm chart template press.\n"
    assert edgewright.ok("chart", "remove", "press", "--yes").out == "Removed the chart press 1.0.0.\n"
    assert on_shelf(centre) == set()
    assert edgewright("chart", "remove", "press", "--yes").code == 3
    assert edgewright("chart", "remove", "edge-cluster", "--yes").code == 3


def test_who_may_not_push_is_told(
    edgewright: CommandLine, token_file: Callable[..., str], centre: ServedCentre, press: Path
) -> None:
    reader = token_file(Permission.READ)
    shown = edgewright("chart", "push", str(press), EDGEWRIGHT_TOKEN_FILE=reader)
    assert (shown.code, "push" in shown.err) == (6, True)
    assert on_shelf(centre) == set()


def test_a_template_is_shown_with_its_values(edgewright: CommandLine) -> None:
    shown = edgewright.ok("template", "show", "edge-cluster")
    assert "chart     edge-cluster" in shown.out
    assert "values:\n  cluster:\n    name: '{{ name }}'\n" in shown.out
    document = json.loads(edgewright.ok("template", "show", "edge-cluster", "--json").out)
    assert document["values"]["sealed-secrets"] == {"enabled": True}
    unknown = edgewright("template", "show", "edge-clustr")
    assert (unknown.code, "Did you mean edge-cluster?" in unknown.err) == (3, True)


def test_what_is_left_out_of_a_change_stays(edgewright: CommandLine, press: Path) -> None:
    edgewright.ok("chart", "push", str(press))
    values = press.parent / "v.json"
    values.write_text('{"line": "two"}')
    edgewright.ok("template", "put", "press", "--chart", "press", "--values", str(values))
    values.write_text('{"line": "three"}')
    assert edgewright.ok("template", "put", "press", "--values", str(values)).out.startswith("Changed the Helm")
    document = json.loads(edgewright.ok("template", "show", "press", "--json").out)
    assert (document["chart"], document["prefix"], document["values"]) == ("own/press", "press", {"line": "three"})
    edgewright.ok("template", "put", "press", "--chart", "edge-cluster", "--values", str(empty_values(press)))
    document = json.loads(edgewright.ok("template", "show", "press", "--json").out)
    assert (document["chart"], document["prefix"], document["values"]) == ("edge-cluster", None, {})


def empty_values(press: Path) -> Path:
    file = press.parent / "empty.yaml"
    file.write_text("")
    return file


def test_a_new_template_needs_a_chart_that_is_there(edgewright: CommandLine) -> None:
    shown = edgewright("template", "put", "press")
    assert (shown.code, "a new one needs a chart" in shown.err) == (2, True)
    shown = edgewright("template", "put", "press", "--chart", "press")
    assert (shown.code, "no such chart in shared/helm-charts" in shown.err) == (2, True)
    shown = edgewright("template", "put", "$(rm -rf /)/..", "--chart", "edge-cluster")
    assert shown.code in {3, 4}


def test_a_template_that_clusters_have_is_changed_after_a_yes(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path
) -> None:
    centre.create("line-1")
    values = tmp_path / "v.json"
    values.write_text('{"global": {"a": 1}}')
    unasked = edgewright("template", "put", "edge-cluster", "--values", str(values))
    assert (unasked.code, "needs a confirmation" in unasked.err) == (2, True)
    assert edgewright.ok("template", "put", "edge-cluster", "--values", str(values), "--yes").out.startswith(
        "Changed"
    )
