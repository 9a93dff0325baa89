"""What is left when a client goes away: no git process, no half-written objects, and word of what was done."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.git.http_push import PushContext, Pushed
from edgewright.errors import Waiting
from edgewright.ports.git_server import CommitMessage

BY_CENTRE = CommitMessage("Populate", "edgewright")
FETCH = "application/x-git-upload-pack-request"
PUSH = "application/x-git-receive-pack-request"


def git_processes(root: Path) -> list[psutil.Process]:
    """Git processes of this test's repositories, the dead ones that nobody has reaped included."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.status() == psutil.STATUS_ZOMBIE or str(root) in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_until(condition, *, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


async def eventually(condition, *, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0.02)


def request(url: str, path: str, headers: dict[str, str], body: bytes) -> socket.socket:
    """Sends a request by hand and leaves the connection open."""
    host, port = url.removeprefix("http://").split("/")[0].split(":")
    connection = socket.create_connection((host, int(port)))
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", *(f"{key}: {value}" for key, value in headers.items())]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return connection


def test_client_that_leaves_during_its_push_leaves_nothing_behind(centre) -> None:
    repository, url = centre.repository()
    head = centre.server.head(repository)
    command = f"{head} {'1' * 40} refs/heads/main\0report-status side-band-64k".encode()
    body = b"%04x%b0000PACK\0\0\0\2\0\0\1\0" % (len(command) + 4, command)
    headers = {"Content-Type": PUSH, "Content-Length": "500000"}
    connection = request(url, f"/{repository}/git-receive-pack", headers, body)
    wait_until(lambda: git_processes(centre.server.root))
    connection.close()
    wait_until(lambda: not git_processes(centre.server.root))
    assert centre.server.head(repository) == head
    assert centre.pushes == []
    assert not list((centre.server.folder(repository) / "objects").glob("tmp_objdir*"))


def test_client_that_leaves_during_its_clone_ends_git(centre) -> None:
    repository, url = centre.repository()
    big = {f"by-hand/{number}": os.urandom(2_000_000) for number in range(10)}
    new = centre.server.commit(repository, big, BY_CENTRE, expected_head=centre.server.head(repository))
    want = b"0032want " + new.encode() + b"\n00000009done\n"
    headers = {"Content-Type": FETCH, "Content-Length": str(len(want))}
    connection = request(url, f"/{repository}/git-upload-pack", headers, want)
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert git_processes(centre.server.root)
    connection.close()
    wait_until(lambda: not git_processes(centre.server.root))


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "git")


@pytest.fixture
def repository(server: BareGitServer) -> UUID:
    name = uuid4()
    server.create_repository(name)
    files = {f"by-hand/{number}": os.urandom(500_000) for number in range(10)}
    server.commit(name, files, BY_CENTRE, expected_head=None)
    return name


async def pieces(*content: bytes, then: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece
    if then is not None:
        await then.wait()


def want(head: str | None) -> bytes:
    return f"0032want {head}\n00000009done\n".encode()


async def test_answer_that_nobody_reads_ends_git(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server)
    body = pieces(want(server.head(repository)))
    answer = await engine.rpc(repository, "git-upload-pack", body, media_type=FETCH)
    assert git_processes(server.root)
    del answer
    await eventually(lambda: not git_processes(server.root))


async def test_request_that_is_cancelled_ends_git(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server)
    body = pieces(b"0032want ", then=asyncio.Event())
    running = asyncio.create_task(engine.rpc(repository, "git-upload-pack", body, media_type=FETCH))
    await eventually(lambda: git_processes(server.root))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: not git_processes(server.root))


async def test_exchange_that_takes_too_long_is_ended(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, deadline=0.3)
    answer = await engine.rpc(repository, "git-upload-pack", pieces(want(server.head(repository))), media_type=FETCH)
    await eventually(lambda: not git_processes(server.root))
    size = sum([len(piece) async for piece in answer.body])
    assert size < 5_000_000


async def test_requests_wait_for_their_turn_and_no_longer(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, processes=1, patience=0.2)
    head = server.head(repository)
    answer = await engine.rpc(repository, "git-upload-pack", pieces(want(head)), media_type=FETCH)
    with pytest.raises(Waiting) as refusal:
        await engine.rpc(repository, "git-upload-pack", pieces(want(head)), media_type=FETCH)
    assert refusal.value.code == "git_busy"
    first = b"".join([piece async for piece in answer.body])
    again = await engine.rpc(repository, "git-upload-pack", pieces(want(head)), media_type=FETCH)
    assert len(b"".join([piece async for piece in again.body])) == len(first) > 5_000_000


async def test_push_is_told_of_even_when_its_client_has_left(
    server: BareGitServer, repository: UUID, git, tmp_path: Path
) -> None:
    """The request came in whole; the answer finds nobody."""
    git("clone", "-q", server.folder(repository), "work")
    (tmp_path / "work/by-hand/new").write_text("1")
    git("-C", "work", "add", "-A")
    git("-C", "work", "commit", "-qm", "Change")
    old, new = server.head(repository), git("-C", "work", "rev-parse", "HEAD").stdout.strip()
    packing = await asyncio.create_subprocess_exec(
        *["git", "-C", str(tmp_path / "work"), "pack-objects", "--revs", "--stdout", "-q"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    pack, _ = await packing.communicate(f"{new}\n^{old}\n".encode())
    command = f"{old} {new} refs/heads/main\0report-status side-band-64k".encode()
    body = pieces(b"%04x%b0000" % (len(command) + 4, command), pack)
    told: list[Pushed] = []

    async def on_pushed(pushed: Pushed) -> None:
        await asyncio.sleep(0)
        told.append(pushed)

    context = PushContext(on_pushed)
    answer = await GitHttp(server).rpc(repository, "git-receive-pack", body, media_type=PUSH, push=context)
    del answer
    await eventually(lambda: told == [Pushed(str(old), new)])
    assert server.head(repository) == new
    assert not list((server.root / "hooks").glob("receipt-*"))
