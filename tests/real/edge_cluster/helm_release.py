"""What helm-controller does with a cluster's HelmRelease, done by helm: helm-controller cannot be had here."""

from pathlib import Path
from uuid import UUID

import yaml
from module_files import module_folder

from edge_cluster.helm import Helm
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS

CHART = "edge-cluster"


def packed_sealed_secrets(helm: Helm, folder: Path) -> Path:
    """Upstream's own chart as an archive, such as ``helm pull`` leaves it."""
    helm("package", module_folder("sealed-secrets-chart"), "--destination", folder)
    [packed] = folder.glob("sealed-secrets-*.tgz")
    return packed


def checked_out_chart(git: BareGitServer, folder: Path) -> Path:
    """The chart that clusters get, as an edge has it after a fetch of the shared charts."""
    head = git.head(REPOSITORY_HELM_CHARTS)
    assert head is not None, "nothing is published"
    for path in git.list(REPOSITORY_HELM_CHARTS, f"{CHART}/", at=head):
        content = git.read(REPOSITORY_HELM_CHARTS, path, at=head)
        assert content is not None
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder / CHART


def install_release(helm: Helm, git: BareGitServer, cluster: UUID, folder: Path) -> None:
    """Installs or upgrades the release of a cluster, as its driving repository describes it."""
    head = git.head(cluster)
    assert head is not None, "the cluster has no repository"
    rendered = yaml.safe_load(git.read(cluster, f"edo/cluster/{CHART}.yaml", at=head) or b"")
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(rendered["spec"]["values"]))
    metadata = rendered["metadata"]
    chart = checked_out_chart(git, folder / head)
    helm("upgrade", "--install", metadata["name"], chart, "--namespace", metadata["namespace"], "--values", values)
