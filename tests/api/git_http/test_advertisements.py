"""What is told of a repository without asking git is, to the byte, what git would have told."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from edgewright.adapters.git.advertisements import Advertisements
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.http_protocol import Service
from edgewright.ports.git_server import CommitMessage

MESSAGE = CommitMessage("Change", "edgewright")
PROTOCOLS = ["", "version=1", "version=2"]
Shape = Callable[[BareGitServer, UUID], None]


class Git:
    """Git itself; ``asked`` counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def tell(self, folder: Path, service: Service, protocol: str) -> bytes:
        self.asked += 1
        return told_by_git(folder, service, protocol)


def told_by_git(folder: Path, service: Service, protocol: str) -> bytes:
    command = ["git", service.removeprefix("git-"), "--stateless-rpc", "--advertise-refs", str(folder)]
    environment = git_environment({"GIT_PROTOCOL": protocol} if protocol else None)
    return subprocess.run(command, env=environment, capture_output=True, check=True, timeout=30).stdout


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path)


def git(server: BareGitServer, repository: UUID, *arguments: str) -> None:
    subprocess.run(["git", "--git-dir", server.folder(repository), *arguments], check=True, timeout=30)


def plain(server: BareGitServer, repository: UUID) -> None:
    """As every driving repository is."""


def packed(server: BareGitServer, repository: UUID) -> None:
    git(server, repository, "pack-refs", "--all")


def packed_and_moved(server: BareGitServer, repository: UUID) -> None:
    packed(server, repository)
    server.commit(repository, {"b": b"2"}, MESSAGE, expected_head=server.head(repository))


def branched(server: BareGitServer, repository: UUID) -> None:
    git(server, repository, "update-ref", "refs/heads/other", "refs/heads/main")


def branched_and_packed(server: BareGitServer, repository: UUID) -> None:
    branched(server, repository)
    packed(server, repository)


def tagged(server: BareGitServer, repository: UUID) -> None:
    tag = ("-c", "user.name=t", "-c", "user.email=t@localhost", "tag", "--annotate", "--message", "t", "v1", "main")
    git(server, repository, *tag)
    packed(server, repository)


def detached(server: BareGitServer, repository: UUID) -> None:
    (server.folder(repository) / "HEAD").write_text(f"{server.head(repository)}\n")


def with_other_settings(server: BareGitServer, repository: UUID) -> None:
    git(server, repository, "config", "uploadpack.allowFilter", "true")


def populated(server: BareGitServer, content: str = "1") -> UUID:
    repository = uuid4()
    server.create_repository(repository)
    server.commit(repository, {"a": content.encode()}, MESSAGE, expected_head=None)
    return repository


SHAPES: list[Shape] = [
    plain,
    packed,
    packed_and_moved,
    branched,
    branched_and_packed,
    tagged,
    detached,
    with_other_settings,
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("shape", SHAPES)
async def test_whatever_a_repository_is_like_git_would_tell_the_same(
    server: BareGitServer, shape: Shape, protocol: str
) -> None:
    advertisements = Advertisements(Git().tell)
    first, second = populated(server, "first"), populated(server, "second")
    shape(server, second)
    for repository in (first, second, first):
        folder = server.folder(repository)
        told = await advertisements.of(repository, folder, "git-upload-pack", protocol)
        assert told == told_by_git(folder, "git-upload-pack", protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_git_is_asked_once_for_all_driving_repositories(server: BareGitServer, protocol: str) -> None:
    source = Git()
    advertisements = Advertisements(source.tell)
    for number in range(5):
        repository = populated(server, str(number))
        for _ in range(2):
            folder, head = server.folder(repository), server.head(repository)
            told = await advertisements.of(repository, folder, "git-upload-pack", protocol)
            assert (f"{head} refs/heads/main\n".encode() in told) == (protocol != "version=2")
            server.commit(repository, {"b": b"2"}, MESSAGE, expected_head=head)
    assert source.asked == 1


async def test_an_empty_repository_is_asked_for(server: BareGitServer) -> None:
    source = Git()
    advertisements = Advertisements(source.tell)
    await advertisements.of((one := populated(server)), server.folder(one), "git-upload-pack", "")
    server.create_repository(empty := uuid4())
    told = await advertisements.of(empty, server.folder(empty), "git-upload-pack", "")
    assert (source.asked, told) == (2, told_by_git(server.folder(empty), "git-upload-pack", ""))


async def test_what_pushes_are_told_is_asked_for(server: BareGitServer) -> None:
    source = Git()
    advertisements = Advertisements(source.tell)
    for repository in (populated(server, "1"), populated(server, "2")):
        folder = server.folder(repository)
        told = await advertisements.of(repository, folder, "git-receive-pack", "")
        assert told == told_by_git(folder, "git-receive-pack", "")
    assert source.asked == 2


async def test_nothing_is_learned_of_a_branch_that_moves_meanwhile(server: BareGitServer) -> None:
    async def moves_first(folder: Path, service: Service, protocol: str) -> bytes:
        server.commit(one, {"b": b"2"}, MESSAGE, expected_head=server.head(one))
        return told_by_git(folder, service, protocol)

    one, other = populated(server, "1"), populated(server, "2")
    advertisements = Advertisements(moves_first)
    await advertisements.of(one, server.folder(one), "git-upload-pack", "")
    told = await advertisements.of(other, server.folder(other), "git-upload-pack", "")
    assert told == told_by_git(server.folder(other), "git-upload-pack", "")
