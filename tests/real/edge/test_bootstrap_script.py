"""The bootstrap script on a real Kubernetes cluster: what it installs, and that it goes without a trace."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Comparison, Contents, contents
from edge_cluster.controllers import define_flux
from edge_cluster.grounds import NAMESPACE
from edge_cluster.line import BootstrapLine
from edge_cluster.programs import WITHOUT_POLICIES
from edge_cluster.release import release
from edge_cluster.site import AGENT
from embedded import EmbeddedEdgewright
from flux_file import definition, sha256_of
from free_ports import free_port
from go_programs import FLUX_RELEASE, SOURCE_CONTROLLER
from supervised import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

ANCHOR = "edgewright-anchor"
IMAGE = "registry.example.com/edgewright:test"
MIRROR = "registry.example.com/mirror"
SOURCES = "gitrepositories.source.toolkit.fluxcd.io"
OLD_FLUX = definition("kustomize", "Kustomization", "kustomizations", "v1beta2")
SELF_LINK = ("kustomization", "self-link", "--namespace=edgewright")
WAITING = "The namespace 'edgewright' is being deleted; waiting for it to go."
IMPATIENT_KUBECTL = """\
#!/bin/sh
# The real kubectl, which gives up sooner what does not come.
for word; do
  shift
  case $word in --timeout=120s) word=--timeout=2s ;; esac
  set -- "$@" "$word"
done
exec {kubectl} "$@"
"""


@pytest.fixture(scope="module")
def fresh() -> Iterator[Cluster]:
    """A Kubernetes cluster on which nobody has installed anything. Each test leaves it so."""
    with edge_cluster() as cluster:
        cluster.kubectl("create", "namespace", "bystander")
        yield cluster


@pytest.fixture(scope="module")
def giving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A centre that has Flux and an agent for edges."""
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
        "EDGEWRIGHT_AGENT_IMAGE": IMAGE,
        "EDGEWRIGHT_REGISTRY_MIRROR": MIRROR,
    }
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("giving") / "home", variables)
    centre.up()
    file = release()
    imported = centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file)}, content=file)
    assert imported.status_code == 200, imported.text
    yield centre
    centre.clear_up()


@pytest.fixture
def before(fresh: Cluster) -> Contents:
    return contents(fresh)


@pytest.fixture
def line_of(giving: EmbeddedEdgewright, fresh: Cluster, tmp_path: Path) -> Iterator[Callable[[str], BootstrapLine]]:
    """The line of a new cluster; at the end the centre forgets the cluster, so that another may be attached."""
    made: list[str] = []

    def of(name: str) -> BootstrapLine:
        created = giving.api("POST", "/v1/cluster", json={"name": name})
        assert created.status_code == 201, created.text
        made.append(created.json()["uuid"])
        eventually(lambda: giving.is_ready(name))
        return BootstrapLine(giving, fresh, made[-1], tmp_path)

    yield of
    for uuid in made:
        if giving.api("GET", f"/v1/cluster/{uuid}").status_code != 410:
            assert giving.api("DELETE", f"/v1/cluster/{uuid}", params={"force": "true"}).status_code == 202


def new_in(cluster: Cluster, before: Contents) -> Contents:
    return {key: value for key, value in contents(cluster).items() if key not in before}


def owners(written: Any) -> list[str]:
    return [owner["name"] for owner in written["metadata"].get("ownerReferences", ())]


def test_the_line_installs_all_and_uninstall_leaves_nothing(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine]
) -> None:
    line = line_of("press-shop")
    dry = line.run("--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert f"install Flux {FLUX_RELEASE}" in dry.stdout and IMAGE in dry.stdout
    assert contents(fresh) == before

    first = line.run()
    assert first.returncode == 0, first.stdout + first.stderr
    made = new_in(fresh, before)
    anchor = made[f"ClusterRole//{ANCHOR}"]
    assert anchor["metadata"]["labels"] == {"edgewright.dev/cluster": line.uuid, "edgewright.dev/generation": "1"}
    assert anchor["rules"] in ([], None)
    for name in ("Deployment/edgewright/edgewright-agent", "Deployment/flux-system/source-controller"):
        assert name in made
    assert (
        made["Deployment/edgewright/edgewright-agent"]["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    )
    assert f"{MIRROR}/fluxcd/source-controller:{SOURCE_CONTROLLER}" in json.dumps(made)
    assert "GitRepository/edgewright/self-link" in made and "Secret/edgewright/flux-secrets" in made
    marked = {key for key, one in made.items() if "edgewright.dev/part-of" in one["metadata"].get("labels", {})}
    assert {key for key in made if owners(made[key]) == [ANCHOR]} == marked
    by_kubernetes = {"ConfigMap", "Pod", "ReplicaSet", "ServiceAccount"}
    assert {key.partition("/")[0] for key in made if key not in marked} - by_kubernetes == {"ClusterRole"}
    assert line.token not in json.dumps(contents(fresh))

    again = line.run()
    assert again.returncode == 0, again.stdout + again.stderr
    assert new_in(fresh, before).keys() == made.keys()

    other = line_of("paint-shop").run()
    assert (other.returncode, line.uuid in other.stderr) == (6, True)
    other = line_of("weld-shop").run("--uninstall")
    assert (other.returncode, line.uuid in other.stderr) == (6, True)
    dry = line.run("--uninstall", "--dry-run")
    assert "flux-system Deployment source-controller" in dry.stdout
    assert new_in(fresh, before).keys() == made.keys()

    away = line.run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    assert contents(fresh) == before
    nothing = line.run("--uninstall")
    assert (nothing.returncode, "Nothing was installed here" in nothing.stdout) == (0, True)


def test_interrupted_after_each_change_it_goes_on(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine]
) -> None:
    line = line_of("interrupted")
    for changes in count(1):
        done = line.run(interrupted_after=changes)
        if done.returncode == 0:
            break
        assert done.returncode == 137 or "Killed" in done.stderr, done.stdout + done.stderr
    assert changes > 8
    made = new_in(fresh, before)
    assert {key for key in made if owners(made[key]) == [ANCHOR]} >= {
        "Namespace//edgewright",
        "Namespace//flux-system",
        "Secret/edgewright/edgewright-agent",
        "Deployment/edgewright/edgewright-agent",
        "Kustomization/edgewright/self-link",
    }
    for changes in count(1):
        done = line.run("--uninstall", interrupted_after=changes)
        if done.returncode == 0:
            break
    assert changes > 5
    assert contents(fresh) == before


def test_the_anchor_takes_all_along(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine]
) -> None:
    done = line_of("anchored").run()
    assert done.returncode == 0, done.stdout + done.stderr
    fresh.kubectl("delete", "clusterrole", ANCHOR)
    eventually(Comparison(fresh, before), seconds=180)


def test_flux_that_does_not_fit_is_named_and_left(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine]
) -> None:
    fresh.kubectl.apply(OLD_FLUX)
    try:
        with_it = contents(fresh)
        done = line_of("old-flux").run()
        assert done.returncode == 9
        assert "kustomizations.kustomize.toolkit.fluxcd.io is not served as v1" in done.stderr
        assert contents(fresh) == with_it
    finally:
        fresh.kubectl("delete", "--filename", "-", given=OLD_FLUX)
    assert contents(fresh) == before


def test_flux_that_was_there_is_used_and_left(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine]
) -> None:
    define_flux(fresh)
    try:
        with_it = contents(fresh)
        line = line_of("own-flux")
        done = line.run()
        assert done.returncode == 0, done.stdout + done.stderr
        made = new_in(fresh, with_it)
        assert "Kustomization/edgewright/self-link" in made
        assert not [key for key in made if "flux-system" in key.split("/")[1:2] or key.startswith("CustomResource")]
        away = line.run("--uninstall")
        assert away.returncode == 0, away.stdout + away.stderr
        assert contents(fresh) == with_it
    finally:
        added = new_in(fresh, before)
        kinds = [key.rpartition("/")[2] for key in added if key.startswith("CustomResourceDefinition/")]
        fresh.kubectl("delete", "customresourcedefinition", *kinds)
    assert contents(fresh) == before


def test_what_the_manifests_say_can_be_done_by_hand(
    fresh: Cluster, before: Contents, giving: EmbeddedEdgewright, line_of: Callable[[str], BootstrapLine]
) -> None:
    line = line_of("by-hand")
    done = line.by_hand()
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"state":"accepted"' in done.stdout
    assert giving.api("GET", f"/v1/cluster/{line.uuid}").json()["acceptance"] == "accepted"
    assert line.by_hand().returncode != 0, "it is somebody's already"
    away = line.run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    assert contents(fresh) == before


def test_an_api_server_without_policies_attaches_and_grants_no_right_to_ask_flux(
    line_of: Callable[[str], BootstrapLine], tmp_path: Path
) -> None:
    """RBAC alone cannot bound that right, so edges before Kubernetes 1.30 wait for Flux's interval."""
    with edge_cluster(flags=WITHOUT_POLICIES) as old:
        done = line_of("old-api-server").on(old, tmp_path).run()
        assert done.returncode == 0, done.stdout + done.stderr
        assert "comes at Flux's interval" in done.stdout
        assert not [key for key in contents(old) if "fetching" in key]
        source = old.find("gitrepository", "self-link", namespace=NAMESPACE)
        assert source["spec"]["interval"] == "3m"
        account = f"--as=system:serviceaccount:{NAMESPACE}:{AGENT}"
        for verb, may in (("list", "yes"), ("patch", "no")):
            asked = old.kubectl.try_("auth", "can-i", verb, f"{SOURCES}/self-link", "--namespace", NAMESPACE, account)
            assert (verb, asked.stdout.strip()) == (verb, may)


def test_an_edge_that_has_lost_secret_anchor_and_cluster_is_cleaned_by_the_script_of_the_cli(
    fresh: Cluster, before: Contents, giving: EmbeddedEdgewright, line_of: Callable[[str], BootstrapLine]
) -> None:
    line = line_of("forgotten")
    done = line.run()
    assert done.returncode == 0, done.stdout + done.stderr
    fresh.kubectl("delete", "secret", "edgewright-agent", "--namespace=edgewright")
    fresh.kubectl("delete", "clusterrole", ANCHOR, "--cascade=orphan")
    assert giving.api("DELETE", f"/v1/cluster/{line.uuid}", params={"force": "true"}).status_code == 202
    eventually(lambda: giving.api("GET", f"/v1/cluster/{line.uuid}").status_code == 410)
    left = new_in(fresh, before)
    assert not owners(left["Namespace//edgewright"]) and "Deployment/edgewright/edgewright-agent" in left

    other = line_of("next")
    for refused in (line.run(), line.run("--uninstall"), other.run()):
        assert refused.returncode != 0
        assert "edgewright cluster uninstall-script" in refused.stderr
    assert new_in(fresh, before).keys() == left.keys()

    script = giving.command("cluster", "uninstall-script").stdout
    away = line.type("sh -s -- --yes", given=script)
    assert away.returncode == 0, away.stdout + away.stderr
    assert f"The ClusterRole {ANCHOR} is gone, but not all that it owned." in away.stdout
    assert contents(fresh) == before


def test_a_namespace_that_hangs_is_explained_waited_for_and_taken_away(
    fresh: Cluster, before: Contents, line_of: Callable[[str], BootstrapLine], tmp_path: Path
) -> None:
    """It waits for a finalizer of Flux's, and no Flux runs that would take it away."""

    def hang() -> None:
        finalizer = '{"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}'
        fresh.kubectl("patch", *SELF_LINK, "--type=merge", "--patch", finalizer)
        fresh.kubectl("delete", "namespace", "edgewright", "--wait=false")
        eventually(lambda: not fresh.find("secret", namespace="edgewright")["items"])
        assert fresh.find("namespace", "edgewright")["status"]["phase"] == "Terminating"

    def pods() -> set[str]:
        return {key for key in contents(fresh) if key.startswith("Pod/")}

    line = line_of("hanging")
    assert line.run().returncode == 0
    made = new_in(fresh, before).keys() - pods()
    hang()

    impatient = tmp_path / "impatient"
    impatient.mkdir()
    (impatient / "kubectl").write_text(IMPATIENT_KUBECTL.format(kubectl=fresh.kubectl.program))
    (impatient / "kubectl").chmod(0o755)
    run = f"{line.fetched} | sh -s -- --yes"
    done = line.type(run, PATH=f"{impatient}{os.pathsep}{line.environment['PATH']}")
    assert done.returncode == 3, done.stdout + done.stderr
    assert WAITING in done.stdout and "does not go" in done.stderr and "--uninstall" in done.stderr

    said = tmp_path / "said"
    with ThreadPoolExecutor() as aside:
        waits = aside.submit(line.type, f"{run} >{said} 2>&1")
        eventually(lambda: said.exists() and WAITING in said.read_text())
        assert not waits.done()
        fresh.kubectl("patch", *SELF_LINK, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
        assert waits.result().returncode == 0, said.read_text()
    assert new_in(fresh, before).keys() - pods() == made

    hang()
    away = line.run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    assert contents(fresh) == before
