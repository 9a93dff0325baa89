"""A writer that is killed while it makes a pack or moves the ref holds nobody up, whatever it had done by then."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from edgewright.adapters.git.bare import BareGitServer
from edgewright.ports.git_server import CommitMessage

DIES = """
import os, signal, sys
from pathlib import Path
from uuid import UUID
from edgewright.adapters.git.bare import BareGitServer
from edgewright.ports.git_server import CommitMessage

root, repository, owner, name, before = sys.argv[1:]
modules = {"os": os, "Path": Path}
effect = getattr(modules[owner], name)

def die(*arguments, **named):
    if name == "unlink" and not str(arguments[0]).endswith("edgewright.draft"):
        return effect(*arguments, **named)
    if name == "unlink" and not arguments[0].exists():
        return effect(*arguments, **named)
    if name == "rename" and not str(arguments[1]).endswith(before):
        return effect(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)

server = BareGitServer(Path(root))
head = server.head(UUID(repository))
setattr(modules[owner], name, die)
server.commit(UUID(repository), {"a": b"2"}, CommitMessage(subject="dies", actor="test"), expected_head=head)
"""


@pytest.mark.parametrize(
    ("effect", "moved"), [(("os", "link"), False), (("Path", "rename"), False), (("Path", "unlink"), True)], ids=str
)
def test_the_next_commit_goes_on_at_once(tmp_path: Path, effect: tuple[str, str], moved: bool) -> None:
    repository = UUID(int=7)
    server = BareGitServer(tmp_path, patience=0.5)
    server.create_repository(repository)
    first = server.commit(repository, {"a": b"1"}, CommitMessage(subject="first", actor="test"), expected_head=None)

    command = [sys.executable, "-c", DIES, str(tmp_path), str(repository), *effect, "main"]
    died = subprocess.run(command, env=dict(os.environ), capture_output=True, timeout=60, check=False)
    assert died.returncode == -9, died.stderr.decode()

    head = server.head(repository)
    assert (head != first) is moved
    second = server.commit(repository, {"a": b"3"}, CommitMessage(subject="next", actor="test"), expected_head=head)
    assert server.head(repository) == second
    left = {path.name for path in server.folder(repository).rglob("*") if path.is_file()}
    assert not left & {"edgewright.draft", "main.lock"}


@pytest.mark.parametrize(
    ("effect", "before", "moved"),
    [
        (("os", "fsync"), "", False),
        (("Path", "rename"), ".pack", False),
        (("Path", "rename"), ".idx", False),
        (("os", "link"), "", False),
        (("Path", "rename"), "main", False),
        (("Path", "unlink"), "", True),
    ],
    ids=str,
)
def test_a_first_commit_is_there_whole_or_not_at_all(
    tmp_path: Path, effect: tuple[str, str], before: str, moved: bool
) -> None:
    repository = UUID(int=7)
    server = BareGitServer(tmp_path, patience=0.5)
    server.create_repository(repository)
    folder = server.folder(repository)

    command = [sys.executable, "-c", DIES, str(tmp_path), str(repository), *effect, before]
    died = subprocess.run(command, env=dict(os.environ), capture_output=True, timeout=60, check=False)
    assert died.returncode == -9, died.stderr.decode()

    head = server.head(repository)
    assert (head is not None) is moved
    message = CommitMessage(subject="dies", actor="test")
    second = server.commit(repository, {"a": b"2"}, message, expected_head=head)
    assert server.read(repository, "a", at=second) == b"2"
    assert len(server.log(repository, limit=9)) == 1
    subprocess.run(["git", f"--git-dir={folder}", "fsck", "--strict"], check=True, timeout=60)
