"""A writer that is killed while it moves the ref holds nobody up, whatever it had done by then."""

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

root, repository, owner, name = sys.argv[1:]
modules = {"os": os, "Path": Path}
effect = getattr(modules[owner], name)

def die(*arguments, **named):
    if name == "unlink" and not str(arguments[0]).endswith("edgewright.draft"):
        return effect(*arguments, **named)
    if name == "unlink" and not arguments[0].exists():
        return effect(*arguments, **named)
    if name == "rename" and not str(arguments[0]).endswith("main.lock"):
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

    command = [sys.executable, "-c", DIES, str(tmp_path), str(repository), *effect]
    died = subprocess.run(command, env=dict(os.environ), capture_output=True, timeout=60, check=False)
    assert died.returncode == -9, died.stderr.decode()

    head = server.head(repository)
    assert (head != first) is moved
    second = server.commit(repository, {"a": b"3"}, CommitMessage(subject="next", actor="test"), expected_head=head)
    assert server.head(repository) == second
    left = {path.name for path in server.folder(repository).rglob("*") if path.is_file()}
    assert not left & {"edgewright.draft", "main.lock"}
