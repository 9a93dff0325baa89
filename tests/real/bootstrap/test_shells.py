"""The scripts that the centre hands out, under every shell that an edge is likely to have, on one real cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from debian import debian_program
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import contents
from edge_cluster.line import BootstrapLine
from embedded import EmbeddedEdgewright
from flux_file import flux_file, sha256_of
from supervised import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

SHELLS = ("dash", "bash", "busybox")
APPLETS = ("base64", "cat", "env", "grep", "mkdir", "mktemp", "od", "rm", "sed", "sleep", "tr", "wc")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A Kubernetes cluster on which nobody has installed anything. Each test leaves it so."""
    with edge_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A centre that has Flux and an agent for edges."""
    variables = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_AGENT_IMAGE": "registry.example.com/edgewright:test"}
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("centre") / "home", variables)
    centre.up()
    file = flux_file()
    assert centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file)}, content=file).status_code == 200
    yield centre
    centre.clear_up()


def machine_with(shell: str, folder: Path) -> None:
    """Where the line is pasted, ``sh`` is that shell; with busybox, all else is busybox as well."""
    program = debian_program(shell)
    (folder / "bin").mkdir()
    for name in ("sh", *(APPLETS if shell == "busybox" else ())):
        (folder / "bin" / name).symlink_to(program)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_cluster_is_attached_and_left_as_it_was_under(
    shell: str, cluster: Cluster, centre: EmbeddedEdgewright, tmp_path: Path
) -> None:
    machine_with(shell, tmp_path)
    before = contents(cluster)
    uuid = centre.create(f"under-{shell}")
    eventually(lambda: centre.is_ready(f"under-{shell}"))
    line = BootstrapLine(centre, cluster, uuid, tmp_path)
    assert line.type("echo $0 is $(readlink $(command -v sh))").stdout.split()[-1] == str(debian_program(shell))

    attached = line.run()
    assert attached.returncode == 0, attached.stdout + attached.stderr
    assert cluster.find("deployment", "edgewright-agent", namespace="edgewright")
    dry = line.type(f"curl -sSf '{line.url}&format=uninstall' >uninstall.sh && sh uninstall.sh --dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "edgewright Deployment edgewright-agent" in dry.stdout
    gone = line.type("sh uninstall.sh --yes") if shell == "bash" else line.run("--uninstall")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert contents(cluster) == before
    refused = line.type(f"curl -sSL '{line.url}x' | sh -s -- --yes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("edgewright: ")
    assert centre.api("DELETE", f"/v1/cluster/{uuid}", params={"force": "true"}).status_code == 202
