"""The lines of a program's log, whoever writes them."""

import json
import subprocess
import sys
from pathlib import Path

LINES = """
import logging, structlog
from edgewright.logs import configure_logs
before = structlog.get_logger("edgewright.before")
configure_logs("INFO")
with structlog.contextvars.bound_contextvars(request_id="r1"):
    before.info("hello", number=1)
    logging.getLogger("theirs").info("hello %s", "you")
    structlog.get_logger("edgewright.quiet").debug("not shown")
    logging.getLogger("httpx").info("not shown")
    try:
        secret = "hidden-word"
        raise ValueError("wrong")
    except ValueError:
        structlog.get_logger("edgewright.failing").exception("failed")
print("went on")
"""


def logged(stderr: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", LINES]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True, timeout=60)


def test_ours_and_those_of_libraries_are_json_objects_of_one_form() -> None:
    ours, theirs, failed = (json.loads(line) for line in logged(subprocess.PIPE).stderr.splitlines())
    assert ours.pop("timestamp").endswith("Z") and theirs.pop("timestamp").endswith("Z")
    assert list(ours.items()) == [
        ("number", 1),
        ("event", "hello"),
        ("request_id", "r1"),
        ("level", "info"),
        ("logger", "edgewright.before"),
    ]
    assert theirs == {"request_id": "r1", "event": "hello you", "level": "info", "logger": "theirs"}
    assert (failed["level"], failed["logger"]) == ("error", "edgewright.failing")
    assert "ValueError: wrong" in failed["exception"] and "hidden-word" not in failed["exception"].replace(LINES, "")


def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    with Path("/dev/full").open("w") as full:
        assert logged(full.fileno()).stdout == "went on\n"
