"""``--watch``: what a command shows, again whenever it changes, until Ctrl-C."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.event_stream import SILENCE_SECONDS
from edgewright.cli.commands.screen import Document, clean, is_drawable, moment, say, terminal_console
from edgewright.cli.failures import CliError, ExitCode

REFRESH_SECONDS = 10.0
"""Longest time between two looks: heartbeats are no events, and "12s ago" grows old."""
SHORTEST_PAUSE_SECONDS = 1.0
"""Events of one second are looked at together."""
_SHARE = 5
"""So many times longer than a look takes, nothing is asked: a list of ten thousand is not asked for without end."""
_RECONNECT_SECONDS = 1.0
_STREAM_REFUSED_SECONDS = 30.0
_AWAY = frozenset({"gateway_unreachable", "gateway_timeout", "connection_broken", "gateway_not_running"})
"""Codes of a gateway that is not there, which comes back soon."""


def watch(
    look: Callable[[], Document],
    *,
    draw: Callable[[Document], Sequence[Text]] | None,
    tell: Callable[[Document | None, Document], None],
) -> None:
    """Shows what ``look`` finds, until Ctrl-C.

    Args:
        draw: the lines for a terminal, which are drawn over; None: a form for machines is wanted.
        tell: prints what is new, given what was found before, elsewhere than on such a terminal.

    Raises:
        CliError: the first look fails, or the gateway refuses a later one. One that is away is waited for.
        typer.Exit: Ctrl-C.
    """
    bell = _Bell()
    try:
        found = look()
        bell.start()
        if draw is not None and is_drawable():
            _draw(look, found, draw, bell)
        else:
            _tell(look, found, tell, bell)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        bell.stop()


def _draw(
    look: Callable[[], Document], found: Document, draw: Callable[[Document], Sequence[Text]], bell: "_Bell"
) -> None:
    with Live(console=terminal_console(), auto_refresh=False) as live:
        live.update(_drawn(draw(found), None), refresh=True)
        for news in _looks(look, bell):
            if isinstance(news, CliError):
                live.update(_drawn(draw(found), news), refresh=True)
            else:
                found = news
                live.update(_drawn(draw(found), None), refresh=True)


def _drawn(lines: Sequence[Text], trouble: CliError | None) -> Group:
    if trouble:
        footer = Text(f"{clean(trouble.sentence)} Trying again.", style="bold red")
    else:
        footer = Text(f"As of {moment(datetime.now(UTC).isoformat())}. Press Ctrl-C to stop.", style="dim")
    return Group(*lines, Text(""), footer)


def _tell(
    look: Callable[[], Document], found: Document, tell: Callable[[Document | None, Document], None], bell: "_Bell"
) -> None:
    tell(None, found)
    away = False
    for news in _looks(look, bell):
        if isinstance(news, CliError):
            if not away:
                say(f"{news.sentence} Trying again.")
            away = True
            continue
        if away:
            say("The gateway answers again.")
        away = False
        tell(found, news)
        found = news


def _looks(look: Callable[[], Document], bell: "_Bell") -> Iterator[Document | CliError]:
    """What later looks find, or why one could not be had."""
    took = 0.0
    while True:
        time.sleep(max(SHORTEST_PAUSE_SECONDS, _SHARE * took))
        bell.wait(REFRESH_SECONDS)
        began = time.monotonic()
        news: Document | CliError
        try:
            news = look()
        except CliError as error:
            if error.exit_code is not ExitCode.UNAVAILABLE:
                raise
            bell.ring()  # to look again soon
            news = error
        took = time.monotonic() - began
        yield news


class _Bell:
    """Rings when the gateway streams an event. What it was is not looked at: whoever hears it looks at everything."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends it, with the next line that it hears."""
        self._stopped.set()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, seconds: float) -> None:
        """Returns once it has rung since the last time, and at the latest after so many seconds."""
        self._rung.wait(seconds)
        self._rung.clear()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            pause = _RECONNECT_SECONDS
            try:
                # A client of its own: the other one may be closed while this one waits for a line.
                with connect() as gateway:
                    self._hear(gateway)
            except CliError as error:
                if error.code not in _AWAY:
                    pause = _STREAM_REFUSED_SECONDS  # all streams are taken: looks at intervals have to do
            self.ring()  # the connection has ended: the next look tells whether the gateway is away
            self._stopped.wait(pause)

    def _hear(self, gateway: GatewayClient) -> None:
        with gateway.stream("/v1/events", silence=SILENCE_SECONDS) as answer:
            for line in answer.iter_lines():
                if self._stopped.is_set():
                    return
                if line.startswith("data:"):  # the first one says where the stream begins: what was before is past
                    self.ring()
