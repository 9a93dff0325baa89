"""Load from `wrk`: a native generator costs little of the machine that it measures."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debian import debian_tree, library_path

SECONDS = 8
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass(frozen=True)
class Rate:
    """Answers a second, and the seconds within which 99 of 100 came."""

    per_second: float
    p99: float


class FailedLoad(Exception):
    """Not every answer was a success: such a figure means nothing."""


def load(url: str, *, clients: int, headers: Mapping[str, str] | None = None, script: Path | None = None) -> Rate:
    """Asks again and again for some seconds, each client one request after the other.

    Args:
        script: in Lua, makes the requests; None: each is a GET of the URL.

    Raises:
        FailedLoad: an answer was no success, or none came.
    """
    tree = debian_tree("wrk")
    command = [str(tree / "usr/bin/wrk"), "-t1", f"-c{clients}", f"-d{SECONDS}s", "--timeout", "30s", "--latency"]
    command += [part for name, value in (headers or {}).items() for part in ("-H", f"{name}: {value}")]
    command += ["-s", str(script)] if script else []
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path(tree)}
    shown = subprocess.run([*command, url], capture_output=True, text=True, check=True, env=environment).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", shown)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s|m)\b", shown)
    if rate is None or slow is None or "Non-2xx" in shown or "Socket errors" in shown:
        raise FailedLoad(shown)
    return Rate(float(rate[1]), float(slow[1]) * UNITS[slow[2]])
