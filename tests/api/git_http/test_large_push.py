"""Pushes that are small on the wire and large where they are unpacked or checked out."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from delta_bomb import delta_bomb, push_body, top_rows
from git_http_centre import Git, GitHttpCentre, Work

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.memory_limit import PUSH_MEMORY

MIB = 1024 * 1024


def push(url: str, old: str, new: str, content: bytes, *, asking_for: str = "report-status") -> httpx.Response:
    body = push_body(old, new, content, asking_for)
    headers = {"Content-Type": "application/x-git-receive-pack-request"}
    return httpx.post(f"{url}/git-receive-pack", content=body, headers=headers, timeout=120, trust_env=False)


SERVES_ONE_PUSH = """
import asyncio, resource, sys
from pathlib import Path
from uuid import UUID
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.git.http_push import PushContext
from edgewright.adapters.git.turns import Guest

async def pieces():
    yield sys.stdin.buffer.read()

async def on_pushed(pushed):
    raise AssertionError("it was taken")

async def serve(root, repository):
    answer = await GitHttp(BareGitServer(Path(root))).rpc(
        UUID(repository), "git-receive-pack", pieces(), guest=Guest("somebody", is_edge=False),
        media_type="application/x-git-receive-pack-request", push=PushContext(on_pushed, limit=2**20),
    )
    return b"".join([piece async for piece in answer.body])

answer = asyncio.run(serve(*sys.argv[1:]))
assert b"ok refs/heads/main" not in answer and b"ng refs/heads/main" in answer, answer
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""
"""In a process of its own: what is measured is the largest child that a process ever had, also in earlier tests."""


def most_memory_of_git(server: BareGitServer, repository: UUID, body: bytes) -> int:
    """Bytes that the largest git held in memory while it took a push."""
    told = subprocess.run(
        [sys.executable, "-P", "-c", SERVES_ONE_PUSH, server.root, str(repository)],
        input=body,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert told.returncode == 0, told.stderr.decode()
    return int(told.stdout)


def rows_of(git: Git, folder: Path) -> dict[str, bytes]:
    return top_rows(git(f"--git-dir={folder}", "ls-tree", "main").stdout)


@pytest.mark.parametrize("blocks", [20 * 16, 400 * 16])
def test_delta_that_claims_far_more_than_it_brings_is_refused_in_bounded_memory(
    centre: GitHttpCentre, git: Git, blocks: int
) -> None:
    """20 MiB are more than a file may have, and 400 MiB more than git may allocate."""
    repository, url = centre.repository()
    head = centre.head(repository)
    new, content = delta_bomb(head, rows_of(git, centre.server.folder(repository)), blocks)
    assert len(content) < 16 * 1024
    answer = push(url, head, new, content)
    assert answer.status_code == 200
    assert b"ok refs/heads/main" not in answer.content
    assert centre.server.head(repository) == head
    assert centre.pushes == []
    assert most_memory_of_git(centre.server, repository, push_body(head, new, content)) <= PUSH_MEMORY


@pytest.mark.parametrize("asking_for", ["report-status", "report-status side-band-64k"])
def test_push_that_hits_the_memory_limit_says_what_happened_and_is_counted(
    centre: GitHttpCentre, git: Git, asking_for: str
) -> None:
    repository, url = centre.repository()
    head = centre.head(repository)
    new, content = delta_bomb(head, rows_of(git, centre.server.folder(repository)), 400 * 16)
    answer = push(url, head, new, content, asking_for=asking_for)
    assert b"The push needs more memory to unpack than the centre gives to it (256 MiB): push less" in answer.content
    assert centre.starved == ["push"]


def test_push_that_is_too_large_for_a_file_is_not_blamed_on_memory(centre: GitHttpCentre, git: Git) -> None:
    repository, url = centre.repository()
    head = centre.head(repository)
    new, content = delta_bomb(head, rows_of(git, centre.server.folder(repository)), 20 * 16)
    assert b"more memory" not in push(url, head, new, content).content
    assert centre.starved == []


def test_delta_within_the_limits_is_accepted(centre: GitHttpCentre, git: Git) -> None:
    repository, url = centre.repository()
    head = centre.head(repository)
    new, content = delta_bomb(head, rows_of(git, centre.server.folder(repository)), 16)
    assert b"ok refs/heads/main" in push(url, head, new, content).content
    assert centre.server.head(repository) == new


def replace_by_hand(work: Work, by_hand: str) -> None:
    """Commits the head's tree with another ``by-hand``."""
    rows = [row for row in work.git("ls-tree", "HEAD").stdout.splitlines() if not row.endswith("\tby-hand")]
    tree = work.git("mktree", stdin="\n".join([*rows, f"040000 tree {by_hand}\tby-hand"]) + "\n").stdout.strip()
    commit = work.git("commit-tree", tree, "-p", "HEAD", "-m", "x").stdout.strip()
    work.git("update-ref", "refs/heads/main", commit)


def folder_of(work: Work, names: Sequence[str], blob: str) -> str:
    rows = "".join(f"100644 blob {blob}\t{name}\n" for name in names)
    return str(work.git("mktree", stdin=rows).stdout.strip())


def test_copies_of_a_file_count_as_often_as_they_are_checked_out(centre: GitHttpCentre, work: Work) -> None:
    (work.path / "by-hand/mebibyte").write_bytes(bytes(MIB))
    blob = work.git("hash-object", "-w", "by-hand/mebibyte").stdout.strip()
    replace_by_hand(work, folder_of(work, [f"copy{number}" for number in range(64)], blob))
    work.git("push", "-q", "origin", "main")
    centre.pushes.clear()
    replace_by_hand(work, folder_of(work, [f"copy{number}" for number in range(65)], blob))
    assert work.refusal() == (
        "by-hand/ would have 65 MiB when it is checked out, more than 64 MiB: remove files, and keep large ones "
        "elsewhere."
    )


def test_files_of_several_pushes_are_counted_together(centre: GitHttpCentre, work: Work) -> None:
    blob = work.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    half = folder_of(work, [f"f{number}" for number in range(6000)], blob)
    replace_by_hand(work, work.git("mktree", stdin=f"040000 tree {half}\ta\n").stdout.strip())
    work.git("push", "-q", "origin", "main")
    centre.pushes.clear()
    rows = f"040000 tree {half}\ta\n040000 tree {half}\tb\n"
    replace_by_hand(work, work.git("mktree", stdin=rows).stdout.strip())
    assert work.refusal() == "by-hand/ would have 12000 files, more than 10000: push fewer."


def test_folders_in_each_other_are_bounded(work: Work) -> None:
    blob = work.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    folder = folder_of(work, ["f"], blob)
    for _ in range(64):
        deepest, folder = folder, work.git("mktree", stdin=f"040000 tree {folder}\td\n").stdout.strip()
    replace_by_hand(work, folder)
    assert work.refusal() == "by-hand/ would have more than 64 folders in each other: push fewer."
    work.git("reset", "-q", "origin/main")
    replace_by_hand(work, deepest)
    work.git("push", "-q", "origin", "main")


def test_large_file_is_refused_although_a_later_commit_removes_it(work: Work) -> None:
    (work.path / "by-hand/large").write_bytes(bytes(17 * MIB))
    work.commit_all()
    (work.path / "by-hand/large").unlink()
    work.commit_all()
    assert work.refusal() == "The push has a file larger than 16 MiB: keep large files elsewhere."
