"""A gateway that serves on a real socket from a thread of its own, and a population to ask it about."""

import asyncio
import json
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import httpx
import uvicorn
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre, bearer, gateway_centre, make_database
from loopback import PLAIN

from api.connections.bounded_http import bounded_http
from api.connections.limits import ConnectionLimits
from api.operator_turns import KnownOperators
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission

STATUS = json.loads((Path(__file__).parents[2] / "docs" / "examples" / "edge-status.json").read_text())
START_SECONDS = 60

T = TypeVar("T")


@dataclass
class LiveGateway:
    """``url``: without a trailing slash. ``run`` does something on the gateway's own loop."""

    centre: GatewayCentre
    loop: asyncio.AbstractEventLoop
    url: str

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)

    def client(self, headers: dict[str, str] | None = None) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **PLAIN)

    def token(self, *permissions: Permission) -> dict[str, str]:
        """The header of a new operator token."""
        return bearer(self.run(self.centre.token(*permissions)).text)


@dataclass
class Population:
    """What there is: an active cluster with a secret, another one of somebody else, one that waits to be accepted."""

    admin: dict[str, str]
    active: UUID
    edge: EdgeCredentials
    other: UUID
    other_edge: EdgeCredentials
    pending: UUID


@contextmanager
def live_gateway(
    folder: Path, limits: ConnectionLimits | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[LiveGateway]:
    """Runs one until the end of the context."""
    started: list[LiveGateway] = []
    failed: list[BaseException] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        await make_database(folder / "edgewright.db")
        async with gateway_centre(folder / "edgewright.db", folder / "repositories", limits) as centre:
            live = centre.app.state.live
            known = KnownOperators(centre.app.state.access.operator_time)
            protocol = bounded_http(live.places, tls, holder_known_by=known)
            config = uvicorn.Config(
                centre.app, port=0, http=protocol, ws="none", log_config=None, lifespan="off", proxy_headers=False
            )
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve())
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            started.append(
                LiveGateway(centre, asyncio.get_running_loop(), f"{'https' if tls else 'http'}://127.0.0.1:{port}")
            )
            ready.set()
            await stop.wait()
            server.should_exit = server.force_exit = True
            await serving

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - handed to the test, which raises it
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(START_SECONDS)
    if failed:
        raise failed[0]
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(stop.set)
        thread.join(START_SECONDS)
        if failed:
            raise failed[0]


def populate(live: LiveGateway) -> Population:
    """Makes the population through the gateway."""
    centre = live.centre
    admin = live.token(Permission.ADMIN)
    centre.git.create_repository(REPOSITORY_HELM_CHARTS)
    message = CommitMessage(subject="charts", actor="centre")
    centre.git.commit(REPOSITORY_HELM_CHARTS, {"chart.yaml": b"x\n"}, message, expected_head=None)
    active, other = live.run(centre.create("active")), live.run(centre.create("other"))
    edge, other_edge = live.run(centre.register(active)), live.run(centre.register(other, uid="uid-2"))
    pending = live.run(centre.create("pending", accept="manual"))
    live.run(centre.register(pending, uid="uid-3"))
    with live.client(admin) as client:
        for cluster in (active, other):
            answer = client.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=STATUS)
            assert answer.is_success, answer.text
            answer = client.put(f"/v1/cluster/{cluster}/secret/default/db/password", content=b"s3cr3t")
            assert answer.status_code == 204, answer.text
    return Population(admin, active, edge, other, other_edge, pending)
