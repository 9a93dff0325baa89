"""A Flux that was there before the line drives the edge, too, and is as it was when the cluster is deleted."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.desk import push_by_hand
from edge_cluster.grounds import LETTING_GO, NAMESPACE
from edge_cluster.line import BootstrapLine
from edge_cluster.release import NAMESPACE as FLUX_NAMESPACE
from edge_cluster.release import release
from edge_cluster.site import KUSTOMIZE
from supervised import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

DRIVEN = """
apiVersion: v1
kind: Namespace
metadata: {{name: theirs}}
---
apiVersion: v1
kind: Secret
metadata: {{name: reader, namespace: theirs}}
stringData: {{username: desk, password: "{password}"}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: line, namespace: theirs}}
spec: {{interval: 1m, url: "{url}", ref: {{branch: main}}, secretRef: {{name: reader}}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: line, namespace: theirs}}
spec: {{interval: 1m, path: ./by-hand, prune: true, sourceRef: {{kind: GitRepository, name: line}}}}
"""
AT_WORK = """\
#!/bin/sh
# kubectl, where self-link is always at work: after each change of what brings secrets it applies that once more, and
# when it goes it has just freed one of them.
ours() {{ "{program}" "$@" --namespace {namespace} >/dev/null 2>&1; }}
change() {{ ours patch kustomization "$1" --field-manager="$2" --type=merge --patch "$3"; }}
"{program}" "$@"
code=$?
case " $* " in
  *" delete kustomizations."*" metadata.name=self-link "*)
    change edge-secrets-line-2 kustomize-controller '{{"spec":{{"suspend":false}}}}' && echo freed >>"{diary}"
    ;;
  *" patch kustomizations."*" edge-secrets"*)
    asked=$(date +%s%N)
    request='{{"annotations":{{"reconcile.fluxcd.io/requestedAt":"'$asked'"}}}}'
    change self-link edgewright '{{"metadata":'"$request"',"spec":{{"suspend":false}}}}' || exit $code
    handled='--for=jsonpath={{.status.lastHandledReconcileAt}}'
    ours wait kustomization self-link "$handled=$asked" --timeout=180s && echo applied >>"{diary}"
    change self-link edgewright '{{"spec":{{"suspend":true}}}}'
    ;;
esac
exit $code
"""
RECIPE = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: recipe, namespace: {namespace}}}
data: {{temperature: "{temperature}"}}
"""


@dataclass
class Theirs:
    """A Flux that somebody has installed, and what it drives: the namespace ``theirs``, from a repository of its own.

    Args:
        repository: UUID of the cluster whose ``by-hand/`` stands in for that repository; no edge is attached to it.
    """

    grounds: Grounds
    repository: str

    def deliver(self, temperature: int) -> None:
        """Pushes a manifest; returns when Flux has applied it."""
        manifest = RECIPE.format(namespace="theirs", temperature=temperature)
        push_by_hand(self.grounds.centre, self.repository, "recipe.yaml", manifest)
        self.grounds.cluster.fetch_now("line", namespace="theirs")
        eventually(lambda: recipe(self.grounds, "theirs") == str(temperature), seconds=LETTING_GO)


@pytest.fixture
def theirs(grounds: Grounds, before: Contents) -> Iterator[Theirs]:
    """Flux as its own release installs it, at work; gone at the end."""
    kubectl = grounds.cluster.kubectl
    repository = grounds.centre.create("their-repository")
    eventually(lambda: grounds.centre.is_ready("their-repository"))
    kubectl.apply(release().decode())
    try:
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        with driven(grounds, repository) as found:
            yield found
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=false", "--filename", "-", given=release().decode())
        grounds.centre.api("DELETE", f"/v1/cluster/{repository}")
    eventually(grounds.comparison(before), seconds=LETTING_GO)


@contextmanager
def driven(grounds: Grounds, repository: str) -> Iterator[Theirs]:
    kubectl, url = grounds.cluster.kubectl, f"{grounds.centre.endpoints()['gateway']}/uuid/{repository}"
    password = (grounds.centre.home / "admin-token").read_text().strip()
    kubectl.apply(DRIVEN.format(password=password, url=url))
    theirs = Theirs(grounds, repository)
    theirs.deliver(180)
    kubectl(
        "wait", "--for=condition=Available", "deployment", "--all", "--namespace", FLUX_NAMESPACE, "--timeout=90s"
    )
    yield theirs
    kubectl("delete", "kustomization", "line", "--namespace", "theirs")  # Flux takes away what it has applied
    kubectl("delete", "namespace", "theirs")


def test_flux_that_was_there_drives_the_edge_and_goes_on_when_the_cluster_is_deleted(
    grounds: Grounds, theirs: Theirs
) -> None:
    with_theirs, starts = grounds.contents(), grounds.kubelet.starts(KUSTOMIZE)
    attached = grounds.attach("guest")
    attached.push("recipe.yaml", RECIPE.format(namespace="default", temperature=90))
    grounds.cluster.fetch_now()
    eventually(lambda: recipe(grounds, "default") == "90", seconds=LETTING_GO)
    made = grounds.contents().keys() - with_theirs.keys()
    assert f"Kustomization/{NAMESPACE}/self-link" in made
    assert [key for key in made if f"/{FLUX_NAMESPACE}/" in key or key.startswith("CustomResource")] == []
    theirs.deliver(185)
    theirs.deliver(180)

    attached.delete()
    eventually(lambda: "await_empty" in attached.order(), seconds=LETTING_GO)
    grounds.cluster.fetch_now()
    eventually(lambda: recipe(grounds, "default") is None, seconds=LETTING_GO)
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(with_theirs), seconds=LETTING_GO)
    assert "edge.goodbye" in attached.kinds()
    theirs.deliver(190)
    assert grounds.kubelet.starts(KUSTOMIZE) == starts, "nobody has touched the controller"


def test_an_uninstallation_takes_our_drivers_from_a_flux_of_others_and_leaves_what_they_opened(
    grounds: Grounds, theirs: Theirs
) -> None:
    kubectl, places = grounds.cluster.kubectl, ("default", "line-1", "line-2")
    for place in places[1:]:
        kubectl("create", "namespace", place)
    with_theirs = grounds.contents()
    attached = grounds.attach("leaving")
    for place in places:
        attached.put_secret(place, "kept", b"kept")
    for place in places:
        eventually(partial(is_kept, grounds, place), seconds=LETTING_GO)
        assert grounds.cluster.find("kustomization", f"edge-secrets-{place}", namespace=NAMESPACE)

    line = BootstrapLine(grounds.centre, grounds.cluster, attached.uuid, grounds.folder)
    diary = grounds.folder / "diary"
    kubectl_at = grounds.folder / "bin/kubectl"
    kubectl_at.unlink()
    kubectl_at.write_text(AT_WORK.format(program=kubectl.program, namespace=NAMESPACE, diary=diary))
    kubectl_at.chmod(0o755)
    done = line.type(f"{line.fetched} | sh -s -- --yes --uninstall")
    assert done.returncode == 0, done.stdout + done.stderr
    assert diary.read_text().split() == ["applied"] * len(places) + ["freed"]
    made = grounds.contents().keys() - with_theirs.keys()
    assert made == {f"{kind}/{place}/kept" for kind in ("SealedSecret", "Secret") for place in places}
    assert {opened(grounds, place) for place in places} == {b"kept"}
    theirs.deliver(175)

    attached.delete(force="true")
    kubectl("delete", "namespace", *places[1:])
    kubectl("delete", "sealedsecret", "kept", "--namespace", "default")
    eventually(lambda: opened(grounds, "default") is None, seconds=LETTING_GO)


def opened(grounds: Grounds, namespace: str) -> bytes | None:
    found: Any = grounds.cluster.find("secret", "kept", namespace=namespace)
    return base64.b64decode(found["data"]["password"]) if found else None


def is_kept(grounds: Grounds, namespace: str) -> bool:
    return opened(grounds, namespace) == b"kept"


def recipe(grounds: Grounds, namespace: str) -> str | None:
    found: Any = grounds.cluster.find("configmap", "recipe", namespace=namespace)
    return found["data"]["temperature"] if found else None
