"""What is watched is shown again when it has changed: rows in a pipe, the whole picture on a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import reporting_agent
from command_line import CommandLine, ServedCentre
from flapping_line import flapping_line
from supervised import eventually

from edgewright.bootstrap import AgentPod
from edgewright.domain.cluster import Phase
from edgewright.ports.edge_reports import Heartbeat

PROGRAM = "from edgewright.cli.entry import main; main()"

pytestmark = pytest.mark.timeout(120)


@dataclass
class RunningCommand:
    """A command that runs until it is interrupted. ``out`` and ``err``: what it has shown so far."""

    process: "subprocess.Popen[bytes]"
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    def until(self, condition: Callable[[str], object]) -> str:
        """What it has shown on stdout, once that fulfils a condition."""

        def fulfilled() -> object:
            assert self.process.poll() is None, (self.out, self.err)
            return condition(self.out.decode())

        eventually(fulfilled, seconds=30)
        return self.out.decode()

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def start(edgewright: CommandLine) -> Iterator[Callable[..., RunningCommand]]:
    """Starts commands as processes of their own; with ``terminal``, stdout is one."""
    begun: list[RunningCommand] = []

    def begin(*arguments: str, terminal: bool = False, **variables: str) -> RunningCommand:
        wanted = {**edgewright.environment, "COLUMNS": "80", "TERM": "xterm", **variables}
        ours, theirs = os.openpty() if terminal else os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={**os.environ, **{name: value for name, value in wanted.items() if value is not None}},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        running = RunningCommand(process)
        assert process.stderr is not None
        for descriptor, seen in ((ours, running.out), (process.stderr.fileno(), running.err)):
            threading.Thread(target=_drain, args=(descriptor, seen), daemon=True).start()
        begun.append(running)
        return running

    yield begin
    for running in begun:
        running.process.kill()
        running.process.wait(30)


def _drain(descriptor: int, seen: bytearray) -> None:
    with suppress(OSError):  # a terminal that nobody uses any more
        while more := os.read(descriptor, 4096):
            seen += more


def beat(centre: ServedCentre, name: str) -> None:
    """The edge calls."""
    cluster = centre.uuid(name)
    centre.do(centre.centre.ports.edge_reports.heartbeats([Heartbeat(cluster, centre.row(cluster).generation)]))


def test_pipe_gets_the_list_and_then_each_row_that_has_changed(
    start: Callable[..., RunningCommand], centre: ServedCentre
) -> None:
    for name in ("paint-shop", "press-shop"):
        centre.create(name)
    running = start("cluster", "list", "--watch")
    assert [line.split()[0] for line in running.until(lambda out: "press-shop" in out).splitlines()] == [
        "NAME",
        "paint-shop",
        "press-shop",
    ]
    centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
    shown = running.until(lambda out: "room on the disk" in out).splitlines()
    assert [line.split()[0] for line in shown[3:]] == ["press-shop"]
    centre.create("weld-shop")
    shown = running.until(lambda out: "weld-shop" in out).splitlines()
    assert len(shown) == 5
    centre.project(centre.uuid("weld-shop"), phase=Phase.REMOVED)
    eventually(lambda: b"weld-shop is no longer in the list." in running.err, seconds=30)
    assert running.interrupt() == 130
    assert b"Traceback" not in running.err


def test_machines_get_one_document_a_line(start: Callable[..., RunningCommand], centre: ServedCentre) -> None:
    centre.create("press-shop")
    running = start("cluster", "list", "-w", "--json")
    running.until(lambda out: out.endswith("\n"))
    centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
    shown = running.until(lambda out: "room on the disk" in out and out.endswith("\n"))
    first, *_, last = (json.loads(line) for line in shown.splitlines())
    assert (first["name"], last["name"], last["waiting_for"]) == ("press-shop", "press-shop", "room on the disk")
    assert running.interrupt() == 130


def test_terminal_is_drawn_over_and_given_back(start: Callable[..., RunningCommand], centre: ServedCentre) -> None:
    centre.create("press-shop")
    running = start("cluster", "list", "-w", terminal=True)
    running.until(lambda out: "press-shop" in out)
    centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
    shown = running.until(lambda out: "room on the disk" in out)
    assert "\x1b[2K" in shown, "lines are drawn over"
    assert "Ctrl-C" in shown
    assert running.interrupt() == 130
    eventually(lambda: running.out.decode().rstrip().endswith("\x1b[?25h"), seconds=30)


def test_terminal_that_cannot_be_drawn_over_gets_rows(
    start: Callable[..., RunningCommand], centre: ServedCentre
) -> None:
    centre.create("press-shop")
    running = start("cluster", "list", "-w", terminal=True, TERM="dumb")
    assert "\x1b" not in running.until(lambda out: "press-shop" in out)
    assert running.interrupt() == 130


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_gateway_that_goes_away_is_said_and_comes_back(
    start: Callable[..., RunningCommand], centre: ServedCentre, terminal: bool
) -> None:
    centre.create("press-shop")
    with flapping_line(int(centre.url.rpartition(":")[2])) as line:
        url = f"http://127.0.0.1:{line.port}"
        running = start("cluster", "list", "-w", terminal=terminal, EDGEWRIGHT_URL=url)
        running.until(lambda out: "press-shop" in out)
        line.cut()
        eventually(lambda: b"Trying again." in (running.out if terminal else running.err), seconds=30)
        centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
        line.mend()
        running.until(lambda out: "room on the disk" in out)
        assert terminal or running.err.count(b"Trying again.") == 1
        assert terminal or running.err.endswith(b"The gateway answers again.\n")
        assert running.interrupt() == 130


def test_heartbeat_alone_is_no_change(
    start: Callable[..., RunningCommand], edgewright: CommandLine, centre: ServedCentre
) -> None:
    def last_heard() -> object:
        [item] = json.loads(edgewright.ok("cluster", "list", "--name", "press-shop", "--json").out)["items"]
        return item["last_heard"]

    centre.create("press-shop")
    beat(centre, "press-shop")
    first = last_heard()
    running = start("cluster", "list", "-w")
    running.until(lambda out: "press-shop" in out)
    beat(centre, "press-shop")
    assert last_heard() != first
    centre.create("weld-shop")
    shown = running.until(lambda out: "weld-shop" in out)
    assert shown.count("press-shop") == 1
    assert running.interrupt() == 130


def test_page_is_shown_again_when_it_has_changed(start: Callable[..., RunningCommand], centre: ServedCentre) -> None:
    centre.create("press-shop")
    running = start("cluster", "show", "press-shop", "-w")
    running.until(lambda out: "workflow" in out)
    centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
    shown = running.until(lambda out: "room on the disk" in out)
    assert shown.count("phase ") == 2
    assert running.interrupt() == 130


def test_upgrades_are_told_as_they_begin_and_end(
    start: Callable[..., RunningCommand], edgewright: CommandLine, centre: ServedCentre
) -> None:
    centre.centre.offer(agent=AgentPod("registry.example.com/agent:0.9.0"))
    edge = centre.do(centre.centre.register(centre.create("press-shop")))

    async def report(version: str) -> None:
        await reporting_agent.beat(centre.centre, edge)
        said = {"agent": version, "agent-image": f"registry.example.com/agent:{version}"}
        answer = await centre.centre.client(edge.as_agent).put("/v1/agent/status", json={"versions": said})
        assert answer.status_code in {200, 204}, answer.text

    centre.do(report("0.8.0"))
    running = start("upgrade", "list", "--watch")
    assert running.until(lambda shown: shown.endswith("\n")).split() == [
        "NAME",
        "WHAT",
        "TO",
        "STATE",
        "SINCE",
        "REASON",
    ]
    edgewright.ok("agent", "upgrade", "press-shop", "--no-wait", "--yes")
    running.until(lambda shown: re.search(r"press-shop +agent +0\.9\.0 +under_way ", shown))
    centre.do(report("0.9.0"))
    shown = running.until(lambda shown: re.search(r"press-shop +agent +0\.9\.0 +done ", shown))
    assert len(shown.splitlines()) == 3, "each change is one row"
    assert running.interrupt() == 130


def test_reader_that_has_seen_enough_ends_the_watch(
    start: Callable[..., RunningCommand], centre: ServedCentre, edgewright: CommandLine
) -> None:
    centre.create("press-shop")
    environment = {name: value for name, value in edgewright.environment.items() if value is not None}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "cluster", "list", "-w"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b"NAME")
    process.stdout.close()
    centre.project(centre.uuid("press-shop"), waiting_for="room on the disk")
    assert process.wait(30) == 1
    assert process.stderr.read() == b""
    process.stderr.close()


def test_gateway_that_is_not_there_at_first_is_not_waited_for(edgewright: CommandLine) -> None:
    shown = edgewright("cluster", "list", "-w", EDGEWRIGHT_URL="http://127.0.0.1:1")
    assert (shown.code, shown.out) == (5, "")
