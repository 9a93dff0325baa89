"""Several processes write into one repository: what several gateways and workers on one Git storage rely on."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from git import Repo

from edgewright.adapters.git.bare import BareGitServer

PROCESSES = 3
COMMITS = 25

WRITER = """
import sys
from pathlib import Path
from uuid import UUID
from edgewright.adapters.git.bare import BareGitServer
from edgewright.ports.git_server import CommitMessage, HeadMoved
root, repository, name, commits = Path(sys.argv[1]), UUID(sys.argv[2]), sys.argv[3], int(sys.argv[4])
server = BareGitServer(root, patience=60.0, loose_limit=100)
sys.stdin.readline()
for number in range(commits):
    message = CommitMessage(f"{name} {number}", "token:test")
    while True:
        head = server.head(repository)
        try:
            server.commit(repository, {f"{name}/{number}": name.encode()}, message, expected_head=head)
            break
        except HeadMoved:
            continue
    if number % 10 == 5:
        server.upkeep(repository)
"""


def test_nothing_is_lost_when_processes_commit_and_repack_at_once(tmp_path: Path) -> None:
    server, repository = BareGitServer(tmp_path), uuid4()
    server.create_repository(repository)
    arguments = [sys.executable, "-c", WRITER, str(tmp_path), str(repository)]
    writers = [
        subprocess.Popen([*arguments, f"writer-{each}", str(COMMITS)], stdin=subprocess.PIPE)
        for each in range(PROCESSES)
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    assert [writer.wait(110) for writer in writers] == [0] * PROCESSES
    repo = Repo(server.folder(repository))
    try:
        subjects = [str(commit.summary) for commit in repo.iter_commits("main")]
        repo.git.fsck("--strict")
    finally:
        repo.close()
    expected = {(f"writer-{each}", number) for each in range(PROCESSES) for number in range(COMMITS)}
    assert sorted(subjects) == sorted(f"{name} {number}" for name, number in expected)
    head = server.head(repository)
    assert head
    assert set(server.list(repository, "", at=head)) == {f"{name}/{number}" for name, number in expected}
