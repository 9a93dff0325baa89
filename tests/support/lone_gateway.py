"""A real gateway process on a home of its own, with nothing beside it: Temporal's address leads nowhere."""

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from free_ports import free_port
from loopback import PLAIN
from supervised import eventually

from edgewright.cli.home import prepare_home
from edgewright.cli.initialise import initialise_storage
from edgewright.settings import Settings

FULL = """
import sqlite3
connect = sqlite3.connect
def connect_to_full_disk(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.execute("PRAGMA max_page_count = 1")
    return connection
sqlite3.connect = connect_to_full_disk
"""
"""SQLite itself refuses every further page, with the error that it has for a full disk."""


class DidNotStart(Exception):
    """The gateway has ended instead; the text is its log."""


@dataclass(frozen=True)
class LoneGateway:
    """Where it is, and what a command needs to reach it."""

    home: Path
    url: str
    temporal: str
    process: "subprocess.Popen[bytes]"
    log: Path
    verify: ssl.SSLContext | None = None

    @property
    def trusted(self) -> ssl.SSLContext | bool:
        """What httpx verifies it with."""
        return True if self.verify is None else self.verify

    @property
    def environment(self) -> dict[str, str]:
        return {"EDGEWRIGHT_URL": self.url, "EDGEWRIGHT_TOKEN_FILE": str(self.home / "admin-token")}

    def api(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One call with the admin token."""
        headers = {"Authorization": f"Bearer {(self.home / 'admin-token').read_text().strip()}"}
        return httpx.request(
            method,
            f"{self.url}{path}",
            headers=headers | options.pop("headers", {}),
            timeout=40,
            **(PLAIN if self.verify is None else {"trust_env": False, "verify": self.verify}),
            **options,
        )


@contextmanager
def lone_gateway(
    home: Path,
    *,
    full_disk: bool = False,
    begins_with: str = "",
    database_url: str | None = None,
    descriptors: int | str | None = None,
    instead: Mapping[str, str] | None = None,
    verify: ssl.SSLContext | None = None,
) -> Iterator[LoneGateway]:
    """Runs one until the end of the context.

    Args:
        full_disk: its database cannot grow any more.
        begins_with: Python that its process runs before anything else.
        database_url: another database than the SQLite file in the home.
        descriptors: how many files it may open at most, as `prlimit` takes it.
        instead: variables that it is told besides.
        verify: what its certificate is verified with; None: it serves plain http.
    """
    port, nowhere = free_port(), f"127.0.0.1:{free_port()}"
    prepare_home(home)
    asyncio.run(initialise_storage(Settings(home=home, database_url=database_url)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    told = {
        "EDGEWRIGHT_HOME": str(home),
        "EDGEWRIGHT_GATEWAY_PORT": str(port),
        "EDGEWRIGHT_TEMPORAL_ADDRESS": nowhere,
    }
    if database_url:
        told["EDGEWRIGHT_DATABASE_URL"] = database_url
    told |= instead or {}
    command = [sys.executable, "-P", "-m", "api"]
    if descriptors is not None:
        command = ["prlimit", f"--nofile={descriptors}", *command]
    if first := FULL if full_disk else begins_with:
        (home / "first").mkdir(exist_ok=True)
        (home / "first" / "sitecustomize.py").write_text(first)
        told["PYTHONPATH"] = str(home / "first")
    log = home / "logs" / f"gateway-{port}.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(command, env={**kept, **told}, stdout=out, stderr=out) as running,
    ):
        gateway = LoneGateway(
            home, f"{'https' if verify else 'http'}://127.0.0.1:{port}", nowhere, running, log, verify
        )
        try:
            eventually(lambda: running.poll() is not None or _answers(gateway), seconds=90)
            if running.poll() is not None:
                raise DidNotStart(log.read_text())
            yield gateway
        finally:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()


def _answers(gateway: LoneGateway) -> bool:
    try:
        return gateway.api("GET", "/healthz").is_success
    except httpx.TransportError:
        return False
