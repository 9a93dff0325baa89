"""A browser's way of listening loses nothing, however often the line breaks."""

import json
import queue
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from flapping_line import flapping_line
from gateway_centre import GatewayCentre
from live_gateway import LiveGateway
from npm_packages import NODE
from raw_client import RawClient

from edgewright.domain.events import EventKind, NewEvent
from edgewright.ports.operators import Permission

PATIENCE_SECONDS = 60
ROUNDS, EVENTS_EACH = 5, 70


class Listener:
    """What the program says, line by line."""

    def __init__(self, program: "subprocess.Popen[str]") -> None:
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.heard: list[dict[str, Any]] = []
        assert program.stdout is not None
        threading.Thread(target=self._read, args=(program.stdout,), daemon=True).start()

    def _read(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._lines.put(json.loads(line))

    def until_opened(self) -> None:
        while "opened" not in self._next():
            pass

    def until_heard(self, count: int) -> None:
        while len(self.heard) < count:
            self._next()

    def _next(self) -> dict[str, Any]:
        line = self._lines.get(timeout=PATIENCE_SECONDS)
        if "heard" in line:
            self.heard.append(line["heard"])
        return line


@contextmanager
def listening(workshop: Path, url: str, token: str) -> Iterator[Listener]:
    command: list[str | Path] = [NODE, workshop / "event_source.mjs", url, token]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            yield Listener(program)
        finally:
            program.kill()


async def tell(centre: GatewayCentre, count: int, *, cluster: UUID | None = None) -> None:
    for _ in range(count):
        await centre.ports.audit.append(
            NewEvent(id=uuid4(), cluster=cluster, actor="centre", kind=EventKind.ENTRY_PUT, message="Written.")
        )


def test_a_quiet_cluster_loses_nothing_of_a_subscriber_that_has_heard_nothing_yet(live: LiveGateway) -> None:
    """Byte by byte: others' events go by, the line breaks, and what happens then is told on the next one."""
    quiet = live.run(live.centre.create("quiet-for-long"))
    token = live.token(Permission.READ)["Authorization"]
    with closing(RawClient(live.url)) as first:
        position = re.search(rb"^id: (\d+)\r?$", subscribe(first, quiet, token), re.MULTILINE)
        assert position
        live.run(tell(live.centre, 3))
    live.run(tell(live.centre, 3))
    live.run(tell(live.centre, 1, cluster=quiet))
    with closing(RawClient(live.url)) as second:
        told = subscribe(second, quiet, token, resumed_at=int(position[1]))
    [event] = re.findall(rb"^data: (.+)\r?$", told, re.MULTILINE)
    assert (json.loads(event)["cluster"], json.loads(event)["kind"]) == (str(quiet), "entry.put")


def subscribe(client: RawClient, cluster: UUID, token: str, *, resumed_at: int | None = None) -> bytes:
    """What a new subscriber is told until the end of the first event with a position."""
    resumed = "" if resumed_at is None else f"Last-Event-ID: {resumed_at}\r\n"
    head = f"Host: x\r\nAuthorization: {token}\r\nAccept: text/event-stream\r\n{resumed}\r\n"
    client.send(f"GET /v1/events?cluster={cluster} HTTP/1.1\r\n{head}".encode())
    told = b""
    while not re.search(rb"^id: .*?\r?\n\r?\n", told, re.MULTILINE | re.DOTALL):
        piece = client.read_some()
        assert piece, told
        told += piece
    return told


def test_nothing_is_lost_on_a_line_that_breaks_before_the_first_event(live: LiveGateway, workshop: Path) -> None:
    token = live.run(live.centre.token(Permission.READ)).text
    begun = live.run(live.centre.ports.audit.last_position())
    with (
        flapping_line(int(live.url.rpartition(":")[2])) as line,
        listening(workshop, f"http://127.0.0.1:{line.port}/v1/events", token) as listener,
    ):
        for _ in range(ROUNDS):
            listener.until_opened()
            line.cut()
            live.run(tell(live.centre, EVENTS_EACH))
            line.mend()
        listener.until_heard(ROUNDS * EVENTS_EACH)
    positions = [event["position"] for event in listener.heard]
    assert positions == list(range(begun + 1, begun + 1 + ROUNDS * EVENTS_EACH))
    assert [event["id"] for event in listener.heard] == positions
    assert {event["kind"] for event in listener.heard} == {"entry.put"}
