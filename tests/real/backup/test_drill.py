"""The drill: a centre that people and edges use is backed up, loses a store, is restored, and goes on."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from backed_up import LONG, BackedUp, RegisteredEdge, lose
from embedded import EmbeddedEdgewright
from supervised import eventually

from tools.chaos.drill import Drill
from tools.chaos.embedded_centre import EmbeddedCentre

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


LOSSES = ("database", "database damaged", "repositories", "everything", "Temporal's file")
SEED = 4


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[BackedUp]:
    centre = EmbeddedEdgewright(tmp_path / "home", {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "2"})
    try:
        centre.up()
        yield BackedUp(centre)
    finally:
        centre.clear_up()


def test_each_store_that_is_lost_comes_back_with_all_that_was_answered(tmp_path: Path) -> None:
    centre = EmbeddedCentre(tmp_path)
    backed_up = BackedUp(centre.up)
    drill = Drill(centre, tmp_path, seed=SEED)
    try:
        centre.start()
        backup = drill.written_to_while(backed_up.back_up)
        token = (backed_up.home / "admin-token").read_text()
        centre.stop()
        for loss in LOSSES:
            lose(backed_up.home, loss)
            if loss != "Temporal's file":
                backed_up.restore(backup)
                drill.restored()
            centre.start()
            assert (backed_up.home / "admin-token").read_text() == token
            assert drill.wrong() == [], f"after the loss of {loss}"
    finally:
        centre.clear_up()


def test_edges_and_clusters_that_moved_on_after_the_backup(drill: BackedUp) -> None:
    centre = drill.centre
    names = ("press-shop", "late", "rotates", "gone")
    press_shop, late, rotates, gone = (centre.create(name) for name in names)
    for uuid in (press_shop, late, rotates, gone):
        eventually(partial(drill.is_ready, uuid), seconds=LONG)
    drill.take_certificate(press_shop)
    assert drill.put_secret(press_shop, "before", "older")
    rotating = RegisteredEdge(centre, rotates)
    assert rotating.beat().status_code == 200
    backup = drill.back_up()

    assert drill.put_secret(press_shop, "after", "newer")
    values = {"global": {"marker": "after-the-backup"}}
    changed = centre.api("PATCH", f"/v1/cluster/{press_shop}", json={"values": values})
    assert changed.is_success, changed.text
    eventually(lambda: drill.git(press_shop, "grep", "after-the-backup", "main"), seconds=LONG)
    latecomer = RegisteredEdge(centre, late)
    assert latecomer.beat().status_code == 200
    successor = rotating.rotate()
    assert rotating.beat().status_code == 401
    new = centre.create("new")
    eventually(lambda: drill.is_ready(new), seconds=LONG)
    assert centre.api("DELETE", f"/v1/cluster/{gone}").status_code == 202
    eventually(lambda: drill.is_gone(gone), seconds=LONG)
    head = drill.git(press_shop, "rev-parse", "main")

    assert centre.interrupt() == 0
    lose(drill.home, "database")
    said = drill.restore(backup, "--keep-repositories")
    assert "1 repositories were archived after the backup; they are in service again." in said
    centre.up()

    for uuid in (press_shop, late, rotates, gone):
        eventually(partial(drill.is_settled, uuid), seconds=LONG)
    the_repository_that_is_ahead_goes_on(drill, press_shop, head)
    the_edge_that_is_not_known_is_told_how_to_attach(latecomer)
    assert rotating.beat(successor).status_code == 401
    assert rotating.beat().status_code == 200, "the edge's previous credential works"
    assert drill.is_unknown(new)
    other = centre.create("new")
    eventually(lambda: drill.is_ready(other), seconds=LONG)
    assert centre.api("DELETE", f"/v1/cluster/{gone}").status_code == 202
    eventually(lambda: drill.is_gone(gone), seconds=LONG)
    told = centre.api("GET", f"/v1/cluster/{press_shop}/timeline").text
    assert "The centre was restored from a backup made at" in told


def the_repository_that_is_ahead_goes_on(drill: BackedUp, uuid: str, head: str) -> None:
    """What was committed stays; what is wanted is the database's again; both keys are there, and a third is taken."""
    assert head.strip() in drill.git(uuid, "log", "--format=%H")
    assert not drill.git(uuid, "grep", "after-the-backup", "main")
    assert drill.opened(uuid) == {"before": "older", "after": "newer"}
    assert drill.put_secret(uuid, "later", "newest")
    assert drill.opened(uuid) == {"before": "older", "after": "newer", "later": "newest"}
    listed = drill.centre.api("GET", f"/v1/cluster/{uuid}/secret").text
    assert all(f'"{key}"' in listed for key in ("before", "after", "later"))


def the_edge_that_is_not_known_is_told_how_to_attach(edge: RegisteredEdge) -> None:
    refused = edge.beat()
    assert refused.status_code == 401
    assert "edgewright cluster bootstrap NAME" in refused.json()["hint"]
    again = RegisteredEdge(edge.centre, edge.cluster, kube_system_uid=edge.kube_system_uid)
    assert again.beat().status_code == 200
