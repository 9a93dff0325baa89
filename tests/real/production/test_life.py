"""A cluster's life through a TLS proxy, with two gateways and two workers behind it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest
from loopback import PLAIN

from edgewright.cli.ports import BLOCKED
from tools.production.operator import Operator
from tools.production.topology import Topology

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test builds what is missing, and starts all


@pytest.fixture
def operator(topology: Topology, client: httpx.Client, tmp_path: Path) -> Operator:
    return Operator(topology, client, tmp_path)


def test_every_part_of_the_compose_file_runs(topology: Topology, operator: Operator) -> None:
    assert len(topology.gateways) == len(topology.workers) == 2
    assert all(topology.supervisor.pid_of(name) for name in (*topology.gateways, *topology.workers))
    answer = operator.http.get("/readyz")
    assert (answer.status_code, answer.json()["degraded"]) == (200, [])


def test_every_gateway_and_worker_has_metrics_for_a_prometheus(topology: Topology, operator: Operator) -> None:
    operator.commission("measured")
    for names, series in ((topology.gateways, "edgewright_clusters{"), (topology.workers, "temporal_request_total{")):
        for name in names:
            answer = httpx.get(f"http://127.0.0.1:{topology.ports.metrics[name]}/metrics", **PLAIN)
            assert answer.status_code == 200
            assert series in answer.text


def test_no_page_in_a_browser_gets_to_temporal(topology: Topology) -> None:
    server = topology.supervisor.pid_of("temporal")
    sockets = [s for s in psutil.Process(server).net_connections("tcp") if s.status == psutil.CONN_LISTEN]
    assert topology.ports.temporal["FRONTEND_GRPC_PORT"] in {socket.laddr.port for socket in sockets}
    speak_http = []
    for socket in sockets:
        with suppress(httpx.TransportError):
            httpx.get(f"http://{socket.laddr.ip}:{socket.laddr.port}/", trust_env=False, timeout=10)
            speak_http.append(socket.laddr)
    assert speak_http == []

    assert topology.ports.hidden_ui[1] in BLOCKED
    url = f"{topology.ui_url}/api/v1/namespaces"
    assert httpx.get(url, trust_env=False).status_code == 200
    assert httpx.get(url, headers={"Host": "attacker.example"}, trust_env=False).status_code == 403


def test_a_cluster_is_commissioned_and_its_secret_is_in_the_clone(operator: Operator) -> None:
    cluster = operator.commission("press-shop")
    commit = operator.put_secret(cluster, "password", b"s3cr3t")
    clone = operator.clone("press-shop")
    assert operator.git("-C", str(clone), "rev-parse", "HEAD").stdout.strip() == commit
    assert operator.opened(clone) == {"password": b"s3cr3t"}


def test_the_bootstrap_line_bears_the_external_url_and_its_authority(topology: Topology, operator: Operator) -> None:
    cluster = operator.commission("attached")
    line = operator.insist("POST", f"/v1/cluster/{cluster}/bootstrap-url").json()
    assert line.startswith(f"{topology.url}/v1/cluster/{cluster}/bootstrap?token=ewr_")
    script = operator.http.get(line).text
    assert topology.ca.read_text().strip() in script
    secret = line.partition("token=")[2]
    logs = [path.read_text(errors="replace") for path in (topology.folder / "logs").iterdir()]
    assert [log for log in logs if secret in log] == []


def test_events_come_through_the_proxy_as_they_happen(operator: Operator) -> None:
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool, operator.topology.client() as other:
        heard = pool.submit(Operator(operator.topology, other, operator.folder).hears, "cluster.created", begun)
        assert begun.wait(60)
        operator.create("told")
        assert heard.result(90)[-1] == "cluster.created"


def test_what_was_pushed_by_hand_comes_back(operator: Operator) -> None:
    operator.commission("pushed")
    clone = operator.clone("pushed")
    (clone / "by-hand" / "note.yaml").write_text("# a note\n" * 200_000)  # more than a proxy keeps in memory
    for arguments in (["add", "."], ["-c", "user.name=me", "-c", "user.email=me@here", "commit", "-qm", "Note"]):
        assert operator.git("-C", str(clone), *arguments).returncode == 0
    pushed = operator.git("-C", str(clone), "push", "--quiet")
    assert pushed.returncode == 0, pushed.stderr
    assert (operator.clone("pushed") / "by-hand" / "note.yaml").stat().st_size > 1_000_000
