"""The Flux of an edge is upgraded from the centre: Flux itself applies its successor, and the edge proves it."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from edge_cluster.grounds import LETTING_GO, NAMESPACE, give_flux, grounds_in
from edge_cluster.kubelet import Program
from edge_cluster.line import BootstrapLine
from edge_cluster.release import CONTROLLERS, another_release
from edge_cluster.release import NAMESPACE as FLUX_NAMESPACE
from edge_cluster.site import KUSTOMIZE, SOURCE, kustomize_program
from moved_back import move_back
from supervised import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

BEFORE, AFTER, REFUSED, BROKEN, MENDED = "v2.8.0", "v2.9.0", "v2.9.1", "v2.9.2", "v2.9.3"
TAGS = {BEFORE: "v1.8.0", AFTER: "v1.9.0", REFUSED: "v1.9.1", BROKEN: "v1.9.2", MENDED: "v1.9.3"}
"""Tags of the images, by the version of Flux that names them."""
NEWCOMER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flux-newcomer, labels: {app.kubernetes.io/part-of: flux}}
rules: []
"""
"""What only the newer versions bring."""
LOST = "buckets.source.toolkit.fluxcd.io"
"""The kind of which a version that objects are stored in is gone; an API server refuses that."""
UPGRADING = 3 * LETTING_GO
"""Seconds: each controller ends before its successor leads."""
RECIPE = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: recipe, namespace: default}}
data: {{temperature: "{temperature}"}}
"""


def flux(version: str) -> bytes:
    return another_release(version, TAGS[version], *([] if version == BEFORE else [NEWCOMER]))


def image(controller: str, version: str) -> str:
    return f"ghcr.io/fluxcd/{controller}:{TAGS[version]}"


def refused_flux() -> bytes:
    """One that an API server refuses where an older one is installed."""
    manifests = list(yaml.safe_load_all(flux(REFUSED)))
    [definition] = [one for one in manifests if one["metadata"]["name"] == LOST]
    [stored] = [one for one in definition["spec"]["versions"] if one["storage"]]
    definition["spec"]["versions"] = [{**stored, "name": "v9"}]
    return yaml.safe_dump_all(manifests).encode()


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Where edges get the older Flux. Each test leaves it so."""
    with grounds_in(tmp_path_factory.mktemp("grounds"), flux=flux(BEFORE)) as grounds:
        for content in (flux(AFTER), refused_flux(), flux(BROKEN), flux(MENDED)):
            give_flux(grounds.centre, content)
        give_flux(grounds.centre, flux(BEFORE), even_if_older="true")
        grounds.programs[image(KUSTOMIZE, BROKEN)] = Program(["sh", "-c", "exec sleep 3600"], ready=lambda: False)
        for version in (AFTER, MENDED):
            grounds.programs[image(KUSTOMIZE, version)] = kustomize_program()
        yield grounds


def upgrade(attached: GroundsCluster, version: str) -> None:
    begun = attached.api("POST", "/upgrade", json={"component": "flux", "version": version})
    assert begun.status_code == 202, begun.text
    assert (begun.json()["version"], begun.json()["state"]) == (version, "under_way")


def told(attached: GroundsCluster) -> dict[str, Any]:
    """The upgrade that the centre tells of, the newest one."""
    wanted = {"component": "flux", "cluster": attached.uuid}
    answer = attached.grounds.centre.api("GET", "/v1/upgrade", params=wanted)
    assert answer.status_code == 200, answer.text
    newest: dict[str, Any] = answer.json()["items"][0]
    return newest


def has_ended(attached: GroundsCluster) -> bool:
    return bool(told(attached)["state"] != "under_way")


def tags(grounds: Grounds) -> set[str]:
    """Tags of the images that the controllers of Flux are to run from."""
    deployments = [grounds.cluster.find("deployment", name, namespace=FLUX_NAMESPACE) for name in CONTROLLERS]
    images = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments]
    return {image.rpartition(":")[2] for image in images}


def ready(grounds: Grounds, version: str) -> tuple[str, str]:
    """What the Kustomization that brings a version says of itself: its state, and why."""
    found = grounds.cluster.find("kustomization", f"edgewright-flux-{version}", namespace=NAMESPACE)
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next(((one["status"], one["message"]) for one in conditions if one["type"] == "Ready"), ("", ""))


def applies(attached: GroundsCluster, temperature: int) -> bool:
    """Pushes a manifest; returns when Flux has applied it."""
    cluster = attached.grounds.cluster

    def is_pushed() -> bool:  # the centre may have committed since this clone was made
        with suppress(subprocess.CalledProcessError):
            attached.push("recipe.yaml", RECIPE.format(temperature=temperature))
            return True
        return False

    eventually(is_pushed)
    cluster.fetch_now()

    def is_there() -> bool:
        found = cluster.find("configmap", "recipe", namespace="default")
        return bool(found and found["data"]["temperature"] == str(temperature))

    eventually(is_there, seconds=LETTING_GO)
    return True


def let_its_time_pass(grounds: Grounds) -> None:
    """As if the upgrade that is under way had been on the edge for longer than the centre waits for its proof."""
    centre, long = grounds.centre, timedelta(minutes=20)
    move_back(centre, {"gateway_presence": ("listening_since",)}, long)

    def has_deadline() -> bool:
        running = "SELECT count(*) FROM upgrades WHERE ended_at IS NULL AND deadline IS NOT NULL"
        with closing(sqlite3.connect(centre.home / "edgewright.db", timeout=30)) as database:
            return bool(database.execute(running).fetchone()[0])

    eventually(has_deadline, seconds=LETTING_GO)
    move_back(centre, {"upgrades": ("deadline",)}, long)


def newcomer(grounds: Grounds) -> Any:
    return grounds.cluster.find("clusterrole", "flux-newcomer")


def test_flux_applies_its_own_upgrade_and_goes_without_a_trace_when_the_cluster_is_deleted(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("upgraded")
    assert tags(grounds) == {TAGS[BEFORE]}
    starts = {name: grounds.kubelet.starts(name) for name in (SOURCE, KUSTOMIZE)}
    assert newcomer(grounds) is None

    upgrade(attached, AFTER)
    assert told(attached)["before"] == BEFORE
    eventually(lambda: has_ended(attached), seconds=UPGRADING)
    assert told(attached)["state"] == "done", told(attached)
    assert ready(grounds, AFTER)[0] == "True"
    assert tags(grounds) == {TAGS[AFTER]}
    assert all(grounds.kubelet.starts(name) > started for name, started in starts.items())
    anchor = grounds.cluster.find("clusterrole", "edgewright-anchor")["metadata"]["uid"]
    assert [owner["uid"] for owner in newcomer(grounds)["metadata"]["ownerReferences"]] == [anchor]
    assert applies(attached, 180)

    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def test_a_flux_that_the_api_server_refuses_leaves_the_older_one_at_work_until_a_better_one_comes(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("refused")
    starts = {name: grounds.kubelet.starts(name) for name in (SOURCE, KUSTOMIZE)}
    upgrade(attached, REFUSED)
    eventually(lambda: LOST in ready(grounds, REFUSED)[1], seconds=LETTING_GO)
    assert ready(grounds, REFUSED)[0] == "False"
    assert applies(attached, 90)
    assert told(attached)["state"] == "under_way"
    let_its_time_pass(grounds)
    eventually(lambda: has_ended(attached), seconds=LETTING_GO)
    ended = told(attached)
    assert (ended["state"], LOST in ended["reason"]) == ("failed", True), ended
    assert tags(grounds) == {TAGS[BEFORE]}
    assert {name: grounds.kubelet.starts(name) for name in starts} == starts, "nobody has touched the controllers"

    upgrade(attached, MENDED)
    eventually(lambda: has_ended(attached), seconds=UPGRADING)
    assert told(attached)["state"] == "done", told(attached)
    assert (tags(grounds), ready(grounds, MENDED)[0]) == ({TAGS[MENDED]}, "True")
    assert newcomer(grounds) and applies(attached, 95)

    line = BootstrapLine(grounds.centre, grounds.cluster, attached.uuid, grounds.folder)
    away = line.run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    assert newcomer(grounds) is None
    grounds.cluster.kubectl("delete", "configmap", "recipe", "--namespace", "default")
    attached.delete(force="true")
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def test_a_controller_that_does_not_start_replaces_none_that_runs(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("broken")
    upgrade(attached, BROKEN)
    eventually(lambda: tags(grounds) == {TAGS[BROKEN]}, seconds=LETTING_GO)

    def running() -> set[str]:
        pods = grounds.cluster.find("pod", namespace=FLUX_NAMESPACE)["items"]
        ours = [one for one in pods if one["spec"]["serviceAccountName"] == KUSTOMIZE]
        return {one["spec"]["containers"][0]["image"] for one in ours}

    eventually(lambda: running() == {image(KUSTOMIZE, BEFORE), image(KUSTOMIZE, BROKEN)}, seconds=LETTING_GO)
    assert applies(attached, 70)
    let_its_time_pass(grounds)
    eventually(lambda: has_ended(attached), seconds=LETTING_GO)
    ended = told(attached)
    assert (ended["state"], f"Nothing has proven {BROKEN}" in ended["reason"]) == ("failed", True), ended
    assert running() == {image(KUSTOMIZE, BEFORE), image(KUSTOMIZE, BROKEN)}

    upgrade(attached, MENDED)
    eventually(lambda: has_ended(attached), seconds=UPGRADING)
    assert told(attached)["state"] == "done", told(attached)
    assert running() == {image(KUSTOMIZE, MENDED)}
    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)
