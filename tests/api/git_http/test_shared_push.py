"""Pushing to a repository that is people's own: any path, from the first commit on, and the limits of every push."""

import os
import subprocess
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from delta_bomb import delta_bomb, push_body, top_rows
from git_http_centre import Git, GitHttpCentre, Work

from edgewright.adapters.git.http_push import ANY_PATH
from edgewright.adapters.git.memory_limit import MIB
from edgewright.adapters.git.pre_receive import MAX_CHANGED


@pytest.fixture(autouse=True)
def anywhere(centre: GitHttpCentre) -> None:
    centre.folder = ANY_PATH


class Begun:
    """A new repository on both sides."""

    def __init__(self, centre: GitHttpCentre, git: Git, path: Path) -> None:
        self.id: UUID
        self.id, self.url = centre.repository(populated=False)
        self.path = path
        self._git = git
        git("init", "-q", path)

    def git(self, *arguments: str | Path, ok: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self._git("-C", self.path, *arguments, ok=ok, stdin=stdin)

    def commit(self, path: str, text: str) -> str:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "Change")
        return self.git("rev-parse", "HEAD").stdout.strip()

    def push(self, *refs: str, ok: bool = True) -> str:
        return self.git("push", self.url, *(refs or ["main"]), ok=ok).stderr


@pytest.fixture
def begun(centre: GitHttpCentre, git: Git, tmp_path: Path) -> Begun:
    return Begun(centre, git, tmp_path / "begun")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_first_push_makes_main_and_the_next_builds_upon_it(
    centre: GitHttpCentre, begun: Begun, git: Git, tmp_path: Path, version: int
) -> None:
    first = begun.commit("apps/press.yaml", "kind: ConfigMap\n")
    begun.git("-c", f"protocol.version={version}", "push", "-q", begun.url, "main")
    second = begun.commit("README.md", "Ours.\n")
    begun.push()
    assert [(each.old, each.new) for each in centre.pushes] == [("0" * 40, first), (first, second)]
    git("clone", "-q", begun.url, tmp_path / "clone")
    assert (tmp_path / "clone/apps/press.yaml").read_text() == "kind: ConfigMap\n"


def test_an_empty_repository_can_be_cloned_and_pushed_from_there(
    centre: GitHttpCentre, git: Git, tmp_path: Path
) -> None:
    repository, url = centre.repository(populated=False)
    work = tmp_path / "work"
    assert "empty repository" in git("clone", url, work).stderr
    (work / "a").write_text("1")
    git("-C", work, "add", "-A")
    git("-C", work, "commit", "-qm", "First")
    git("-C", work, "push", "-q", "origin", "HEAD:main")
    assert centre.server.list(repository, "", at=centre.head(repository)) == ["a"]


def test_any_path_is_taken_and_whole_folders_may_go(centre: GitHttpCentre, work: Work) -> None:
    work.commit(edo__cluster__mine="1", top="2")
    (work.path / "by-hand/README.md").unlink()
    new = work.commit_all()
    work.git("push", "-q")
    assert centre.server.list(work.id, "", at=new) == [
        "README.md",
        "edo/cluster/flux.yaml",
        "edo/cluster/mine",
        "edo/secrets/ns/one.yaml",
        "top",
    ]


def test_what_looks_like_edgewrights_own_is_not_looked_for(centre: GitHttpCentre, work: Work) -> None:
    """Nothing says which edge applies it."""
    (work.path / "spaces.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: edgewright}\n")
    work.git("add", "-A")
    work.git("commit", "-qm", "Copied\n\nEdgewright-Fence: 1/1")
    work.git("push", "-q")
    assert len(centre.pushes) == 1


def test_history_is_not_rewritten_and_main_stays(centre: GitHttpCentre, begun: Begun) -> None:
    begun.commit("a", "1")
    begun.push()
    begun.git("commit", "-q", "--amend", "-m", "Another")
    assert "only moves forward" in begun.push("+main", ok=False)
    assert "cannot be deleted" in begun.push(":main", ok=False)
    assert "only refs/heads/main takes pushes" in begun.push("main:other", ok=False)
    assert len(centre.pushes) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_links_and_submodules_are_refused_from_the_first_push_on(
    centre: GitHttpCentre, begun: Begun, *, is_first: bool
) -> None:
    head = begun.commit("a", "1")
    if not is_first:
        begun.push()
    (begun.path / "deep").mkdir()
    (begun.path / "deep/link").symlink_to("/etc/passwd")
    begun.commit("b", "1")
    assert "deep/link is a symbolic link" in begun.push(ok=False)
    begun.git("rm", "-q", "deep/link")
    begun.git("update-index", "--add", "--cacheinfo", f"160000,{head},module")
    begun.git("commit", "-qm", "Submodule")
    assert "module is a submodule" in begun.push(ok=False)
    assert len(centre.pushes) == (0 if is_first else 1)


def test_a_path_that_no_system_can_check_out_is_refused(begun: Begun) -> None:
    begun.commit("a", "1")
    blob = begun.git("rev-parse", "HEAD:a").stdout.strip()
    begun.git("update-index", "--add", "--cacheinfo", f"100644,{blob},b\\c")
    begun.git("commit", "-qm", "Odd")
    assert "has a backslash" in begun.push(ok=False)


def test_the_first_push_points_main_to_a_commit(centre: GitHttpCentre, begun: Begun) -> None:
    begun.commit("a", "1")
    assert begun.push("HEAD^{tree}:refs/heads/main", ok=False)
    assert centre.server.head(begun.id) is None


def test_depth_is_counted_from_the_top(begun: Begun) -> None:
    begun.commit("/".join(["d"] * 64) + "/a", "1")
    assert "The repository would have more than 64 folders in each other: push fewer." in begun.push(ok=False)


def test_all_files_together_are_bounded(begun: Begun) -> None:
    begun.commit("a", "\0" * MIB)
    blob = begun.git("rev-parse", "HEAD:a").stdout.strip()
    for number in range(64):
        begun.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{number}")
    begun.git("commit", "-qm", "Many")
    assert "The repository would have 65 MiB when it is checked out, more than 64 MiB" in begun.push(ok=False)


def tree_of(begun: Begun, *rows: str) -> str:
    return begun.git("mktree", stdin="".join(f"{row}\n" for row in rows)).stdout.strip()


def point_main_to(begun: Begun, tree: str, *parents: str) -> None:
    """Commits a tree past every check of the client."""
    after = [word for parent in parents for word in ("-p", parent)]
    commit = begun.git("commit-tree", tree, *after, "-m", "x").stdout.strip()
    begun.git("update-ref", "refs/heads/main", commit)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_tree_that_names_more_files_than_anyone_has_is_refused(begun: Begun, *, is_first: bool) -> None:
    """Seven objects that name a million folders: nothing may walk them all."""
    parents = []
    if not is_first:
        parents.append(begun.commit("a", "1"))
        begun.push()
    tree = tree_of(begun)
    for _ in range(6):
        tree = tree_of(begun, *(f"040000 tree {tree}\t{name}" for name in "abcdefghij"))
    point_main_to(begun, tree, *parents)
    refusal = f"The push changes more than {MAX_CHANGED} files and folders: push less at a time."
    assert refusal in begun.push(ok=False)


def test_files_of_several_pushes_are_counted_together(centre: GitHttpCentre, begun: Begun) -> None:
    blob = begun.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    half = tree_of(begun, *(f"100644 blob {blob}\tf{number}" for number in range(6000)))
    point_main_to(begun, tree_of(begun, f"040000 tree {half}\ta"))
    begun.push()
    point_main_to(begun, tree_of(begun, f"040000 tree {half}\ta", f"040000 tree {half}\tb"), centre.head(begun.id))
    assert "The repository would have 12000 files, more than 10000: push fewer." in begun.push(ok=False)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_large_file_is_refused_although_a_later_commit_removes_it(begun: Begun, *, is_first: bool) -> None:
    if not is_first:
        begun.commit("a", "1")
        begun.push()
    begun.commit("large", "\0" * 17 * MIB)
    begun.git("rm", "-q", "large")
    begun.commit("b", "1")
    assert "The push has a file larger than 16 MiB: keep large files elsewhere." in begun.push(ok=False)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_push_over_the_limit_is_refused_and_leaves_nothing(
    centre: GitHttpCentre, begun: Begun, *, is_first: bool
) -> None:
    if not is_first:
        begun.commit("a", "1")
        begun.push()
    before = centre.server.head(begun.id)
    (begun.path / "random").write_bytes(os.urandom(2 * centre.push_limit))
    begun.commit("b", "1")
    assert "The push is larger than 1 MiB: push less at a time" in begun.push(ok=False)
    assert centre.server.head(begun.id) == before
    assert not list((centre.server.folder(begun.id) / "objects").glob("tmp_objdir*"))


def test_a_delta_that_claims_far_more_than_it_brings_is_refused(
    centre: GitHttpCentre, begun: Begun, git: Git
) -> None:
    """400 MiB are more than git may allocate for a push."""
    head = begun.commit("a", "1")
    begun.push()
    rows = top_rows(git(f"--git-dir={centre.server.folder(begun.id)}", "ls-tree", "main").stdout)
    new, content = delta_bomb(head, rows, 400 * 16)
    answer = httpx.post(
        f"{begun.url}/git-receive-pack",
        content=push_body(head, new, content),
        headers={"Content-Type": "application/x-git-receive-pack-request"},
        timeout=120,
        trust_env=False,
    )
    assert b"The push needs more memory to unpack than the centre gives to it (256 MiB)" in answer.content
    assert centre.starved == ["push"]
    assert centre.server.head(begun.id) == head
