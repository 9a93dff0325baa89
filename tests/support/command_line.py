"""The command line, run as a user runs it against a real gateway that a thread serves on a loopback port."""

import asyncio
import io
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
import uvicorn
from gateway_centre import GatewayCentre, gateway_centre
from typer.testing import CliRunner

from edgewright.cli.main import main
from edgewright.ports.clusters import ClusterRow

T = TypeVar("T")


@dataclass
class ServedCentre:
    """A gateway that is served by a thread of its own. ``url``: where."""

    url: str
    centre: GatewayCentre
    loop: asyncio.AbstractEventLoop

    def do(self, work: Awaitable[T]) -> T:
        """The outcome of work on the gateway's own loop."""

        async def done() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(30)

    def create(self, name: str, **wish: Any) -> UUID:
        """A commissioned cluster."""
        return self.do(self.centre.create(name, **wish))

    def uuid(self, name: str) -> UUID:
        """The UUID of a cluster that is there."""
        found = self.do(self.centre.gateway.directory.find(name))
        assert found is not None
        return found

    def row(self, cluster: UUID) -> ClusterRow:
        return self.do(self.centre.row(cluster))

    def project(self, cluster: UUID, **changes: Any) -> None:
        """Publishes a changed projection, as the workflow does."""
        self.do(self.centre.project(cluster, **changes))


@contextmanager
def served_centre(database_file: Path, git_root: Path) -> Iterator[ServedCentre]:
    """A gateway on a free port until the end of the context."""
    ready = threading.Event()
    made: list[tuple[ServedCentre, Callable[[], object]]] = []

    async def serve() -> None:
        async with gateway_centre(database_file, git_root) as centre:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                config = uvicorn.Config(centre.app, lifespan="off", log_config=None, access_log=False, ws="none")
                server = uvicorn.Server(config)
                loop = asyncio.get_running_loop()

                def end() -> None:
                    centre.app.state.live.closing.set()
                    server.should_exit = True

                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                made.append((ServedCentre(url, centre, loop), lambda: loop.call_soon_threadsafe(end)))
                ready.set()
                await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    centre, end = made[0]
    try:
        yield centre
    finally:
        end()
        thread.join(30)
        assert not thread.is_alive()


@dataclass
class Shown:
    """What a command has shown, and how it ended."""

    out: str
    err: str
    code: int


@dataclass
class CommandLine:
    """Runs commands of ``edgewright`` in this process, through the ``main`` that a shell calls; no terminal."""

    environment: dict[str, str | None] = field(default_factory=dict)
    _out: io.BytesIO = field(default_factory=io.BytesIO)

    def shown_so_far(self) -> str:
        """What the newest command has written to stdout; from any thread."""
        return self._out.getvalue().decode()

    def __call__(self, *arguments: str, typed: str | bytes | None = None, **environment: str) -> Shown:
        with (
            CliRunner(env={**self.environment, **environment}).isolation(typed) as (out, err, _),
            pytest.MonkeyPatch.context() as patch,
        ):
            self._out = out
            patch.setattr(sys, "argv", ["edgewright", *arguments])
            with pytest.raises(SystemExit) as end:
                main()
            sys.stdout.flush()
            sys.stderr.flush()
            return Shown(out.getvalue().decode(), err.getvalue().decode(), int(end.value.code or 0))

    def ok(self, *arguments: str, typed: str | bytes | None = None) -> Shown:
        """The same for a command that must succeed."""
        shown = self(*arguments, typed=typed)
        assert shown.code == 0, shown
        return shown


@dataclass
class Terminal:
    """The same with a terminal for stdin and stderr, and for stdout unless ``out`` names a file."""

    environment: dict[str, str | None]

    def __call__(self, *arguments: str, typed: str = "", out: Path | None = None) -> Shown:
        ours, theirs = os.openpty()
        seen = bytearray()
        drained = threading.Thread(target=_drain, args=(ours, seen), daemon=True)
        drained.start()
        os.write(ours, typed.encode())
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for name, value in {"TERM": "xterm", **self.environment}.items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            patch.setattr(sys, "argv", ["edgewright", *arguments])
            screen = stack.enter_context(os.fdopen(theirs, "w", closefd=False))
            patch.setattr(sys, "stdin", stack.enter_context(os.fdopen(theirs, "r", closefd=False)))
            patch.setattr(sys, "stdout", stack.enter_context(out.open("w")) if out else screen)
            patch.setattr(sys, "stderr", screen)
            with pytest.raises(SystemExit) as end:
                main()
        os.close(theirs)
        drained.join(30)
        os.close(ours)
        screen_text = seen.decode()
        return Shown(out.read_text() if out else screen_text, screen_text, int(end.value.code or 0))


def _drain(descriptor: int, seen: bytearray) -> None:
    """Reads what is shown until the other end is closed."""
    with suppress(OSError):  # Linux says so when the last user of a terminal has gone
        while more := os.read(descriptor, 4096):
            seen += more
