"""A plant whose only way out is a proxy, and whose centre has a certificate of a private authority."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from desk import Desk
from edge_cluster.attaching import Attaching, centre_variables, desk_beside
from edge_cluster.contents import contents
from edge_cluster.desk import push_by_hand
from edge_cluster.line import Surroundings
from edge_cluster.long_time import LongTime
from edge_cluster.patience import eventually
from edge_cluster.site import AGENT, KUSTOMIZE, SOURCE, Site, site
from edge_cluster.way_out import NAME, PASSWORD, ForwardProxy, Front
from embedded import EmbeddedEdgewright
from free_ports import free_port

from edgewright.agent.pauses import LONGEST_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

WITHOUT_BUNDLE = "sed '/ca\\.pem\" <</,/^END_OF_FILE/d'"
"""Takes the centre's certificates out of a script."""
MONTH = timedelta(days=30)
RECIPE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: recipe, namespace: default}
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForwardProxy]:
    proxy = ForwardProxy(tmp_path_factory.mktemp("proxy"))
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.stop()


@pytest.fixture(scope="module")
def gateway_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def front(gateway_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    front = Front(tmp_path_factory.mktemp("front"), gateway_port)
    with front.serving():
        yield front


@pytest.fixture(scope="module")
def desk(front: Front, gateway_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Beside a centre that is called by a name which only the proxy knows."""
    folder = tmp_path_factory.mktemp("desk")
    variables = centre_variables(
        EDGEWRIGHT_GATEWAY_PORT=str(gateway_port),
        EDGEWRIGHT_EXTERNAL_URL=front.url,
        EDGEWRIGHT_CA_BUNDLE=str(front.authority),
    )
    with desk_beside(EmbeddedEdgewright(folder / "home", variables), folder / "papers") as desk:
        yield desk


@pytest.fixture
def attaching(desk: Desk, factory: Site, proxy: ForwardProxy, tmp_path: Path) -> Iterator[Attaching]:
    with Attaching(desk, factory, tmp_path, Surroundings(proxy.variables)) as attaching:
        yield attaching


def test_all_that_an_edge_asks_the_centre_goes_through_the_proxy(
    attaching: Attaching, proxy: ForwardProxy, front: Front
) -> None:
    """The line as it is printed, its script, Flux's source-controller and agent, with the proxy's password."""
    uuid = attaching.commission("walled-in")
    before, asked = proxy.tunnels(), len(front.asked_for())
    done = attaching.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: attaching.is_available(uuid))
    eventually(attaching.has_fetched)
    assert set(front.asked_for()[asked:]) >= {
        f"GET /v1/cluster/{uuid}/bootstrap",
        f"GET /v1/cluster/{uuid}/install/flux",
        f"GET /v1/cluster/{uuid}/install/agent",
        "POST /v1/register",
        "POST /v1/agent/heartbeat",
        "PUT /v1/agent/status",
        f"GET /uuid/{uuid}/info/refs",
    }
    assert proxy.tunnels() - before >= 6
    for account in (AGENT, SOURCE, KUSTOMIZE):
        given = attaching.factory.kubelet.environment(account)
        assert given["HTTPS_PROXY"] == proxy.variables["HTTPS_PROXY"]
        assert {"127.0.0.1", ".svc", "10.96.0.1"} <= set(given["NO_PROXY"].split(","))

    proxy.stop()
    try:
        eventually(lambda: attaching.agent_said()[-1] == "away")
        assert "failed to checkout" in attaching.fetch_now()
    finally:
        proxy.start()
    eventually(lambda: attaching.agent_said()[-1] == "active")
    attaching.fetch_now()
    assert attaching.has_fetched()
    found = contents(attaching.factory.cluster)
    assert {key for key, one in found.items() if _holds(one, PASSWORD)} == {
        "Secret/edgewright/edgewright-proxy",
        "Secret/flux-system/edgewright-proxy",
    }
    logs = attaching.factory.cluster.folder / "logs"
    assert [log.name for log in logs.iterdir() if PASSWORD in log.read_text(errors="replace")] == []


@pytest.fixture
def time(tmp_path: Path) -> LongTime:
    return LongTime(tmp_path)


@pytest.fixture
def far_away(desk: Desk, time: LongTime, proxy: ForwardProxy, tmp_path: Path) -> Iterator[Attaching]:
    """Lines for a site of its own, for whose agent time can pass."""
    surroundings = Surroundings(proxy.variables)
    with (
        site(tmp_path / "fetched", agent=time.agent) as found,
        Attaching(desk, found, tmp_path, surroundings) as attaching,
    ):
        yield attaching


def test_after_a_month_without_a_network_it_goes_on_with_what_was_wanted_meanwhile(
    far_away: Attaching, proxy: ForwardProxy, time: LongTime
) -> None:
    site, uuid = far_away.factory, far_away.commission("far-away")
    done = far_away.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: far_away.is_available(uuid))
    site.install_chart()
    eventually(lambda: far_away.condition(uuid, "SealingKeyCurrent")[0] == "True")
    far_away.put_secret(uuid, "of last month")
    far_away.fetch_now()
    eventually(lambda: far_away.opened_secret() == "of last month")
    eventually(lambda: far_away.condition(uuid, "Synced")[0] == "True")
    certificate = far_away.shown(uuid)["certificate"]["fingerprint"]
    starts = {account: site.kubelet.starts(account) for account in (AGENT, SOURCE, KUSTOMIZE)}
    said = far_away.agent_said()

    proxy.stop()
    try:
        eventually(lambda: far_away.agent_said()[-1] == "away")
        assert "failed to checkout" in far_away.fetch_now()
        eventually(lambda: far_away.condition(uuid, "Available")[0] == "Unknown")
        time.passes_without_a_word(MONTH, far_away.desk.centre)
        site.sealed_secrets.renew_key()  # as its controller does every 30 days
        far_away.put_secret(uuid, "of this month")
        push_by_hand(far_away.desk.centre, uuid, "recipe.yaml", RECIPE)
        far_away.desk.await_sweeps()
        assert datetime.now(UTC) - datetime.fromisoformat(far_away.shown(uuid)["lease"]["last_heard"]) > MONTH
        assert far_away.condition(uuid, "Available") == ("Unknown", "LeaseExpired")
        assert far_away.opened_secret() == "of last month"
        assert far_away.agent_said() == [*said, "away"], "once in all that time"
    finally:
        proxy.start()

    time.passes(timedelta(seconds=LONGEST_BACKOFF))  # the longest that it waits before it asks again
    eventually(lambda: far_away.is_available(uuid))
    far_away.fetch_now()
    eventually(lambda: far_away.opened_secret() == "of this month")
    eventually(lambda: site.cluster.find("configmap", "recipe"))
    eventually(lambda: far_away.condition(uuid, "Synced")[0] == "True")
    eventually(lambda: far_away.shown(uuid)["certificate"]["fingerprint"] != certificate)
    assert far_away.condition(uuid, "Joined") == ("True", "Reported")
    assert {account: site.kubelet.starts(account) for account in starts} == starts, "nobody has given it a hand"


def test_whoever_has_not_the_authority_says_so_and_trusts_nobody(attaching: Attaching, front: Front) -> None:
    cluster, before = attaching.factory.cluster, contents(attaching.factory.cluster)
    uuid = attaching.commission("distrustful")
    line = attaching.line(uuid)
    plain = line.type(f"curl -sSL '{line.url}' | sh -s -- --yes")
    assert "certificate" in plain.stderr and plain.stdout == ""
    forgotten = line.type(f"{line.fetched} | {WITHOUT_BUNDLE} | sh -s -- --yes")
    assert forgotten.returncode == 7
    assert f"The centre ({front.url}) cannot be reached" in forgotten.stderr
    assert "certificate" in forgotten.stderr
    assert contents(cluster) == before

    assert line.run().returncode == 0
    eventually(lambda: attaching.is_available(uuid))
    for secret in ("edgewright-agent", "flux-secrets"):
        patch = ("--type=json", "--patch", '[{"op": "remove", "path": "/data/ca.crt"}]')
        cluster.kubectl("patch", "secret", secret, "--namespace", "edgewright", *patch)
    attaching.factory.kubelet.kill(AGENT)
    eventually(lambda: attaching.agent_said("code") == ["centre_untrusted"])
    assert "certificate is not trusted" in attaching.agent_said("detail")[0]
    assert "certificate" in attaching.fetch_now()
    done = attaching.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: attaching.agent_said()[-1] == "active")
    attaching.fetch_now()
    assert attaching.has_fetched()


def test_what_no_proxy_names_is_asked_directly(attaching: Attaching) -> None:
    """Here that is in vain: nobody but the proxy knows where the centre is."""
    cluster, before = attaching.factory.cluster, contents(attaching.factory.cluster)
    uuid = attaching.commission("headstrong")
    line = attaching.line(uuid)
    assert line.type(f"{line.fetched} -f -o attach.sh").returncode == 0
    done = line.type("sh attach.sh --yes", NO_PROXY=f"127.0.0.1,{NAME}")
    assert done.returncode == 7
    assert "Could not resolve host" in done.stderr
    assert contents(cluster) == before

    assert line.run().returncode == 0
    eventually(lambda: attaching.is_available(uuid))
    given = attaching.factory.kubelet.environment(AGENT)["NO_PROXY"]
    _write_no_proxy(attaching, f"{given},{NAME}")
    eventually(lambda: attaching.agent_said() == ["away"])
    _write_no_proxy(attaching, given)
    eventually(lambda: attaching.agent_said() == ["active"])


def _write_no_proxy(attaching: Attaching, hosts: str) -> None:
    """Into what the agent's next start reads."""
    patch = json.dumps({"data": {"NO_PROXY": base64.b64encode(hosts.encode()).decode()}})
    attaching.factory.cluster.kubectl(
        "patch", "secret", "edgewright-proxy", "--namespace", "edgewright", "--type=merge", "--patch", patch
    )
    started = len(attaching.agent_starts())
    attaching.factory.kubelet.kill(AGENT)
    eventually(lambda: len(attaching.agent_starts()) > started)


def _holds(one: object, text: str) -> bool:
    """In clear, or in the data of a Secret."""
    written = json.dumps(one)
    data = one.get("data", {}) if isinstance(one, dict) and one.get("kind") == "Secret" else {}
    return text in written or any(text in base64.b64decode(value).decode(errors="replace") for value in data.values())
