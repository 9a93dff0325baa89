"""A Temporal server that can be stopped, killed and started again on its file."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from free_ports import free_port
from temporal_server import temporal_server


@dataclass
class MortalTemporal:
    """One server on one port, file-backed."""

    folder: Path
    port: int = field(default_factory=free_port)
    _running: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        server = temporal_server(self.folder / "server.log", db=self.folder / "temporal.db", port=self.port)
        self._running.enter_context(server)

    def end(self) -> None:
        self._running.close()

    @contextmanager
    def away(self, how: str) -> Iterator[None]:
        """``stopped``: it is there and answers nothing; ``killed``: nobody is there."""
        [process] = [child for child in psutil.Process().children() if str(self.port) in child.cmdline()]
        process.send_signal(signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
        try:
            yield
        finally:
            if how == "stopped":
                process.send_signal(signal.SIGCONT)
            else:
                self.end()
                self.start()
