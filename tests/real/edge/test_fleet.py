"""What happens to edges of a fleet in the long run: copied machines, wrong clocks, and a centre that moves.

On a centre and a Kubernetes cluster of their own, for they are not as others expect them afterwards.
"""

from __future__ import annotations

import base64
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from edge_cluster.agent import NAMESPACE, AgentProcess
from edge_cluster.certificates import Authority
from edge_cluster.cluster import edge_cluster
from edge_cluster.controllers import SealedSecrets, install_flux
from edge_cluster.site import running_flux
from edge_cluster.tls_front import tls_front
from embedded import SWEEP_SECONDS, EmbeddedEdgewright
from free_ports import free_port
from supervised import eventually

import edgewright.agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edge.conftest import Edge
    from edge_cluster.cluster import Cluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

OWN, FLUX = "edgewright-agent", "flux-secrets"
LEASE_SECONDS = 15
AN_HOUR_AHEAD = """
import sys
from datetime import UTC, datetime, timedelta
from edgewright.agent import __main__ as agent
from edgewright.agent.lifetime import main_of
from edgewright.agent.timing import RealClock

RealClock.now = lambda self: datetime.now(UTC) + timedelta(hours=1)
sys.exit(main_of(agent.run))
"""
RIGHTS = Path(edgewright.agent.__file__).with_name("rbac.yaml")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with edge_cluster() as cluster:
        install_flux(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl.apply(RIGHTS.read_text())
        with running_flux(cluster, tmp_path_factory.mktemp("fetched")):
            yield cluster


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the gateway."""
    return free_port()


@pytest.fixture(scope="module")
def centre(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_SWEEP_SECONDS": SWEEP_SECONDS,
        "EDGEWRIGHT_GATEWAY_PORT": str(port),
        "EDGEWRIGHT_EXTERNAL_URL": f"http://127.0.0.1:{port}",
    }
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("moving") / "home", variables)
    centre.up()
    yield centre
    centre.clear_up()


@pytest.fixture(scope="module")
def edge(
    centre: EmbeddedEdgewright,
    cluster: Cluster,
    attached: Callable[..., Edge],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Edge]:
    wish = {"name": "paint-shop", "lease_seconds": LEASE_SECONDS}
    uuid = centre.api("POST", "/v1/cluster", json=wish).json()["uuid"]
    eventually(lambda: centre.is_ready("paint-shop"))
    sealed_secrets = SealedSecrets(cluster)
    sealed_secrets.start()
    agent = AgentProcess(cluster, sealing_url=sealed_secrets.url)
    try:
        edge = attached(centre, cluster, agent, uuid, tmp_path_factory.mktemp("desk"))
        agent.start()
        eventually(edge.is_available)
        yield edge
    finally:
        agent.clear_up()


def kinds(edge: Edge) -> list[str]:
    return [each["kind"] for each in edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/timeline").json()["items"]]


def held(edge: Edge, name: str, key: str) -> str | None:
    data = edge.cluster.find("secret", name, namespace=NAMESPACE)["data"]
    return base64.b64decode(data[key]).decode().strip() if key in data else None


def doctor(edge: Edge) -> str:
    return edge.centre.command("doctor").stdout


def is_heard_after(edge: Edge, moment: str) -> bool:
    return bool(edge.shown()["lease"]["last_heard"] > moment)


def states_of_moving(edge: Edge) -> int:
    """How often the agent has said something of where its centre is."""
    return len(edge.agent.states("centre")) + len(edge.agent.states("move"))


def has_moved_on(edge: Edge, before: int) -> bool:
    return states_of_moving(edge) > before


def test_two_agents_with_one_identity_are_noticed_until_one_is_turned_off(edge: Edge) -> None:
    copy = AgentProcess(edge.cluster, name="copy")
    copy.start()
    try:
        eventually(lambda: edge.condition("Joined") == ("True", "IdentityForked"), seconds=300)
        assert "Turn the copy off" in edge.message("Joined")
        assert "IdentityForked" in edge.centre.command("cluster", "show", "paint-shop").stdout
        assert kinds(edge).count("edge.forked") == 1
    finally:
        copy.clear_up()
    eventually(lambda: edge.condition("Joined") == ("True", "Reported"), seconds=300)
    assert kinds(edge)[-1] == "edge.fork_ended"


def test_agents_one_after_the_other_and_a_centre_that_is_killed_are_no_fork(edge: Edge) -> None:
    before = kinds(edge).count("edge.forked")
    for _ in range(3):
        heard = edge.shown()["lease"]["last_heard"]
        edge.agent.kill()
        edge.agent.start()
        eventually(partial(is_heard_after, edge, heard))
    edge.centre.interrupt()
    edge.centre.up()
    heard = edge.shown()["lease"]["last_heard"]
    eventually(lambda: edge.shown()["lease"]["last_heard"] > heard, seconds=400)
    assert kinds(edge).count("edge.forked") == before


def test_an_edge_whose_clock_is_an_hour_wrong_is_named_and_works(edge: Edge) -> None:
    edge.agent.stop()
    wrong = AgentProcess(edge.cluster, name="wrong-clock", program=[sys.executable, "-P", "-c", AN_HOUR_AHEAD])
    wrong.start()
    try:
        eventually(lambda: edge.condition("ClockSynced") == ("False", "ClockSkewed"))
        assert "s ahead of the centre's" in edge.message("ClockSynced")
        eventually(edge.is_available)
        before = held(edge, OWN, "password")
        assert edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/credential/rotate").status_code == 202
        eventually(lambda: held(edge, OWN, "password") != before)
        eventually(edge.is_available)
    finally:
        wrong.clear_up()
        edge.agent.start()
    eventually(lambda: edge.condition("ClockSynced") == ("True", "InStep"))


def test_the_centre_moves_under_a_running_edge_that_is_killed_on_the_way(
    edge: Edge, port: int, tmp_path: Path
) -> None:
    old = f"http://127.0.0.1:{port}"
    (tmp_path / "pki").mkdir()
    (tmp_path / "wrong").mkdir()
    authority, wrong = Authority(tmp_path / "pki"), Authority(tmp_path / "wrong")
    pem = authority.identity.certificate.read_text().strip()
    with tls_front(authority.server("front"), port) as new:
        assert edge.cluster.fetch_now().startswith("stored artifact")
        _settings(edge, EDGEWRIGHT_NEXT_EXTERNAL_URL=new, EDGEWRIGHT_NEXT_CA_BUNDLE=wrong.identity.certificate)
        eventually(lambda: "not trusted" in ((edge.shown()["reach"] or {}).get("problem") or ""), seconds=400)
        assert held(edge, OWN, "url") == old, "certificates that do not fit lock nobody out"
        assert "paint-shop (uses" in doctor(edge) and edge.is_available()

        _settings(edge, EDGEWRIGHT_NEXT_CA_BUNDLE=authority.identity.certificate)
        for _ in range(3):  # wherever it is by then
            eventually(partial(has_moved_on, edge, states_of_moving(edge)), seconds=400)
            edge.agent.kill()
            edge.agent.start()
        eventually(lambda: held(edge, OWN, "url") == new, seconds=400)
        assert (held(edge, OWN, "ca.crt"), held(edge, FLUX, "ca.crt")) == (pem, pem)
        eventually(lambda: (edge.shown()["reach"] or {}).get("url") == new, seconds=400)
        assert "is not used any more" in doctor(edge)

        # Flux follows by a commit, which it still fetches the old way.
        eventually(lambda: _git_url(edge).startswith(new), seconds=120)
        assert edge.cluster.fetch_now().startswith("stored artifact")
        eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))

        edge.centre.variables.pop("EDGEWRIGHT_NEXT_EXTERNAL_URL")
        edge.centre.variables.pop("EDGEWRIGHT_NEXT_CA_BUNDLE")
        bundle = str(authority.identity.certificate)
        _settings(edge, EDGEWRIGHT_EXTERNAL_URL=new, EDGEWRIGHT_CA_BUNDLE=bundle)
        eventually(lambda: held(edge, OWN, "centre.former") is None, seconds=400)
        assert f"All reach {new}." in doctor(edge)
        eventually(edge.is_available)


def _settings(edge: Edge, **changed: object) -> None:
    """Starts the centre again with other settings."""
    edge.centre.interrupt()
    edge.centre.variables.update({name: str(value) for name, value in changed.items()})
    edge.centre.up()


def _git_url(edge: Edge) -> str:
    """As Flux has it after a fetch."""
    edge.cluster.fetch_now()
    found = edge.cluster.find("gitrepository", "self-link", namespace=NAMESPACE)
    return str(found["spec"]["url"])
