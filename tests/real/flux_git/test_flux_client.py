"""Flux's own Git client, and go-git below it, against the gateway: what an edge does at each interval."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from components import component
from live_gateway import LiveGateway, Population, live_gateway, populate

from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test may build the client

REVISION = re.compile(r"main@sha1:([0-9a-f]{40})")


@dataclass(frozen=True)
class Client:
    """The program, with one user's password."""

    program: Path
    user: str
    secret: str

    def try_(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments],
            env={"PATH": os.environ["PATH"], "GIT_USER": self.user, "GIT_SECRET": self.secret},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def __call__(self, *arguments: str | Path) -> list[str]:
        done = self.try_(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    with live_gateway(tmp_path_factory.mktemp("gateway")) as live:
        yield live


@pytest.fixture(scope="module")
def people(live: LiveGateway) -> Population:
    return populate(live)


@pytest.fixture
def flux(people: Population) -> Client:
    return Client(component("git-client"), str(people.active), people.edge.flux)


@pytest.fixture
def driving(live: LiveGateway, people: Population) -> str:
    return f"{live.url}/uuid/{people.active}"


def commit(live: LiveGateway, repository: UUID, path: str, content: bytes) -> str:
    message = CommitMessage(subject=f"Change {path}", actor="centre")
    git = live.centre.git
    return git.commit(repository, {path: content}, message, expected_head=git.head(repository))


def test_a_checkout_is_shallow_has_one_branch_and_is_left_out_while_nothing_is_new(
    live: LiveGateway, people: Population, flux: Client, driving: str, tmp_path: Path
) -> None:
    for count in range(3):
        head = commit(live, people.active, "by-hand/app.yaml", b"kind: Count%d\n" % count)
    revision, news = flux("checkout", driving, tmp_path / "first")
    assert news == "new"
    [found] = REVISION.findall(revision)
    assert found == head
    assert (tmp_path / "first" / "by-hand" / "app.yaml").read_bytes() == b"kind: Count2\n"
    assert (tmp_path / "first" / ".git" / "shallow").read_text().split() == [head]

    assert flux("checkout", driving, tmp_path / "second", revision) == [revision, "same"]
    assert not (tmp_path / "second" / "by-hand").exists()

    head = commit(live, people.active, "by-hand/app.yaml", b"kind: Other\n")
    after, news = flux("checkout", driving, tmp_path / "third", revision)
    assert (REVISION.findall(after), news) == ([head], "new")
    assert (tmp_path / "third" / "by-hand" / "app.yaml").read_bytes() == b"kind: Other\n"


def test_a_fetch_brings_only_what_is_new(
    live: LiveGateway, people: Population, flux: Client, driving: str, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    commit(live, people.active, "by-hand/large.yaml", os.urandom(300_000).hex().encode())
    _, news, before = flux("fetch", driving, mirror)
    assert news == "new"
    size = packed(mirror)
    assert flux("fetch", driving, mirror)[1:] == ["same", before]
    head = commit(live, people.active, "by-hand/small.yaml", b"kind: Small\n")
    assert flux("fetch", driving, mirror) == [head, "new", str(int(before) + 4)]  # commit, two trees, blob
    assert size > 300_000
    assert packed(mirror) - size < 10_000


def packed(mirror: Path) -> int:
    """Bytes of all objects that have arrived."""
    return sum(file.stat().st_size for file in (mirror / "objects").rglob("*") if file.is_file())


def test_every_edge_reads_the_shared_charts(live: LiveGateway, flux: Client, tmp_path: Path) -> None:
    for path in (f"uuid/{REPOSITORY_HELM_CHARTS}", "git/shared/helm-charts"):
        flux("checkout", f"{live.url}/{path}", tmp_path / path)
        assert (tmp_path / path / "chart.yaml").is_file()


def test_a_wrong_password_is_called_one_and_is_not_repeated(flux: Client, driving: str, tmp_path: Path) -> None:
    guessed = "ewf_" + "0" * 64
    for verb in ("checkout", "fetch"):
        done = Client(flux.program, flux.user, guessed).try_(verb, driving, tmp_path / verb)
        assert done.returncode == 1
        assert "authentication required" in done.stderr
        assert guessed not in done.stdout + done.stderr


def test_another_clusters_repository_is_refused_to_its_face(
    live: LiveGateway, people: Population, flux: Client, tmp_path: Path
) -> None:
    for verb in ("checkout", "fetch"):
        done = flux.try_(verb, f"{live.url}/uuid/{people.other}", tmp_path / verb)
        assert done.returncode == 1
        assert "authorization failed" in done.stderr or "not found" in done.stderr
        assert not (tmp_path / verb / "by-hand").exists()
