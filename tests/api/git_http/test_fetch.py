"""Fetching over HTTP with real git, in every protocol version, and the refusals that need none."""

import gzip
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from git_http_centre import Git, GitHttpCentre

from edgewright.adapters.git.http_protocol import decoded
from edgewright.ports.git_server import CommitMessage

BY_CENTRE = CommitMessage("Change", "edgewright")
FETCH = "application/x-git-upload-pack-request"


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_clone_has_the_bytes_that_were_committed(
    centre: GitHttpCentre, git: Git, tmp_path: Path, version: int
) -> None:
    _, url = centre.repository()
    git("-c", f"protocol.version={version}", "clone", "-q", url, "work")
    assert files(tmp_path / "work") == centre.content


@pytest.mark.parametrize("version", [0, 1, 2])
def test_fetch_brings_what_is_new_and_only_that(
    centre: GitHttpCentre, git: Git, tmp_path: Path, version: int
) -> None:
    repository, url = centre.repository()
    git("-c", f"protocol.version={version}", "clone", "-q", url, "work")
    for number in range(60):
        head = centre.server.head(repository)
        centre.server.commit(repository, {"edo/n": str(number).encode()}, BY_CENTRE, expected_head=head)
    git("-C", "work", "-c", f"protocol.version={version}", "pull", "-q")
    assert (tmp_path / "work/edo/n").read_bytes() == b"59"
    assert git("-C", "work", "rev-parse", "HEAD").stdout.strip() == centre.server.head(repository)
    git("-C", "work", "-c", f"protocol.version={version}", "pull", "-q")


@pytest.mark.parametrize("version", [0, 2])
def test_fetch_with_a_long_history_of_its_own_negotiates(centre: GitHttpCentre, git: Git, version: int) -> None:
    """Hundreds of commits that only the client has: several rounds, the later ones packed with gzip."""
    repository, url = centre.repository()
    git("clone", "-q", url, "work")
    lines = []
    for number in range(400):
        lines.append(f"commit refs/heads/main\ncommitter T <t@e> {1_700_000_000 + number} +0000\ndata 1\nx")
        lines += ["from refs/heads/main^0"] if number == 0 else []
    git("-C", "work", "fast-import", "--quiet", "--force", stdin="\n".join(lines) + "\n")
    head = centre.server.head(repository)
    new = centre.server.commit(repository, {"edo/new": b"1"}, BY_CENTRE, expected_head=head)
    git("-C", "work", "-c", f"protocol.version={version}", "fetch", "-q")
    assert git("-C", "work", "rev-parse", "origin/main").stdout.strip() == new


@pytest.mark.parametrize("version", [0, 2])
def test_shallow_clone_has_one_commit(centre: GitHttpCentre, git: Git, version: int) -> None:
    repository, url = centre.repository()
    head = centre.server.head(repository)
    centre.server.commit(repository, {"a": b"2"}, BY_CENTRE, expected_head=head)
    git("-c", f"protocol.version={version}", "clone", "-q", "--depth=1", url, "work")
    assert git("-C", "work", "rev-list", "--count", "HEAD").stdout.strip() == "1"


def test_clone_after_a_repack_is_the_same(centre: GitHttpCentre, git: Git, tmp_path: Path) -> None:
    repository, url = centre.repository()
    subprocess.run(["git", "--git-dir", centre.server.folder(repository), "gc", "-q"], check=True)
    git("clone", "-q", url, "work")
    assert files(tmp_path / "work") == centre.content


def test_empty_repository_can_be_cloned(centre: GitHttpCentre, git: Git, tmp_path: Path) -> None:
    _, url = centre.repository(populated=False)
    git("clone", "-q", url, "work")
    assert files(tmp_path / "work") == {}


def test_poll_sees_every_new_head_at_once(centre: GitHttpCentre) -> None:
    repository, url = centre.repository()
    for number in range(5):
        head = centre.server.head(repository)
        new = centre.server.commit(repository, {"n": str(number).encode()}, BY_CENTRE, expected_head=head)
        for _ in range(2):
            answer = httpx.get(f"{url}/info/refs", params={"service": "git-upload-pack"})
            assert answer.text.startswith("001e# service=git-upload-pack\n0000")
            assert f"{new} refs/heads/main\n" in answer.text
            assert answer.headers["content-type"] == "application/x-git-upload-pack-advertisement"
            assert "no-cache" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("version=2", 2),
        ("version=1", 1),
        ("version=0", 0),
        ("foo:version=2", 2),
        ("version=9", 0),
        ("version=2;x", 0),
        ("$(id)", 0),
    ],
)
def test_protocol_version_is_what_the_header_asks_for(centre: GitHttpCentre, header: str, version: int) -> None:
    _, url = centre.repository()
    parameters = {"service": "git-upload-pack"}
    text = httpx.get(f"{url}/info/refs", params=parameters, headers={"Git-Protocol": header}).text
    assert ("version 2\n" in text, "version 1\n" in text) == (version == 2, version == 1)
    assert text.startswith("000eversion 2\n" if version == 2 else "001e# service=")


def test_push_advertisement_ignores_protocol_version_two(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    parameters = {"service": "git-receive-pack"}
    text = httpx.get(f"{url}/info/refs", params=parameters, headers={"Git-Protocol": "version=2"}).text
    assert text.startswith("001f# service=git-receive-pack\n0000")
    assert "report-status" in text


def test_dumb_protocol_is_refused_with_a_sentence(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    answer = httpx.get(f"{url}/info/refs")
    assert (answer.status_code, answer.json()["code"]) == (403, "dumb_protocol")
    assert answer.json()["detail"] == "Only Git's smart HTTP protocol is served here, not the dumb one."


def test_unknown_service_is_refused(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    for answer in (
        httpx.get(f"{url}/info/refs", params={"service": "git-upload-archive"}),
        httpx.post(f"{url}/git-upload-archive"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "service_unknown")


def test_unknown_repository_is_not_found(centre: GitHttpCentre) -> None:
    url = f"{centre.url}/11111111-1111-4111-8111-111111111111"
    for answer in (
        httpx.get(f"{url}/info/refs", params={"service": "git-upload-pack"}),
        httpx.post(f"{url}/git-upload-pack", headers={"Content-Type": FETCH}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "repository_unknown")


def ls_refs() -> bytes:
    return b"0014command=ls-refs\n0001" + b"0009peel\n" + b"0000"


def test_gzip_body_is_understood(centre: GitHttpCentre) -> None:
    repository, url = centre.repository()
    headers = {"Content-Type": FETCH, "Git-Protocol": "version=2", "Content-Encoding": "gzip"}
    answer = httpx.post(f"{url}/git-upload-pack", content=gzip.compress(ls_refs()), headers=headers)
    assert answer.status_code == 200
    assert f"{centre.server.head(repository)} refs/heads/main\n" in answer.text
    assert answer.headers["content-type"] == "application/x-git-upload-pack-result"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"no gzip"),
        ("gzip", gzip.compress(ls_refs())[:-6]),
        ("gzip", gzip.compress(ls_refs()) + b"more"),
        ("br", ls_refs()),
    ],
    ids=["no gzip", "cut short", "goes on", "unknown encoding"],
)
def test_body_that_is_not_what_it_says_is_refused(centre: GitHttpCentre, encoding: str, body: bytes) -> None:
    _, url = centre.repository()
    headers = {"Content-Type": FETCH, "Git-Protocol": "version=2", "Content-Encoding": encoding}
    answer = httpx.post(f"{url}/git-upload-pack", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "body_encoding_invalid")


def test_gzip_bomb_is_refused_at_the_limit(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    bomb = gzip.compress(b"0032want 1111111111111111111111111111111111111111\n" * 1_000_000)
    assert len(bomb) < 500_000
    headers = {"Content-Type": FETCH, "Content-Encoding": "gzip"}
    answer = httpx.post(f"{url}/git-upload-pack", content=bomb, headers=headers, timeout=30)
    assert answer.status_code == 413


def test_request_that_git_does_not_understand_is_refused(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    answer = httpx.post(f"{url}/git-upload-pack", content=b"zzzz", headers={"Content-Type": FETCH})
    assert (answer.status_code, answer.json()["code"]) == (400, "git_request_invalid")


def test_form_of_a_web_page_is_refused(centre: GitHttpCentre) -> None:
    _, url = centre.repository()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(f"{url}/git-upload-pack", content=ls_refs(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "content_type_unsupported")


async def test_packed_body_is_unpacked_in_bounded_pieces() -> None:
    async def body() -> AsyncIterator[bytes]:
        packed = gzip.compress(b"\0" * 5_000_000)
        for start in range(0, len(packed), 100):
            yield packed[start : start + 100]

    sizes = [len(piece) async for piece in decoded(body(), "gzip")]
    assert sum(sizes) == 5_000_000
    assert max(sizes) <= 65536


def test_partial_clone_fetches_contents_when_it_needs_them(centre: GitHttpCentre, git: Git, tmp_path: Path) -> None:
    _, url = centre.repository()
    git("clone", "-q", "--no-checkout", "--filter=blob:none", url, "partial")
    missing = git("-C", "partial", "rev-list", "--objects", "--missing=print", "main").stdout
    assert missing.count("?") == 4, "no content came along"
    git("-C", "partial", "checkout", "-q", "main")
    assert (tmp_path / "partial/README.md").read_bytes() == b"# A driving repository\n"


@pytest.mark.parametrize("wanted", ["tree:0", "blob:limit=1k", "sparse:oid=main:README.md"])
def test_filters_that_cost_more_than_they_save_are_refused(centre: GitHttpCentre, git: Git, wanted: str) -> None:
    _, url = centre.repository()
    done = git("clone", "-q", f"--filter={wanted}", url, "partial", ok=False)
    assert done.returncode != 0
