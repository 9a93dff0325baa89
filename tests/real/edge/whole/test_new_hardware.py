"""A cluster goes on on another real Kubernetes cluster; the first one is dead, and then comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from desk import CHECKOUT
from edge_cluster.attaching import Attaching
from edge_cluster.contents import contents
from edge_cluster.desk import push_by_hand
from edge_cluster.patience import eventually
from edge_cluster.site import AGENT, Site, site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

NAME = "moving"
EDGEWRIGHT = CHECKOUT / "bin" / "edgewright"
SECOND_NODE = """
apiVersion: v1
kind: Node
metadata:
  name: new-1
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
"""
RECIPE = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: recipe, namespace: default}}
data: {{temperature: "{temperature}"}}
"""


@pytest.fixture(scope="module")
def successor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Another Kubernetes cluster, with one host more, that nobody has attached."""
    with site(tmp_path_factory.mktemp("fetched-there")) as found:
        found.cluster.kubectl.apply(SECOND_NODE)
        yield found


@pytest.fixture
def new_attaching(attaching: Attaching, successor: Site, tmp_path: Path) -> Iterator[Attaching]:
    """By the same person, for the other hardware."""
    folder = tmp_path / "new"
    folder.mkdir()
    with Attaching(attaching.desk, successor, folder) as there:
        yield there


def test_new_hardware_takes_over_and_what_comes_back_of_the_old_is_refused_and_takes_nothing(
    attaching: Attaching, new_attaching: Attaching
) -> None:
    old, new = attaching.factory, new_attaching.factory
    uuid = attaching.commission(NAME)
    attach(attaching, uuid)
    attaching.put_secret(uuid, "of the old")
    attaching.fetch_now()
    eventually(lambda: attaching.opened_secret() == "of the old")
    eventually(lambda: attaching.condition(uuid, "Synced")[0] == "True")
    credential = attaching.password(), attaching.password("flux-secrets")

    with old.kubelet.unplugged():
        eventually(lambda: attaching.condition(uuid, "Available")[0] == "Unknown")
        said = attaching.desk.run(str(EDGEWRIGHT), "cluster", "recreate", NAME, "--new-hardware", "--yes", "--wait")
        assert "Enter again: the secret default/db/password." in said.err, said
        assert attaching.shown(uuid)["must_reenter"] == ["default/db/password"]
        assert not attaching.shown(uuid)["hosts"], "nothing of the old edge is believed"

        attach(new_attaching, uuid)
        eventually(lambda: hosts(attaching, uuid) == {"node-1", "new-1"})
        assert new_attaching.opened_secret() is None, "what only the old edge could open is not delivered"
        attaching.put_secret(uuid, "of the new")
        new_attaching.fetch_now()
        eventually(lambda: new_attaching.opened_secret() == "of the new")
        assert attaching.shown(uuid)["must_reenter"] == []
        assert not {*credential} & {new_attaching.password(), new_attaching.password("flux-secrets")}

    # It is plugged in again, and knows nothing of all that.
    eventually(lambda: attaching.agent_said()[-1:] == ["refused"])
    assert "authentication required" in attaching.fetch_now()
    before, certificate = contents(old.cluster), attaching.shown(uuid)["certificate"]
    push_by_hand(attaching.desk.centre, uuid, "recipe.yaml", RECIPE.format(temperature=180))
    attaching.put_secret(uuid, "later")
    new_attaching.fetch_now()
    eventually(lambda: recipe_on(new) == {"temperature": "180"} and new_attaching.opened_secret() == "later")
    restart_and_let_it_ask(attaching)
    assert contents(old.cluster) == before, "it keeps what it has, and is given nothing"
    assert attaching.opened_secret() == "of the old" and recipe_on(old) is None

    # Nor has it taken anything from its successor.
    assert attaching.is_available(uuid)
    assert attaching.condition(uuid, "Joined") == ("True", "Reported"), "no fork: its nonces are not heard"
    assert hosts(attaching, uuid) == {"node-1", "new-1"}
    assert attaching.shown(uuid)["certificate"] == certificate
    eventually(lambda: attaching.condition(uuid, "Synced")[0] == "True")

    # Whoever is there can take it off; its successor does not notice.
    away = attaching.line(uuid).run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    eventually(lambda: not old.kubelet.runs(AGENT))
    heard = attaching.shown(uuid)["lease"]["last_heard"]
    eventually(lambda: attaching.shown(uuid)["lease"]["last_heard"] > heard)


def attach(there: Attaching, uuid: str) -> None:
    """Pastes a fresh line; returns when the edge can be given secrets."""
    done = there.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: there.is_available(uuid))
    there.factory.install_chart()
    eventually(lambda: there.condition(uuid, "SealingKeyCurrent")[0] == "True")


def restart_and_let_it_ask(attaching: Attaching) -> None:
    """Its agent and its Flux ask once more, from the start."""
    starts = len(attaching.agent_starts())
    attaching.factory.kubelet.kill(AGENT)
    eventually(lambda: len(attaching.agent_starts()) > starts)
    eventually(lambda: attaching.agent_said()[-1:] == ["refused"])
    assert "authentication required" in attaching.fetch_now()


def hosts(attaching: Attaching, uuid: str) -> set[str]:
    return {each["hostname"] for each in attaching.shown(uuid)["hosts"] or ()}


def recipe_on(where: Site) -> dict[str, str] | None:
    found = where.cluster.find("configmap", "recipe")
    return dict(found["data"]) if found else None
