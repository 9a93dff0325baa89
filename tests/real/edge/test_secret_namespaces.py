"""Secrets of one namespace wait for nobody else's, and an edge of an earlier release comes to that without a loss."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from edge_cluster.grounds import LETTING_GO, NAMESPACE
from edge_cluster.line import BootstrapLine
from supervised import eventually

from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.rendering.layout import DRIVER_PATTERN_PATH, DRIVERS_PATH
from edgewright.ports.git_server import CommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

APPLIED_BY = "kustomize.toolkit.fluxcd.io/name"
"""Label of what Flux has applied: the Kustomization that did so."""
OLD_DRIVER = "edge-secrets"
ANCHOR, MARK = "edgewright-anchor", "edgewright.dev/cluster"
SOON = 75.0
"""Seconds: a driver tries again each half minute, and a namespace has to be noticed."""


Place = tuple[str, str]
"""Namespace and name of a Secret."""
PLACES: Sequence[Place] = (("default", "db"), ("default", "mqtt"), ("line-1", "db"))
KINDS = ("sealedsecret", "secret")


@dataclass(frozen=True)
class TakenOver:
    """An edge whose one driver of an earlier release has been replaced by one for each namespace.

    Args:
        driven_by: who had applied the Secrets before.
        is_stuck: whether one missing namespace had stopped them all then.
        before, after: by kind and place, the UID of what Kubernetes held; None for what was being deleted.
    """

    attached: GroundsCluster
    driven_by: set[str]
    is_stuck: bool
    before: dict[tuple[str, Place], str | None]
    after: dict[tuple[str, Place], str | None]


@pytest.fixture(scope="module")
def taken_over(grounds: Grounds) -> Iterator[TakenOver]:
    """All of the way there, once: whichever test is the first one finds it done."""
    attached = grounds.attach("press-shop")
    assert attached.api("PATCH", json={"values": {"global": {"marker": "first"}}}).status_code == 200
    # The agent asks Flux to fetch that, and the centre renders once more because it does.
    eventually(lambda: interval(attached) == "10m", seconds=LETTING_GO)
    eventually(lambda: attached.condition("Synced")[0] == "True", seconds=LETTING_GO)
    render_as_before(attached)
    yield take_over(attached)
    if not attached.is_gone():
        attached.delete(force="true")
        eventually(attached.is_gone, seconds=LETTING_GO)


@pytest.fixture
def attached(taken_over: TakenOver) -> GroundsCluster:
    return taken_over.attached


def take_over(attached: GroundsCluster) -> TakenOver:
    create_namespace(attached, "line-1")
    for place in PLACES:
        attached.put_secret(*place, b"before")
    for place in PLACES:
        arrives(attached, *place, holding=b"before")
    driven_by, before = {owner(attached, *place) for place in PLACES}, identities(attached)
    attached.put_secret("ghost", "db", b"x")
    attached.put_secret("default", "stuck", b"stuck")
    eventually(lambda: attached.condition("Synced") == ("False", "ApplyFailed"), seconds=LETTING_GO)
    is_stuck = value(attached, "default", "stuck") is None

    assert attached.api("PATCH", json={"values": {"global": {"marker": "rendered"}}}).status_code == 200
    arrives(attached, "default", "stuck", holding=b"stuck")
    for place in PLACES:
        eventually(partial(is_owned, attached, place), seconds=LETTING_GO)
    eventually(lambda: not _inventory(find(attached, "kustomization", OLD_DRIVER)), seconds=LETTING_GO)
    eventually(lambda: "edge-secrets-ghost" in message(attached, "Synced"), seconds=LETTING_GO)
    create_namespace(attached, "ghost")
    eventually(lambda: attached.condition("Synced")[0] == "True", seconds=LETTING_GO)
    return TakenOver(attached, driven_by, is_stuck, before, identities(attached))


def identities(attached: GroundsCluster) -> dict[tuple[str, Place], str | None]:
    found = {
        (kind, place): find(attached, kind, place[1], place[0])["metadata"] for kind in KINDS for place in PLACES
    }
    return {key: None if "deletionTimestamp" in one else one["uid"] for key, one in found.items()}


def interval(attached: GroundsCluster) -> str:
    return str(find(attached, "gitrepository", "self-link")["spec"]["interval"])


def git_of(attached: GroundsCluster) -> BareGitServer:
    return BareGitServer(attached.grounds.centre.home / "repositories")


def render_as_before(attached: GroundsCluster) -> None:
    """The pattern of the drivers is the one driver of before."""
    git, uuid = git_of(attached), UUID(attached.uuid)
    head = git.head(uuid)
    assert head
    pattern = git.read(uuid, DRIVER_PATTERN_PATH, at=head)
    assert pattern and git.read(uuid, DRIVERS_PATH, at=head) is None
    files = {DRIVER_PATTERN_PATH: None, "edo/cluster/edge-secrets.yaml": pattern}
    git.commit(uuid, files, CommitMessage("Render as before", "desk"), expected_head=head)
    attached.grounds.cluster.fetch_now()
    eventually(lambda: find(attached, "kustomization", OLD_DRIVER) is not None, seconds=LETTING_GO)


def find(attached: GroundsCluster, kind: str, name: str, namespace: str = NAMESPACE) -> Any:
    return attached.grounds.cluster.find(kind, name, namespace=namespace)


def value(attached: GroundsCluster, namespace: str, name: str) -> bytes | None:
    found = find(attached, "secret", name, namespace)
    return None if found is None else base64.b64decode(found["data"]["password"])


def owner(attached: GroundsCluster, namespace: str, name: str) -> str:
    """The driver that has applied it last."""
    found = find(attached, "sealedsecret", name, namespace) or {"metadata": {}}
    return str(found["metadata"].get("labels", {}).get(APPLIED_BY, ""))


def is_owned(attached: GroundsCluster, place: tuple[str, str]) -> bool:
    """Whether the driver of its own namespace has taken it over."""
    return owner(attached, *place) == f"{OLD_DRIVER}-{place[0]}"


def arrives(
    attached: GroundsCluster, namespace: str, name: str, *, holding: bytes, seconds: float = LETTING_GO
) -> None:
    eventually(lambda: value(attached, namespace, name) == holding, seconds=seconds)


def create_namespace(attached: GroundsCluster, name: str) -> None:
    attached.grounds.cluster.kubectl("create", "namespace", name)


def message(attached: GroundsCluster, condition: str) -> str:
    [found] = [one for one in attached.api("GET").json()["conditions"] if one["type"] == condition]
    return str(found["message"])


def test_drivers_of_their_own_take_over_and_no_secret_is_gone_for_a_moment(taken_over: TakenOver) -> None:
    attached = taken_over.attached
    assert taken_over.driven_by == {OLD_DRIVER}
    assert taken_over.is_stuck, "one missing namespace stops them all"
    assert None not in taken_over.before.values()
    assert taken_over.after == taken_over.before
    retired = find(attached, "kustomization", OLD_DRIVER)
    assert (retired["spec"]["prune"], retired["spec"]["path"]) == (False, "./edo/retired")

    assert attached.api("DELETE", "/secret/default/mqtt/password").status_code == 204
    eventually(lambda: find(attached, "secret", "mqtt", "default") is None, seconds=LETTING_GO)
    assert value(attached, "default", "db") == b"before"


def _inventory(kustomization: Any) -> Any:
    return kustomization["status"].get("inventory", {}).get("entries")


def test_a_missing_namespace_holds_up_itself_alone_and_its_secret_opens_once_it_is_there(
    attached: GroundsCluster,
) -> None:
    eventually(lambda: "default" in namespaces(attached), seconds=LETTING_GO)
    answer = attached.api("PUT", "/secret/line-9/db/password", content=b"nine")
    assert answer.status_code == 204
    assert "does not have the namespace line-9" in answer.headers["Edgewright-Warning"]
    attached.put_secret("default", "later", b"later")
    attached.put_secret("line-1", "later", b"later")
    arrives(attached, "default", "later", holding=b"later")
    arrives(attached, "line-1", "later", holding=b"later")
    eventually(lambda: attached.condition("Synced") == ("False", "ApplyFailed"), seconds=LETTING_GO)
    eventually(lambda: "edge-secrets-line-9" in message(attached, "Synced"), seconds=LETTING_GO)
    assert "has applied nothing" not in message(attached, "Synced")

    create_namespace(attached, "line-9")
    arrives(attached, "line-9", "db", holding=b"nine", seconds=SOON)
    eventually(lambda: attached.condition("Synced")[0] == "True", seconds=LETTING_GO)
    eventually(lambda: "line-9" in namespaces(attached), seconds=LETTING_GO)
    assert "Edgewright-Warning" not in attached.api("PUT", "/secret/line-9/db/user", content=b"u").headers


def namespaces(attached: GroundsCluster) -> list[str]:
    """That the edge has reported."""
    status = attached.grounds.centre.api(
        "GET", f"/v1/app/747a62c9-1b66-4a2e-8dd9-0b70a91b6b75/object/{attached.uuid}"
    ).json()
    found: list[str] = status.get("namespaces", [])
    return found


def test_create_namespace_leaves_one_that_is_there_as_it_is(attached: GroundsCluster) -> None:
    """Else whoever may set secrets could take a namespace's labels away, such as what its pods may do."""
    labels = "labels: {pod-security.kubernetes.io/enforce: restricted}"
    attached.push("line-5.yaml", f"{{apiVersion: v1, kind: Namespace, metadata: {{name: line-5, {labels}}}}}\n")
    eventually(lambda: find(attached, "namespace", "line-5") is not None, seconds=LETTING_GO)
    before = find(attached, "namespace", "line-5")["metadata"]
    answer = attached.api("PUT", "/secret/line-5/db/password", content=b"five", params={"create_namespace": "true"})
    assert answer.status_code == 204, answer.text
    arrives(attached, "line-5", "db", holding=b"five")
    now = find(attached, "namespace", "line-5")["metadata"]
    assert (now["labels"], now.get("annotations")) == (before["labels"], before.get("annotations"))


def test_create_namespace_brings_it_along_and_it_outlives_its_secrets(attached: GroundsCluster) -> None:
    answer = attached.api("PUT", "/secret/line-2/db/password", content=b"two", params={"create_namespace": "true"})
    assert answer.status_code == 204, answer.text
    arrives(attached, "line-2", "db", holding=b"two")
    assert attached.api("DELETE", "/secret/line-2/db/password").status_code == 204
    eventually(lambda: find(attached, "sealedsecret", "db", "line-2") is None, seconds=LETTING_GO)
    assert attached.api("PATCH", json={"values": {"global": {"marker": "rendered again"}}}).status_code == 200
    eventually(lambda: find(attached, "kustomization", "edge-secrets-line-2") is None, seconds=LETTING_GO)
    found = find(attached, "namespace", "line-2")
    assert found and "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_the_last_secret_deleted_and_set_again_is_there(attached: GroundsCluster, pause: float) -> None:
    namespace = f"line-3-{pause:.0f}"
    create_namespace(attached, namespace)
    attached.put_secret(namespace, "db", b"first")
    arrives(attached, namespace, "db", holding=b"first")
    assert attached.api("DELETE", f"/secret/{namespace}/db/password").status_code == 204
    time.sleep(pause)
    attached.put_secret(namespace, "db", b"second")
    arrives(attached, namespace, "db", holding=b"second", seconds=SOON)
    time.sleep(5)
    assert value(attached, namespace, "db") == b"second"


def test_a_driver_that_somebody_removes_on_the_edge_comes_back_with_the_next_commit(attached: GroundsCluster) -> None:
    attached.grounds.cluster.kubectl("delete", "kustomization", "edge-secrets-line-1", "--namespace", NAMESPACE)
    eventually(lambda: find(attached, "sealedsecret", "db", "line-1") is None, seconds=LETTING_GO)
    attached.put_secret("default", "next", b"next")
    arrives(attached, "line-1", "db", holding=b"before")


def test_an_uninstallation_takes_every_driver_and_leaves_what_was_opened(attached: GroundsCluster) -> None:
    """Also those of three namespaces and more; a fresh line drives all of them again."""
    grounds, places = attached.grounds, ("default", "line-1", "line-9")
    for place in places[1:]:
        create_namespace_unless_there(attached, place)
    for place in places:
        attached.put_secret(place, "kept", b"kept")
        arrives(attached, place, "kept", holding=b"kept")
    drivers = [key for key in grounds.contents() if key.startswith(f"Kustomization/{NAMESPACE}/{OLD_DRIVER}-")]
    assert {f"Kustomization/{NAMESPACE}/{OLD_DRIVER}-{place}" for place in places} <= set(drivers)

    done = BootstrapLine(grounds.centre, grounds.cluster, attached.uuid, grounds.folder).run("--uninstall")
    assert done.returncode == 0, done.stdout + done.stderr
    left = grounds.contents()
    assert [key for key, one in left.items() if MARK in one["metadata"].get("labels", {})] == []
    assert [key for key in left if f"/{NAMESPACE}/" in key or key in drivers or "toolkit.fluxcd.io" in key] == []
    assert find(attached, "namespace", NAMESPACE) is None and find(attached, "clusterrole", ANCHOR) is None
    assert {value(attached, place, "kept") for place in places} == {b"kept"}

    attached.paste()
    for place in places:
        attached.put_secret(place, "kept", b"again")
        arrives(attached, place, "kept", holding=b"again")


def create_namespace_unless_there(attached: GroundsCluster, name: str) -> None:
    if find(attached, "namespace", name) is None:
        create_namespace(attached, name)


def test_an_edge_with_a_namespace_that_never_came_lets_go(attached: GroundsCluster) -> None:
    """The last one: it leaves nobody attached."""
    answer = attached.api("PUT", "/secret/line-2/db/password", content=b"two", params={"create_namespace": "true"})
    assert answer.status_code == 204, answer.text
    arrives(attached, "line-2", "db", holding=b"two")
    attached.put_secret("nowhere", "db", b"x")
    eventually(lambda: attached.condition("Synced") == ("False", "ApplyFailed"), seconds=LETTING_GO)
    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO * 2)
    assert find(attached, "secret", "db", "default") is None
    assert find(attached, "namespace", "line-2") is not None
