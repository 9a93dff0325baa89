"""PostgreSQL is gone for a while: a clear 503 for everybody, nothing answered is lost, and all heals by itself.

``OUTAGE_SECONDS=60`` makes it a whole minute.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from supervised import eventually

from edgewright.adapters.database.engine.engine import CONNECTION_WAIT_SECONDS
from edgewright.adapters.database.upkeep.presence import LISTENING_GAP
from tools.production.edge import BeatingEdge
from tools.production.operator import Operator
from tools.production.topology import Topology

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test builds what is missing, and starts all

OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", LISTENING_GAP.total_seconds() + 5))
"""Longer than the lease below, and than a gateway's silence that counts for nothing."""
SHORTEST_LEASE = 10
LONGEST_ANSWER = CONNECTION_WAIT_SECONDS + 20.0
SECRET = "s3cr3t-of-the-outage"
LEAKS = ("asyncpg", "sqlalchemy", "Traceback", "SELECT", "INSERT", SECRET)


@contextmanager
def away(topology: Topology, how: str) -> Iterator[None]:
    """It takes connections and answers none; or it is not there, and was killed amid its work."""
    server = topology.postgresql.server
    if how == "hangs":
        server.freeze()
    else:
        server.kill()
    try:
        yield
    finally:
        if how == "hangs":
            server.thaw()
        else:
            server.start()


@pytest.mark.parametrize("how", ["hangs", "is dead"])
def test_everybody_gets_a_503_while_the_database_is_away_and_all_heals(
    topology: Topology, client: httpx.Client, tmp_path: Path, how: str
) -> None:
    operator = Operator(topology, client, tmp_path)
    name = f"away-{how.replace(' ', '-')}"
    cluster = operator.commission(name, lease_seconds=SHORTEST_LEASE)
    operator.put_secret(cluster, "before", b"kept")
    processes = running(topology)
    wishes = {f"{name}-{number}": str(uuid4()) for number in range(3)}

    with BeatingEdge(operator, cluster) as edge, ThreadPoolExecutor(16) as pool:
        eventually(lambda: edge.answers[200] > 2, seconds=60)
        with away(topology, how):
            began = time.monotonic()
            while time.monotonic() < began + OUTAGE_SECONDS:
                asked = [pool.submit(timed, one) for one in questions(topology, cluster, wishes)]
                for one in asked:
                    answer, seconds = one.result(LONGEST_ANSWER + 60)
                    is_clear(answer, topology)
                    assert seconds < LONGEST_ANSWER
            eventually(lambda: edge.answers[503] > 0, seconds=60)
        before = edge.answers[200]
        eventually(lambda: edge.answers[200] > before, seconds=60)

        made = {wish: operator.create(wish, key=key) for wish, key in wishes.items()}
        for each in made.values():
            operator.await_ready(each)
        operator.put_secret(cluster, "after", b"heals")
        assert operator.opened(operator.clone(name)) == {"before": b"kept", "after": b"heals"}
        eventually(lambda: is_available(operator, cluster), seconds=60)
    told = operator.http.get(f"/v1/cluster/{cluster}/timeline", params={"limit": 500}).json()["items"]
    assert "lease.expired" not in {event["kind"] for event in told}
    assert running(topology) == processes, "nobody had to be started again"


def running(topology: Topology) -> dict[str, int | None]:
    """The processes of our own."""
    return {name: topology.supervisor.pid_of(name) for name in (*topology.gateways, *topology.workers)}


def questions(topology: Topology, cluster: str, wishes: dict[str, str]) -> list[Callable[[], httpx.Response]]:
    """Readings and changes, as people and edges send them; each through a connection of its own."""

    def asking(method: str, path: str, **options: object) -> Callable[[], httpx.Response]:
        def ask() -> httpx.Response:
            with topology.client() as http:
                return http.request(method, path, **options)  # type: ignore[arg-type] # passed on

        return ask

    creations = [
        asking("POST", "/v1/cluster", json={"name": name}, headers={"Idempotency-Key": key})
        for name, key in wishes.items()
    ]
    return [
        *creations,
        asking("GET", "/v1/cluster"),
        asking("GET", f"/v1/cluster/{cluster}"),
        asking("PUT", f"/v1/cluster/{cluster}/secret/default/db/during", content=SECRET.encode()),
        asking("GET", f"/uuid/{cluster}/info/refs", params={"service": "git-upload-pack"}),
        asking("GET", "/readyz"),
    ]


def timed(ask: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    return ask(), time.monotonic() - began


def is_clear(answer: httpx.Response, topology: Topology) -> None:
    """Says that it will work later, and when to come again; and nothing that is nobody's business."""
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json"), answer.text
    assert answer.json()["code"] in {"database_unavailable", "not_serving"}, answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert not [leak for leak in (*LEAKS, topology.postgresql.password) if leak in answer.text]


def is_available(operator: Operator, cluster: str) -> bool:
    conditions = operator.http.get(f"/v1/cluster/{cluster}").json()["conditions"]
    return any((each["type"], each["status"]) == ("Available", "True") for each in conditions)
