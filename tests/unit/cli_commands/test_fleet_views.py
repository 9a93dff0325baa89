"""What happens to all clusters, and what deletions have left behind, on the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from command_line import CommandLine, ServedCentre

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands import event_stream
from edgewright.cli.commands.event_stream import stream_events
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import Phase, StepName
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.projection import Residue


def tell(
    centre: ServedCentre, cluster: UUID | None, kind: EventKind, message: str, at: datetime | None = None
) -> None:
    event = NewEvent(id=uuid4(), cluster=cluster, actor="centre", kind=kind, message=message, happened_at=at)
    centre.do(centre.centre.ports.audit.append(event))


def test_events_of_all_clusters_are_lines_with_time_name_and_who(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    centre.create("press-shop")
    centre.create("line-4")
    tell(centre, uuid4(), EventKind.CLUSTER_CHANGED, "Of one that nobody knows.\x1b[2J")
    tell(centre, None, EventKind.WEBHOOK_SET, "Of none.")
    shown = edgewright.ok("events")
    assert "\x1b" not in shown.out
    lines = [line.split("  ", 3) for line in shown.out.splitlines()]
    assert [line[3] for line in lines if line[1] == "line-4"] == ["The cluster line-4 was created."]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line[0]) for line in lines)
    assert ["-", "centre", "Of none."] in [line[1:] for line in lines]
    assert "press-shop" in {line[1] for line in lines}


def test_events_are_chosen(edgewright: CommandLine, centre: ServedCentre) -> None:
    for name in ("a", "b", "c"):
        centre.create(name)
    old = datetime.now(UTC) - timedelta(days=2)
    tell(centre, centre.uuid("a"), EventKind.STEP_FAILED, "Long ago.", old)
    tell(centre, centre.uuid("a"), EventKind.STEP_DONE, "Just now.")

    def messages(*options: str) -> list[str]:
        lines = edgewright.ok("events", *options, "--json").out.splitlines()
        return [json.loads(line)["message"] for line in lines]

    created = [f"The cluster {name} was created." for name in ("a", "b")]
    assert messages("--kind", "cluster.created", "--cluster", "a", "--cluster", "B") == created
    assert messages("--kind", "step", "--cluster", str(centre.uuid("a"))) == ["Just now."]
    assert messages("--kind", "step", "--since", "all") == ["Long ago.", "Just now."]
    assert messages("--kind", "step", "--since", "72h") == ["Long ago.", "Just now."]
    just = (old + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S")
    assert messages("--kind", "step.failed", "--kind", "step.done", "--since", just) == ["Just now."]
    assert messages("--kind", "step", "--since", old.date().isoformat()) == ["Long ago.", "Just now."]
    nothing = edgewright.ok("events", "--kind", "notification")
    assert (nothing.out, "--since 7d" in nothing.err) == ("", True)


EVENT_MISTAKES = (
    (["--kind", "step.bloked"], 2, "Did you mean step.blocked"),
    (["--kind", "xyzzy"], 2, "Groups: "),
    (["--since", "yesterday"], 2, "a duration, a time, or all"),
    (["--cluster", "pres-shop"], 3, "Did you mean press-shop?"),
    (["--cluster", "$(rm -rf /)"], 3, "There is no cluster called"),
)


@pytest.mark.parametrize(("options", "code", "sentence"), EVENT_MISTAKES)
def test_a_mistake_in_a_choice_of_events_is_one_sentence(
    edgewright: CommandLine, centre: ServedCentre, options: list[str], code: int, sentence: str
) -> None:
    centre.create("press-shop")
    shown = edgewright("events", *options)
    assert (shown.code, shown.out) == (code, "")
    assert sentence in shown.err


def test_followed_events_begin_now_and_end_with_ctrl_c(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from edgewright.cli.entry import main; main()"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    variables.update({name: value for name, value in edgewright.environment.items() if value is not None})
    streams = centre.centre.app.state.live.event_streams
    with subprocess.Popen(
        [sys.executable, "-c", program, "events", "--follow"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        pause = threading.Event()
        while not len(streams):
            assert following.poll() is None
            pause.wait(0.02)
        tell(centre, centre.uuid("press-shop"), EventKind.CLUSTER_CHANGED, "A change.")
        assert following.stdout.readline().endswith("  press-shop  centre  A change.\n")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == ExitCode.INTERRUPTED
        assert (following.stdout.read(), following.stderr.read()) == ("", "")


# --- broken connections ------------------------------------------------------------------------------------------


def message(position: int, text: str = "x", name: str = "") -> bytes:
    data = json.dumps({"position": position, "message": text}, ensure_ascii=False)
    return (f"event: {name}\r\n" if name else "").encode() + f"id: {position}\r\ndata: {data}\r\n\r\n".encode()


class Pieces(httpx.SyncByteStream):
    """A body in pieces; an exception among them is a connection that breaks."""

    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


Body = list[bytes | Exception] | httpx.Response | Exception


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[GatewayClient, list[dict[str, str]]]]:
    """Makes a gateway that gives these answers, and the queries that it will have seen."""
    monkeypatch.setattr(event_stream, "RECONNECT_SECONDS", 0.0)

    def make(*bodies: Body) -> tuple[GatewayClient, list[dict[str, str]]]:
        seen: list[dict[str, str]] = []
        left = iter(bodies)

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(dict(request.url.params))
            given = next(left)
            if isinstance(given, Exception):
                raise given
            if isinstance(given, httpx.Response):
                return given
            return httpx.Response(200, stream=Pieces(given))

        return GatewayClient("http://127.0.0.1:1", None, transport=httpx.MockTransport(answer)), seen

    return make


def positions(found: Iterator[Any], count: int) -> list[int]:
    return [event["position"] for event in islice(found, count)]


def test_a_broken_connection_is_resumed_without_losses_or_doubles(
    streaming: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = httpx.ReadError("cut")
    gateway, seen = streaming(
        [message(7, name="position"), b": ping\r\n\r\n", message(8), message(9)[:20], cut],
        httpx.ConnectError("restarting"),
        httpx.Response(503, json={"detail": "Starting.", "code": "gateway_stopping"}),
        [message(8), message(9), message(10)[:-1]],  # ends as if it was complete
        [message(10)[:5], message(10)[5:], message(11), httpx.ReadTimeout("silent")],
        [message(12)],
    )
    assert positions(stream_events(gateway, {"kind": "x"}), 5) == [8, 9, 10, 11, 12]
    assert [each.get("after") for each in seen] == [None, "8", "8", "8", "9", "11"]
    assert {each["kind"] for each in seen} == {"x"}
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2, "once for each time that the gateway was away"


def test_a_connection_that_breaks_before_anything_happened_begins_where_the_first_did(streaming: Any) -> None:
    gateway, seen = streaming([message(7, name="position"), httpx.ReadError("cut")], [message(9)])
    assert positions(stream_events(gateway, {}), 1) == [9]
    assert seen[1]["after"] == "7"


def test_a_stream_that_ends_early_is_gone_on_with_until_its_end_was_told(streaming: Any) -> None:
    gateway, seen = streaming([message(1), message(2)], [], [message(3), message(3, name="position"), message(4)])
    assert positions(stream_events(gateway, {}, after=0, follow=False), 9) == [1, 2, 3]
    assert [(each["after"], each["follow"]) for each in seen] == [("0", "false"), ("2", "false"), ("2", "false")]


def test_a_text_may_hold_what_ends_a_line_elsewhere(streaming: Any) -> None:
    odd = "a\u2028b\x85c\x0cd\x1ee"
    gateway, _ = streaming([message(1, odd)])
    assert next(iter(stream_events(gateway, {}, after=0)))["message"] == odd


@pytest.mark.parametrize(
    ("bodies", "code"),
    [
        ([httpx.ConnectError("down")], ExitCode.UNAVAILABLE),
        ([httpx.Response(429, json={"detail": "x", "code": "event_streams_busy"})], ExitCode.UNAVAILABLE),
        ([[message(1)], httpx.Response(401, json={"detail": "x", "code": "unauthenticated"})], ExitCode.NOT_ALLOWED),
    ],
)
def test_what_connecting_again_does_not_mend_ends_it(streaming: Any, bodies: list[Body], code: ExitCode) -> None:
    gateway, _ = streaming(*bodies)
    with pytest.raises(CliError) as caught:
        list(stream_events(gateway, {}, after=0))
    assert caught.value.exit_code is code


# --- residue -----------------------------------------------------------------------------------------------------


def test_residue_names_cluster_step_and_reason(edgewright: CommandLine, centre: ServedCentre) -> None:
    empty = edgewright.ok("residue")
    assert (empty.out, "nothing behind" in empty.err) == ("", True)
    made = centre.create("press-shop")
    centre.do(centre.centre.gateway.wishes.request_deletion(made, actor="test"))
    since = datetime.now(UTC) - timedelta(hours=3, minutes=1)
    left = Residue(step=StepName.AWAIT_GOODBYE, reason="No answer.\x1b[2J", since=since)
    centre.project(made, phase=Phase.DETACHING, residue=(left,))
    header, line = edgewright.ok("residue").out.splitlines()
    assert header.split() == ["CLUSTER", "STEP", "SINCE", "WHAT", "IS", "LEFT"]
    assert line.split(maxsplit=4) == ["press-shop", "await_goodbye", "3h", "ago", "No answer.?[2J"]
    [item] = json.loads(edgewright.ok("residue", "--json").out)["items"]
    assert item["cluster"] == str(made)
