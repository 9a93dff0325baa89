"""Plants a marker, written in every way, in each kind of place that a search goes through."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

from process_watch import ProcessWatch
from temporalio.client import Client

WAITS = "import sys; print(flush=True); sys.stdin.read()"
"""A program that says that it runs, and ends with its input."""


def plant_in_files(home: Path, written: Mapping[str, bytes]) -> list[str]:
    """In the logs and in what describes the running processes; returns the names of the files."""
    names = ["logs/gateway.log", "logs/worker.log", "logs/temporal.log", "endpoints.json", "processes.json", "said"]
    for name in names:
        with (home / name).open("ab") as file:
            file.write(b"\n".join(written.values()))
    return names


@contextmanager
def planted_in_database(file: Path, written: Mapping[str, bytes]) -> Iterator[None]:
    """In an SQLite file; while the context is open, all of it is still in the write-ahead log."""
    connection = sqlite3.connect(file)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        # Long rows as well: they are cut into pieces, each on a page of its own.
        connection.execute("CREATE TABLE planted (value BLOB, long BLOB)")
        long = os.urandom(4000)
        connection.executemany(
            "INSERT INTO planted VALUES (?, ?)", [(value, long + value + long) for value in written.values()]
        )
        connection.commit()
        yield
    finally:
        connection.close()


def plant_in_repository(repository: Path, written: Mapping[str, bytes], *, packed: bool) -> None:
    """As blobs that nothing refers to: loose, or in a pack and nowhere else."""
    ids = [_git(repository, "hash-object", "-w", "--stdin", stdin=value).strip() for value in written.values()]
    if packed:
        pack = repository / "objects" / "pack" / "pack"
        _git(repository, "pack-objects", "--quiet", str(pack), stdin=b"\n".join(ids))
        _git(repository, "prune", "--expire", "now")
        loose = [repository / "objects" / each[:2].decode() / each[2:].decode() for each in ids]
        assert not [path for path in loose if path.exists()]


def plant_in_history(address: str, written: Mapping[str, bytes]) -> str:
    """In the input of a workflow, in its memo and in a signal; returns the workflow's ID."""
    return asyncio.run(_start_planted(address, written))


async def _start_planted(address: str, written: Mapping[str, bytes]) -> str:
    client = await Client.connect(address)
    texts = [value.decode() for value in written.values()]
    handle = await client.start_workflow(
        "Planted", texts, id=f"planted-{uuid4()}", task_queue="nobody", memo={"note": texts}
    )
    await handle.signal("planted", {"more": texts})
    return handle.id


def plant_in_processes(watch: ProcessWatch, written: Mapping[str, bytes]) -> None:
    """In the arguments of one process and in the environment of another, which live until both were looked at."""
    arguments = list(written.values())
    surroundings = {**os.environb, **{b"PLANTED_%d" % number: value for number, value in enumerate(arguments)}}
    reads = [sys.executable, "-c", WAITS]
    with (
        subprocess.Popen([*reads, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as told,
        subprocess.Popen(reads, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings) as surrounded,
    ):
        for running in (told, surrounded):
            assert running.stdout is not None
            running.stdout.readline()  # within exec the kernel shows a process without environment
        watch.look()
        for running in (told, surrounded):
            running.communicate()


@contextmanager
def planted_answers(written: Mapping[str, bytes]) -> Iterator[str]:
    """A gateway that says nothing else; yields its URL."""

    class PlantedHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b"\n".join(written.values())
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Quiet: pytest shows what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), PlantedHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def _git(repository: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", "--git-dir", repository, *arguments], input=stdin, capture_output=True, check=True, timeout=60
    )
    return done.stdout
