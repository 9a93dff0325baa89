"""Logs: one JSON object per line on stderr; no local variables in tracebacks, for they could hold secrets."""

import logging
import sys
from contextlib import suppress
from threading import Lock
from typing import TextIO

import structlog


def configure_logs(level: str) -> None:
    """Sets up structlog and the standard library's logging alike. ``level``: ``INFO`` and so on."""
    number = logging.getLevelNamesMapping()[level]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    stderr, lock = sys.stderr, Lock()
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        logger_factory=lambda name: Lines(name, stderr, lock),
        wrapper_class=structlog.make_filtering_bound_logger(number),
        cache_logger_on_first_use=True,
    )
    to_stderr = logging.StreamHandler(stderr)
    to_stderr.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [to_stderr]
    root.setLevel(number)
    for noisy in ("httpx", "httpx2", "httpcore2", "git", "aiosqlite", "asyncio"):
        logging.getLogger(noisy).setLevel(max(number, logging.WARNING))


class Lines:
    """Where one of our loggers writes its lines. The standard library's logging would make records of them first, and
    take as long as all else of a line together.

    Args:
        name: of the logger.
        lock: held while a line is written.
    """

    def __init__(self, name: str, stream: TextIO, lock: Lock) -> None:
        self.name = name
        self._stream = stream
        self._lock = lock

    def write(self, line: str) -> None:
        """Writes it. A disk that is full, or a reader that has gone, disturbs nobody who logs."""
        with suppress(OSError, ValueError), self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = info = warning = error = exception = critical = write
    """What structlog calls, by the level of a line."""
