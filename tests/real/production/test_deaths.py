"""Any process may die; what was answered stays, and what was not is answered by another, or a little later."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from supervised import eventually

from tools.production.operator import Operator
from tools.production.topology import Topology

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test builds what is missing, and starts all

WRITERS = 4
SECRETS = 6


def kill(topology: Topology, part: str) -> None:
    """kill -9; the part is started again, as compose would."""
    pid = topology.supervisor.pid_of(part)
    assert pid
    process = psutil.Process(pid)
    os.kill(pid, signal.SIGKILL)
    process.wait(30)


def back(topology: Topology, part: str, old: int | None) -> bool:
    pid = topology.supervisor.pid_of(part)
    return pid is not None and pid != old and topology.failure is None


@pytest.mark.parametrize("part", ["gateway-1", "worker-1", "temporal"])
def test_nothing_answered_is_lost_when_a_process_is_killed_among_writers(
    topology: Topology, tmp_path: Path, part: str
) -> None:
    victim = topology.supervisor.pid_of(part)
    with ExitStack() as opened, ThreadPoolExecutor(WRITERS) as pool:
        operators = [Operator(topology, opened.enter_context(topology.client()), tmp_path) for _ in range(WRITERS)]
        cluster = operators[0].commission(f"writes-{part}")

        def write(writer: int) -> None:
            for number in range(SECRETS):
                operators[writer].put_secret(cluster, f"key-{writer}-{number}", f"{writer}/{number}".encode())
                if (writer, number) == (0, 1):
                    kill(topology, part)

        for written in [pool.submit(write, writer) for writer in range(WRITERS)]:
            written.result(180)
        born = [pool.submit(operators[each].create, f"born-{part}-{each}") for each in range(WRITERS)]
        for each in born:
            operators[0].await_ready(each.result(180))
        expected = {f"key-{w}-{n}": f"{w}/{n}".encode() for w in range(WRITERS) for n in range(SECRETS)}
        assert operators[0].opened(operators[0].clone(f"writes-{part}")) == expected
        eventually(lambda: back(topology, part, victim), seconds=60)
        listed = operators[0].http.get("/v1/cluster", params={"name": f"born-{part}"}).json()["items"]
        assert sorted(item["name"] for item in listed) == [f"born-{part}-{each}" for each in range(WRITERS)]
        timeline = operators[0].http.get(f"/v1/cluster/{cluster}/timeline", params={"limit": 500}).json()
        told = [event["message"] for event in timeline["items"] if event["kind"] == "secret.put"]
        assert len(told) == len(set(told)) == WRITERS * SECRETS


def test_sessions_that_the_database_cuts_off_are_opened_again(topology: Topology, tmp_path: Path) -> None:
    with topology.client() as client:
        operator = Operator(topology, client, tmp_path)
        operator.await_ready(operator.create("before-the-cut"))
        cut = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname"
        )
        assert int(topology.postgresql.sql(f"{cut} IN ('edgewright', 'temporal', 'temporal_visibility')")) > 2
        operator.await_ready(operator.create("after-the-cut"))
