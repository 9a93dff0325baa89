"""Each git that serves somebody runs under a memory limit; one that serves an operator runs behind all else."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from edgewright.adapters.git import http_backend
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.git.http_exchange import BEHIND
from edgewright.adapters.git.http_push import PushContext, Pushed
from edgewright.adapters.git.memory_limit import FETCH_MEMORY, MIB
from edgewright.adapters.git.turns import Guest, KeepLimits
from edgewright.ports.git_server import CommitMessage

SOMEBODY = Guest("somebody", is_edge=True)
OPERATOR = Guest("token", is_edge=False)


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "git")


@pytest.fixture
def repository(server: BareGitServer) -> UUID:
    """With more content than is kept of one answer."""
    name = uuid4()
    server.create_repository(name)
    files = {f"by-hand/{number}": os.urandom(500_000) for number in range(10)}
    server.commit(name, files, CommitMessage("Populate", "edgewright"), expected_head=None)
    return name


def serving(root: Path) -> list[psutil.Process]:
    """Processes of git that serve a repository below ``root``."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if {"upload-pack", str(root)} <= set(_words(child))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return [*process.cmdline(), *(str(Path(word).parent) for word in process.cmdline())]
    except psutil.NoSuchProcess:
        return []


async def test_a_git_that_serves_a_fetch_runs_under_the_limit(server: BareGitServer, repository: UUID) -> None:
    engine = GitHttp(server, processes=1, keep=KeepLimits(of_one_answer=MIB))
    head = server.head(repository) or ""

    async def wants() -> AsyncIterator[bytes]:
        yield b"0032want " + head.encode() + b"\n00000009done\n"

    answer = await engine.rpc(
        repository,
        "git-upload-pack",
        wants(),
        guest=SOMEBODY,
        media_type="application/x-git-upload-pack-request",
    )
    # Nobody reads the answer yet, so git waits with it.
    found = serving(server.root)
    assert found != []
    assert {process.rlimit(resource.RLIMIT_DATA) for process in found} == {(FETCH_MEMORY, FETCH_MEMORY)}
    assert {process.nice() for process in found} == {psutil.Process().nice()}, "edges come before operators"
    assert len(b"".join([piece async for piece in answer.body])) > 5_000_000


async def test_a_git_that_advertises_runs_under_the_limit(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first command waits until the request has ended. Then git, which is the parent, has got its limit.
    limits = "!f() { cat; cat /proc/$PPID/limits; }; f"
    monkeypatch.setattr(http_backend, "command", lambda _service: ["-c", f"alias.limits={limits}", "limits"])
    answer = await asyncio.wait_for(GitHttp(server).info_refs(repository, "git-upload-pack", guest=SOMEBODY), 60)
    (line,) = (line for line in answer.body.decode().splitlines() if line.startswith("Max data size"))
    assert line.split()[3:5] == [str(FETCH_MEMORY), str(FETCH_MEMORY)]


@pytest.mark.parametrize(("guest", "behind"), [(SOMEBODY, 0), (OPERATOR, BEHIND)])
async def test_git_gives_an_operator_what_the_processor_has_left(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch, guest: Guest, behind: int
) -> None:
    monkeypatch.setattr(http_backend, "command", lambda _service: ["-c", "alias.behind=!cat; nice #", "behind"])
    answer = await asyncio.wait_for(GitHttp(server).info_refs(repository, "git-upload-pack", guest=guest), 60)
    assert answer.body.decode().splitlines()[-1].endswith(str(min(19, psutil.Process().nice() + behind)))


async def test_a_push_runs_behind_all_else(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_backend, "command", lambda _service: ["-c", "alias.behind=!cat >&2; nice #", "behind"])

    async def on_pushed(_pushed: Pushed) -> None:
        raise AssertionError("nothing was pushed")

    async def flush() -> AsyncIterator[bytes]:
        yield b"0000"

    answer = await GitHttp(server).rpc(
        repository,
        "git-receive-pack",
        flush(),
        guest=OPERATOR,
        media_type="application/x-git-receive-pack-request",
        push=PushContext(on_pushed),
    )
    told = b"".join([piece async for piece in answer.body])
    assert told.decode().strip() == str(min(19, psutil.Process().nice() + BEHIND))
