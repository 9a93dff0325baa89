"""What requests of edges cost a gateway: ``python -m bench.request_costs [OTHER_CHECKOUT]``.

Requests go straight into the application, without connections and without an HTTP client, so that what is counted is
the gateway's own processor time: middleware, routing, the look-up of the caller, the answer, and the line in the log.
The writing of heartbeats is not in it, which is one transaction a second. Each checkout has a process of its own with
the same interpreter; both stay, and take turns within one run, because the speed of a machine differs by the second.
The times are those of the best turn of each; the ratio is the median of those of all turns.

A process that measures reads what to do from standard input, a line each, and imports nothing but its own checkout.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway_centre import EdgeCredentials, GatewayCentre, gateway_centre, make_database

from edgewright.event_loop import new_event_loop, spare_what_is_loaded
from edgewright.logs import configure_logs

HERE = Path(__file__).parents[1]
WARM_UP = 200
KINDS = ("heartbeat", "heartbeat that offers to wait", "Git poll")


@dataclass(frozen=True)
class AsgiRequest:
    """One request, as a server hands it to the application."""

    scope: Mapping[str, Any]
    body: bytes = b""


async def ask(app: Any, asked: AsgiRequest) -> bytes:
    """The body of the answer, which has to be 200."""
    unread, status, answer = [{"type": "http.request", "body": asked.body}], 0, bytearray()

    async def receive() -> dict[str, Any]:
        return unread.pop() if unread else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        answer.extend(message.get("body", b""))

    await app({**asked.scope, "state": {}}, receive, send)
    if status != 200:
        raise AssertionError(f"{asked.scope['path']} was answered with {status}: {bytes(answer)!r}")
    return bytes(answer)


def request(method: str, path: str, headers: Mapping[str, str], *, query: str = "", body: bytes = b"") -> AsgiRequest:
    told = {"host": "127.0.0.1:8484", "user-agent": "bench", "accept": "*/*", **headers}
    if body:
        told |= {"content-type": "application/json", "content-length": str(len(body))}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 8484),
        "client": ("192.0.2.7", 40_000),
        "scheme": "http",
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in told.items()],
    }
    return AsgiRequest(scope, body)


def requests_of(edge: EdgeCredentials, digest: str) -> dict[str, AsgiRequest]:
    """What an edge asks, each of ``KINDS``.

    Args:
        digest: what the answer to its status said.
    """
    says: dict[str, Any] = {
        "sent_at": datetime.now(UTC).isoformat(),
        "nonce": "b1946ac92492d2347c6235b4d2611184",
        "previous_nonce": "591785b794601e212b260e25925636fd",
        "observed_revision": f"main@sha1:{'5' * 40}",
        "status_digest": digest,
        "asks_flux": True,
        "centre_url": "http://127.0.0.1:8484",
    }
    waits = {"wait": 50.0, "wants_digest": "0" * 32, "revisions": {"self-link": "5" * 40, "helm-charts": "6" * 40}}
    beat = "/v1/agent/heartbeat"
    poll, query = f"/uuid/{edge.cluster}/info/refs", "service=git-upload-pack"
    return {
        "heartbeat": request("POST", beat, edge.as_agent, body=json.dumps(says).encode()),
        "heartbeat that offers to wait": request("POST", beat, edge.as_agent, body=json.dumps(says | waits).encode()),
        "Git poll": request("GET", poll, edge.as_flux, query=query),
    }


@asynccontextmanager
async def asked_edge(folder: Path) -> AsyncIterator[tuple[GatewayCentre, dict[str, AsgiRequest]]]:
    """A gateway, and the requests of an edge that is accepted, has reported and uses both of its credentials."""
    await make_database(folder / "edgewright.db")
    async with gateway_centre(folder / "edgewright.db", folder / "repositories") as centre:
        edge = await centre.register(await centre.create("edge"))
        status = {"hosts": [{"hostname": "node-0", "ready": True}], "versions": {"agent": "0.3.0"}}
        answer = await centre.client(edge.as_agent).put("/v1/agent/status", json=status)
        requests = requests_of(edge, answer.raise_for_status().headers["edgewright-status-digest"])
        for asked in requests.values():
            await ask(centre.app, asked)
        yield centre, requests


async def spent(app: Any, asked: AsgiRequest, times: int) -> float:
    """Seconds of this process's processor time for one request; one after the other."""
    worked = time.process_time()
    for _ in range(times):
        await ask(app, asked)
    return (time.process_time() - worked) / times


async def play() -> None:
    """Measures what standard input names, until it ends."""
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        async with asked_edge(Path(folder)) as (centre, requests):
            for asked in requests.values():
                await spent(centre.app, asked, WARM_UP)
            spare_what_is_loaded()  # as a gateway does
            print("ready", flush=True)
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                task = json.loads(line)
                seconds = await spent(centre.app, requests[task["kind"]], task["times"])
                print(json.dumps(seconds), flush=True)


class CheckoutPlayer:
    """The process that measures one checkout."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asks, self._answers = process.stdin, process.stdout
        self.answer()

    def spent(self, kind: str, times: int) -> float:
        self._asks.write(json.dumps({"kind": kind, "times": times}) + "\n")
        self._asks.flush()
        return float(self.answer())

    def answer(self) -> str:
        """The next line; the process says ``ready`` first."""
        line = self._answers.readline()
        if not line:
            raise SystemExit("A process that measures has ended; run it alone with --play to see why.")
        return line


@contextmanager
def player(checkout: Path) -> Iterator[CheckoutPlayer]:
    """A process on the modules of a checkout."""
    command = [sys.executable, "-P", __file__, "--play"]
    paths = os.pathsep.join(map(str, (checkout, checkout / "tests" / "support")))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    with subprocess.Popen(
        command,
        env=kept | {"PYTHONPATH": paths},
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield CheckoutPlayer(process)
        finally:
            process.kill()


@dataclass(frozen=True)
class Compared:
    """One kind of request; ``there`` and ``here`` are seconds."""

    kind: str
    there: float
    here: float
    ratio: float


def compare(other: Path, *, times: int, turns: int) -> Iterator[Compared]:
    with player(other) as before, player(HERE) as after:
        for kind in KINDS:
            taken = [(before.spent(kind, times), after.spent(kind, times)) for _ in range(turns)]
            there, here = (min(side) for side in zip(*taken, strict=True))
            yield Compared(kind, there, here, statistics.median(here / there for there, here in taken))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.request_costs", description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, default=HERE, help="another checkout, such as of a release")
    parser.add_argument("--times", type=int, default=100, help="requests in a turn")
    parser.add_argument("--turns", type=int, default=51, help="of each checkout, for each kind of request")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        configure_logs("INFO")
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(play())
        return
    print("| request | other checkout | here | ratio |")
    print("|---|---|---|---|", flush=True)
    for each in compare(options.other.resolve(), times=options.times, turns=options.turns):
        times = f"{each.there * 1000:.3f} ms | {each.here * 1000:.3f} ms"
        print(f"| {each.kind} | {times} | {each.ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
