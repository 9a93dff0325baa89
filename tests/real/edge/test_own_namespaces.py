"""What Flux does when a file takes over a namespace that bootstrap has made, and lets it go again."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from edge_cluster.grounds import LETTING_GO, NAMESPACE
from edge_cluster.release import release
from edge_cluster.site import AGENT
from flux_file import NAMESPACE as FLUX_NAMESPACE
from supervised import eventually

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.yaml_objects import Budget, named_objects
from edgewright.bootstrap import installed_objects
from edgewright.domain.flux_bundle import read_flux_bundle
from edgewright.domain.own_objects import EDGEWRIGHT, FLUX, ObjectKey, OwnObjects
from edgewright.domain.rendering.manifests import manifest_key
from edgewright.ports.git_server import CommitMessage

if TYPE_CHECKING:
    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

PRUNE = "kustomize.toolkit.fluxcd.io/prune"
ADOPTED = "kustomize.toolkit.fluxcd.io/name"
"""Label of what Flux has applied: the Kustomization that did so."""
PUSHED = "by-hand/pushed.yaml"
THEIRS = "theirs"
DRIVEN = ("True", "UpToDate")
RECIPE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: recipe, namespace: default}\n"


def namespaces(*names: str) -> bytes:
    return "".join(f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n" for name in names).encode()


def deliver(attached: GroundsCluster, text: bytes | None) -> str:
    """Commits a file to ``by-hand/``, past the push rules, which refuse such a thing."""
    git, uuid = BareGitServer(attached.grounds.centre.home / "repositories"), UUID(attached.uuid)
    return git.commit(uuid, {PUSHED: text}, CommitMessage("By hand", "desk"), expected_head=git.head(uuid))


def is_pushed(attached: GroundsCluster) -> bool:
    """Unless the centre has committed between clone and push."""
    try:
        attached.push("recipe.yaml", RECIPE)
    except subprocess.CalledProcessError as error:
        assert b"fetch first" in error.stderr or b"cannot lock ref" in error.stderr, error.stderr
        return False
    return True


def known(attached: GroundsCluster) -> OwnObjects:
    """What the push rules take for Edgewright's on that edge."""
    git, uuid = BareGitServer(attached.grounds.centre.home / "repositories"), UUID(attached.uuid)
    head = git.head(uuid)
    assert head is not None
    generated = [
        each.key
        for path in git.list(uuid, "edo/cluster", at=head)
        for each in named_objects(git.read(uuid, path, at=head) or b"", ("",), Budget(10.0))
    ]
    flux = [ObjectKey(*manifest_key(one)) for one in read_flux_bundle(release()).manifests]
    return installed_objects(NAMESPACE, {NAMESPACE: EDGEWRIGHT, FLUX_NAMESPACE: FLUX}, flux).with_more(
        generated, EDGEWRIGHT
    )


def marked(grounds: Grounds) -> set[str]:
    """Kind/namespace/name of everything on the edge that bears the mark of a cluster."""
    return {
        key
        for key, one in grounds.contents().items()
        if "edgewright.dev/cluster" in (one["metadata"].get("labels") or ())
    }


def found(grounds: Grounds, kind: str, name: str) -> Any:
    return grounds.cluster.find(kind, name)


def is_adopted(grounds: Grounds, namespace: str) -> bool:
    """Whether a file of the operator's holds it, as Flux has it."""
    there = found(grounds, "namespace", namespace) or {"metadata": {}}
    return bool(there["metadata"].get("labels", {}).get(ADOPTED) == "by-hand")


def applied(grounds: Grounds) -> str:
    """The revision that ``by-hand`` has applied last."""
    by_hand = grounds.cluster.find("kustomization", "by-hand", namespace=NAMESPACE)
    return str((by_hand.get("status") or {}).get("lastAppliedRevision", "")).rpartition(":")[2]


@pytest.mark.parametrize("by_hand", [False, True], ids=["script", "manifests"])
def test_a_namespace_of_ours_that_a_file_took_over_outlives_the_file(
    grounds: Grounds, before: Contents, *, by_hand: bool
) -> None:
    attached = grounds.attach(f"adopted-{by_hand}", by_hand=by_hand)
    ours = {name: found(grounds, "namespace", name)["metadata"] for name in (NAMESPACE, FLUX_NAMESPACE)}
    assert {one["annotations"][PRUNE] for one in ours.values()} == {"disabled"}
    installed = marked(grounds)
    assert {"Secret", "Deployment", "Kustomization", "ClusterRole"} <= {key.partition("/")[0] for key in installed}
    assert installed <= {f"{key.kind}/{key.namespace}/{key.name}" for key in known(attached)}, "pushes may bring none"
    deliver(attached, namespaces(*ours, THEIRS))
    grounds.cluster.fetch_now()
    for name in (*ours, THEIRS):
        eventually(partial(is_adopted, grounds, name), seconds=LETTING_GO)

    removal = deliver(attached, None)
    grounds.cluster.fetch_now()
    eventually(lambda: applied(grounds) == removal, seconds=LETTING_GO)
    eventually(lambda: found(grounds, "namespace", THEIRS) is None, seconds=LETTING_GO)
    for name, metadata in ours.items():
        left = found(grounds, "namespace", name)["metadata"]
        assert left["uid"] == metadata["uid"] and "deletionTimestamp" not in left
    assert attached.condition("Available")[0] == "True"

    attached.delete()
    eventually(lambda: "await_empty" in attached.order(), seconds=LETTING_GO)
    if by_hand:  # its agent has no right to ask
        grounds.cluster.fetch_now()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def test_a_namespace_of_ours_that_somebody_deletes_is_brought_back_by_a_fresh_line(
    grounds: Grounds, before: Contents
) -> None:
    """And with what drives the edge, what that has brought: it goes with its driver."""
    attached = grounds.attach("erased")
    attached.put_secret("default", "db", b"s3cr3t")
    eventually(lambda: is_pushed(attached))

    def brought() -> list[bool]:
        return [found(grounds, *each) is not None for each in (("secret", "db"), ("configmap", "recipe"))]

    eventually(lambda: all(brought()), seconds=LETTING_GO)
    eventually(lambda: attached.condition("Synced") == DRIVEN, seconds=LETTING_GO)
    drivers = {key for key in marked(grounds) if key.partition("/")[2].startswith(f"{NAMESPACE}/")}
    assert {f"GitRepository/{NAMESPACE}/self-link", f"Kustomization/{NAMESPACE}/edge-secrets-default"} <= drivers
    grounds.cluster.kubectl("delete", "namespace", NAMESPACE)
    eventually(lambda: attached.condition("Available")[0] != "True", seconds=LETTING_GO)
    assert not grounds.kubelet.runs(AGENT) and not drivers & marked(grounds)
    assert not any(brought())

    attached.paste()
    eventually(lambda: attached.condition("Synced") == DRIVEN, seconds=LETTING_GO)
    eventually(lambda: all(brought()), seconds=LETTING_GO)
    eventually(lambda: drivers <= marked(grounds), seconds=LETTING_GO)

    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)
