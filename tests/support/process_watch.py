"""Arguments and environments of every process that a test causes, looked at again and again while it runs."""

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

Place = tuple[str, bytes]
_PAUSE_SECONDS = 0.05


class ProcessWatch:
    """Watches all descendants of this process while it is open as a context.

    Args:
        besides: more process IDs to look at, such as those of orphans.
    """

    def __init__(self, besides: Callable[[], Iterable[int]] = tuple) -> None:
        self._besides = besides
        self._seen: dict[tuple[str, bytes], None] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def places(self) -> Iterator[Place]:
        """What was seen, each once."""
        yield from self._seen

    def look(self) -> None:
        """One look, beside those that are taken by itself."""
        for process in self._processes():
            try:
                arguments = process.cmdline()
                name = Path(arguments[0]).name if arguments else process.name()
                self._note(f"arguments of {name}", arguments)
                self._note(f"environment of {name}", [f"{key}={value}" for key, value in process.environ().items()])
            except (psutil.Error, OSError):
                continue  # ended meanwhile

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            self.look()

    def _processes(self) -> Iterator[psutil.Process]:
        yield from psutil.Process().children(recursive=True)
        for pid in self._besides():
            try:
                yield psutil.Process(pid)
            except psutil.NoSuchProcess:
                continue

    def _note(self, place: str, texts: list[str]) -> None:
        self._seen.setdefault((place, os.fsencode("\0".join(texts))))


def record_program(name: str, folder: Path, *, real: Path | None = None) -> Path:
    """Makes ``folder/name``, to stand first on PATH: writes down how it is called, then becomes the real program.

    Most calls of git are over before anybody looks.

    Args:
        real: the program; None: the one on PATH.

    Returns:
        The file that holds arguments and environment of every call.
    """
    becomes = real or shutil.which(name)
    env = shutil.which("env")
    assert becomes and env
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.calls"
    recorder = folder / name
    recorder.write_text(f"#!/bin/sh\n{{ printf '%s\\n' \"$@\"; {env}; }} >>'{log}'\nexec {becomes} \"$@\"\n")
    recorder.chmod(recorder.stat().st_mode | stat.S_IXUSR)
    return log
