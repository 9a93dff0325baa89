"""`endpoints.json`: how everything else on this machine finds what `edgewright up` has started."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_FILE = "endpoints.json"
_CLOCK_SLACK_SECONDS = 2.0


@dataclass(frozen=True)
class Endpoints:
    """Where the parts of a running Edgewright are.

    Args:
        gateway: base URL, no trailing slash.
        temporal: ``host:port`` of the Temporal server.
        temporal_ui: base URL of its Web UI; empty if it is not known.
        pid: the `edgewright up` that wrote this.
        worker_metrics: URL of the worker's Prometheus metrics; the gateway's are at ``/metrics``.
        external_url: where edges reach the gateway; empty: nowhere was set.
        bind: the address that the gateway listens on.
        ca_bundle: PEM file that verifies the gateway; empty: what this machine trusts.
    """

    gateway: str
    temporal: str
    temporal_ui: str
    pid: int
    worker_metrics: str = ""
    external_url: str = ""
    bind: str = "127.0.0.1"
    ca_bundle: str = ""

    @property
    def authorities(self) -> Path | None:
        """``ca_bundle`` as a path; None if there is none."""
        return Path(self.ca_bundle) if self.ca_bundle else None


def write_endpoints(home: Path, endpoints: Endpoints) -> None:
    """Publishes the endpoints; readers see all of the file or none of it."""
    write_atomically(home / _FILE, json.dumps(asdict(endpoints)) + "\n")


def remove_endpoints(home: Path) -> None:
    """Withdraws the endpoints; nothing happens if there are none."""
    (home / _FILE).unlink(missing_ok=True)


def read_endpoints(home: Path) -> Endpoints | None:
    """The endpoints of the `edgewright up` that runs on a home.

    Returns:
        None if there is no file, it is not whole, or the process that wrote it is gone (it was killed).
    """
    path = home / _FILE
    try:
        written_at = path.stat().st_mtime
        content = json.loads(path.read_text())
        endpoints = Endpoints(
            gateway=str(content["gateway"]),
            temporal=str(content["temporal"]),
            temporal_ui=str(content["temporal_ui"]),
            pid=int(content["pid"]),
            worker_metrics=str(content.get("worker_metrics", "")),
            external_url=str(content.get("external_url", "")),
            bind=str(content.get("bind", "127.0.0.1")),
            ca_bundle=str(content.get("ca_bundle", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return endpoints if _wrote(endpoints.pid, written_at) else None


def _wrote(pid: int, written_at: float) -> bool:
    """Whether a living process can be the writer: one that began later merely got the same number."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= written_at + _CLOCK_SLACK_SECONDS
    except (psutil.Error, ValueError):
        return False


def write_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replaces a file in one step, durably: after a crash it holds the old or the new text, never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
