"""The real Temporal server, in memory, on a free port of the loopback address."""

import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from free_ports import free_port

from edgewright.messages.names import SEARCH_ATTRIBUTES

HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How a client begins, with settings in which nothing is set."""
POLLERS = ("transferProcessor", "timerProcessor", "visibilityProcessor")


def temporal_binary() -> Path:
    return Path(sysconfig.get_path("scripts")) / "temporal"


@contextmanager
def temporal_server(
    log: Path, *, db: Path | None = None, port: int | None = None, settings: Sequence[str] = ()
) -> Iterator[str]:
    """Runs a server; yields ``host:port``.

    Args:
        db: a file, so that it survives a restart.
        settings: more of its dynamic configuration, each ``key=value``.
    """
    port = port or free_port()
    command = [str(temporal_binary()), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    command += ["--port", str(port), "--log-level", "error"]
    for poller in POLLERS:
        command += ["--dynamic-config-value", f"history.{poller}MaxPollRPS=1000"]
    for setting in settings:
        command += ["--dynamic-config-value", setting]
    for name, kind in SEARCH_ATTRIBUTES.items():
        command += ["--search-attribute", f"{name}={kind}"]
    if db:
        command += ["--db-filename", str(db), "--sqlite-pragma", "journal_mode=WAL"]
        command += ["--sqlite-pragma", "synchronous=NORMAL"]
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            _wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the Temporal server ended with {process.returncode}")
        if _speaks(port):
            return
        time.sleep(0.05)
    raise RuntimeError("the Temporal server did not come up within 60 s")


def _speaks(port: int) -> bool:
    """Whether gRPC answers. Before it serves, Temporal's command line listens for a moment, to see whether it may."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
        probe.sendall(HTTP2)
        return bool(probe.recv(1))
    return False
