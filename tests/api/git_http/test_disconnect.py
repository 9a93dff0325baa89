"""What is left when a client goes away: no git process, no half-written objects, and word of what was done."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest
from git_http_centre import Git, GitHttpCentre

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitAnswer, GitHttp
from edgewright.adapters.git.http_push import PushContext, Pushed
from edgewright.adapters.git.turns import MIB, Guest, KeepLimits
from edgewright.errors import Busy
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


def wait_until(condition: Callable[[], bool], *, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


async def eventually(condition: Callable[[], bool], *, seconds: float = 15.0) -> None:
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


def test_client_that_leaves_during_its_push_leaves_nothing_behind(centre: GitHttpCentre) -> None:
    repository, url = centre.repository()
    head = centre.server.head(repository)
    command = f"{head} {'1' * 40} refs/heads/main\0report-status side-band-64k".encode()
    body = b"%04x%b0000PACK\0\0\0\2\0\0\1\0" % (len(command) + 4, command)
    headers = {"Content-Type": PUSH, "Content-Length": "600000"}
    connection = request(url, f"/{repository}/git-receive-pack", headers, body + bytes(500_000))
    wait_until(lambda: centre.engine.room.taken > 0)
    assert not git_processes(centre.server.root), "git begins when the push is there"
    connection.close()
    wait_until(lambda: not centre.engine.room.taken)
    assert not git_processes(centre.server.root)
    assert centre.server.head(repository) == head
    assert centre.pushes == []
    assert not list((centre.server.folder(repository) / "objects").glob("tmp_objdir*"))


def test_client_that_leaves_during_its_clone_ends_git(centre: GitHttpCentre) -> None:
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


SMALL = KeepLimits(of_one_answer=MIB)
SOMEBODY = Guest("somebody", is_edge=True)


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


async def fetched(engine: GitHttp, repository: UUID, head: str | None, guest: Guest = SOMEBODY) -> GitAnswer:
    return await engine.rpc(repository, "git-upload-pack", pieces(want(head)), guest=guest, media_type=FETCH)


async def test_answer_that_nobody_reads_ends_git(server: BareGitServer, repository: UUID) -> None:
    answer = await fetched(GitHttp(server, keep=SMALL), repository, server.head(repository))
    assert git_processes(server.root)
    del answer
    await eventually(lambda: not git_processes(server.root))


async def test_answer_that_nobody_reads_leaves_no_room_taken(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server)
    answer = await fetched(engine, repository, server.head(repository))
    await eventually(lambda: engine.room.taken > 4 * MIB and not git_processes(server.root))
    del answer
    await eventually(lambda: not engine.room.taken)


async def test_request_that_is_cancelled_leaves_nothing(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server)
    body = pieces(*[bytes(65_000)] * 10, then=asyncio.Event())
    coming = engine.rpc(repository, "git-upload-pack", body, guest=SOMEBODY, media_type=FETCH)
    running = asyncio.create_task(coming)
    await eventually(lambda: engine.room.taken > 0)
    assert not git_processes(server.root)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not engine.room.taken


async def test_exchange_that_takes_too_long_is_ended(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, deadline=0.3, keep=SMALL)
    answer = await fetched(engine, repository, server.head(repository))
    await eventually(lambda: not git_processes(server.root))
    size = sum([len(piece) async for piece in answer.body])
    assert size < 5_000_000


async def test_who_takes_an_answer_slowly_holds_no_turn(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, processes=1, patience=20)
    head = server.head(repository)
    slow = await fetched(engine, repository, head)
    again = await fetched(engine, repository, head, Guest("another", is_edge=True))
    size = sum([len(piece) async for piece in again.body])
    assert sum([len(piece) async for piece in slow.body]) == size > 5_000_000
    assert not engine.room.taken


async def test_requests_wait_for_their_turn_and_no_longer(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, processes=1, patience=0.2, keep=SMALL)
    head = server.head(repository)
    answer = await fetched(engine, repository, head)
    with pytest.raises(Busy) as refusal:
        await fetched(engine, repository, head)
    assert refusal.value.code == "git_busy"
    first = b"".join([piece async for piece in answer.body])
    again = await fetched(engine, repository, head)
    assert len(b"".join([piece async for piece in again.body])) == len(first) > 5_000_000


async def test_who_is_too_slow_for_a_large_answer_loses_it(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, processes=1, keep=SMALL, pace_seconds=0.3)
    head = server.head(repository)
    slow = await fetched(engine, repository, head)
    again = await fetched(engine, repository, head)
    assert len(b"".join([piece async for piece in again.body])) > 5_000_000
    assert len(b"".join([piece async for piece in slow.body])) < 5_000_000


async def test_operators_leave_half_of_the_turns_to_edges(server: BareGitServer, repository: UUID) -> None:
    """Each operator takes its turn for good: its answer is too large to be kept, and nobody reads it."""
    engine = GitHttp(server, processes=4, patience=0.2, keep=KeepLimits(of_one_answer=MIB, of_operators=0))
    head = server.head(repository)
    held = [await fetched(engine, repository, head, Guest(number, is_edge=False)) for number in range(2)]
    with pytest.raises(Busy):
        await fetched(engine, repository, head, Guest("one more", is_edge=False))
    for number in range(2):
        answer = await fetched(engine, repository, head, Guest(uuid4(), is_edge=True))
        assert len(b"".join([piece async for piece in answer.body])) > 5_000_000, number
    del held


async def test_full_disk_keeps_nobody_from_a_large_answer(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("edgewright.adapters.git.kept_bytes.tempfile.TemporaryFile", full)
    answer = await fetched(GitHttp(server), repository, server.head(repository))
    assert len(b"".join([piece async for piece in answer.body])) > 5_000_000


async def test_push_is_told_of_even_when_its_client_has_left(
    server: BareGitServer, repository: UUID, git: Git, tmp_path: Path
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
    engine = GitHttp(server)
    answer = await engine.rpc(repository, "git-receive-pack", body, guest=SOMEBODY, media_type=PUSH, push=context)
    del answer
    await eventually(lambda: told == [Pushed(str(old), new)])
    assert server.head(repository) == new
    assert not list((server.root / "hooks").glob("receipt-*"))
