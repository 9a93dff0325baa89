"""The charts are published as they are, once, whenever their content changes."""

from pathlib import Path

import pytest

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Stalled


@pytest.fixture
def git(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "repositories")


@pytest.fixture
def charts(tmp_path: Path) -> Path:
    folder = tmp_path / "charts"
    (folder / "edge-cluster" / "templates").mkdir(parents=True)
    (folder / "edge-cluster" / "Chart.yaml").write_text("name: edge-cluster\n")
    (folder / "edge-cluster" / "templates" / "agent.yaml").write_text("kind: Deployment\n")
    return folder


def test_repository_holds_exactly_the_files(git: BareGitServer, charts: Path) -> None:
    (charts / ".hidden").write_text("x")
    (charts / "edge-cluster" / "Chart.yaml~").write_text("x")
    head = publish_charts(git, charts, SealedSecretsChart())
    assert git.list(REPOSITORY_HELM_CHARTS, "", at=head) == [
        "edge-cluster/Chart.yaml",
        "edge-cluster/templates/agent.yaml",
    ]
    assert git.read(REPOSITORY_HELM_CHARTS, "edge-cluster/Chart.yaml", at=head) == b"name: edge-cluster\n"


def test_same_content_makes_no_commit(git: BareGitServer, charts: Path) -> None:
    assert publish_charts(git, charts, SealedSecretsChart()) == publish_charts(git, charts, SealedSecretsChart())
    assert len(git.log(REPOSITORY_HELM_CHARTS, limit=10)) == 1


def test_change_and_removal_are_published_in_one_commit(git: BareGitServer, charts: Path) -> None:
    publish_charts(git, charts, SealedSecretsChart())
    (charts / "edge-cluster" / "Chart.yaml").write_text("name: other\n")
    (charts / "edge-cluster" / "templates" / "agent.yaml").unlink()
    head = publish_charts(git, charts, SealedSecretsChart())
    assert git.list(REPOSITORY_HELM_CHARTS, "", at=head) == ["edge-cluster/Chart.yaml"]
    assert git.read(REPOSITORY_HELM_CHARTS, "edge-cluster/Chart.yaml", at=head) == b"name: other\n"
    assert len(git.log(REPOSITORY_HELM_CHARTS, limit=10)) == 2


def test_installation_without_charts_is_refused(git: BareGitServer, tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="no charts"):
        publish_charts(git, tmp_path / "absent", SealedSecretsChart())


def test_charts_of_this_installation_are_found() -> None:
    assert (charts_path() / "edge-cluster" / "Chart.yaml").is_file()
