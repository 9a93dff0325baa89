"""Logs: one JSON object per line on stderr; no local variables in tracebacks, for they could hold secrets."""

import logging
import sys

import structlog


def configure_logs(level: str) -> None:
    """Sets up structlog and the standard library's logging alike. ``level``: ``INFO`` and so on."""
    number = logging.getLevelNamesMapping()[level]
    timestamper = structlog.processors.TimeStamper(fmt="iso", utc=True)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        timestamper,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    to_stderr = logging.StreamHandler(sys.stderr)
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
