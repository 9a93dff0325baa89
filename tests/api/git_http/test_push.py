"""Pushing over HTTP with real git: what is accepted, and the sentence of each refusal as git shows it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from git_http_centre import Git, GitHttpCentre, Work

from edgewright.adapters.git.pre_receive import MAX_CHANGED
from edgewright.ports.git_server import CommitId, CommitMessage, HeadMoved

BY_CENTRE = CommitMessage("Change", "edgewright")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_push_below_by_hand_moves_main_and_is_told(centre: GitHttpCentre, work: Work, version: int) -> None:
    old, new = work.head(), work.commit(**{"by-hand__deep__a.yaml": "a: 1\n"})
    work.git("-c", f"protocol.version={version}", "push", "-q", "origin", "main")
    assert work.head() == new
    assert [(pushed.old, pushed.new) for pushed in centre.pushes] == [(old, new)]
    assert centre.server.read(work.id, "by-hand/deep/a.yaml", at=new) == b"a: 1\n"


def test_push_larger_than_gits_buffer_streams(centre: GitHttpCentre, work: Work) -> None:
    (work.path / "by-hand/random").write_bytes(os.urandom(900_000))
    new = work.commit_all()
    work.git("-c", "http.postBuffer=65536", "push", "-q", "origin", "main")
    assert work.head() == new


def test_files_can_be_changed_and_removed_by_push(centre: GitHttpCentre, work: Work) -> None:
    work.commit(**{"by-hand__a": "1", "by-hand__b": "2"})
    work.git("push", "-q")
    (work.path / "by-hand/a").unlink()
    (work.path / "by-hand/b").chmod(0o755)
    new = work.commit_all()
    work.git("push", "-q")
    assert centre.server.list(work.id, "by-hand", at=new) == ["by-hand/README.md", "by-hand/b"]


def test_merge_of_what_the_centre_wrote_can_be_pushed(centre: GitHttpCentre, work: Work) -> None:
    work.commit(**{"by-hand__a": "1"})
    centre.server.commit(work.id, {"edo/x": b"1"}, BY_CENTRE, expected_head=work.head())
    assert "fetch first" in work.git("push", ok=False).stderr
    work.git("pull", "-q", "--no-rebase", "--no-edit")
    work.git("push", "-q")
    log = centre.server.log(work.id, limit=9)
    assert log[0].message.startswith("Merge branch")
    assert len(log) == 4


@pytest.mark.parametrize("encoding", ["UTF-8", "IBM500"])
@pytest.mark.parametrize(
    "line",
    [
        "Edgewright-Request: 6f1d",
        "Edgewright-Fence: 1/99",
        "Edgewright-Put-Back: x",
        "Edgewright-Removal: workloads",
        "Edgewright-Removed-Keys: default/db",
    ],
)
def test_a_message_that_speaks_as_the_centre_is_refused(
    centre: GitHttpCentre, work: Work, line: str, encoding: str
) -> None:
    """A secret would count as committed; a repository, as written for a change that the database does not know."""
    (work.path / "by-hand/x").write_text("1")
    work.git("add", "-A")
    tree = work.git("write-tree").stdout.strip()
    who = "A <a@example.com> 1700000000 +0000"
    text = f"tree {tree}\nparent {work.head()}\nauthor {who}\ncommitter {who}\nencoding {encoding}\n\nx\n\n{line}\n"
    odd = _raw(work, "commit", text.encode())
    work.git("reset", "-q", "--hard", odd)
    work.commit(**{"by-hand__y": "an innocent commit after it"})
    name = line.partition(" ")[0]
    assert work.refusal().startswith(f"The message of commit {odd[:12]} says {name}, as only Edgewright's own")
    work.git("reset", "-q", "--soft", "origin/main")
    work.git("commit", "-q", "-m", "About an Edgewright-Request, in other words")
    work.git("push", "-q")


@pytest.mark.parametrize("change", ["write", "add", "remove"])
def test_change_outside_by_hand_is_refused(work: Work, change: str) -> None:
    path = "edo/cluster/more/new.yaml" if change == "add" else "edo/secrets/ns/one.yaml"
    if change == "remove":
        (work.path / path).unlink()
        work.commit_all()
    else:
        work.commit(**{path.replace("/", "__"): "changed", "by-hand__fine": "1"})
    assert work.refusal() == (
        f"{path} was changed, but only files below by-hand/ may be pushed: "
        "undo that change, and use Edgewright's API for the rest of the repository."
    )


def test_file_named_like_the_folder_is_refused(work: Work) -> None:
    work.git("rm", "-q", "-r", "by-hand")
    work.commit(**{"by-hand": "a file"})
    assert work.refusal().startswith("by-hand was changed, but only files below by-hand/ may be pushed")


def test_other_branches_and_tags_are_refused(work: Work) -> None:
    work.commit(**{"by-hand__a": "1"})
    assert work.refusal("origin", "main:feature") == (
        "refs/heads/feature is refused: only refs/heads/main takes pushes, so push your work to main."
    )
    work.git("tag", "v1")
    assert work.refusal("origin", "v1").startswith("refs/tags/v1 is refused: only refs/heads/main takes")
    assert work.refusal("origin", "main", "v1").startswith("refs/tags/v1 is refused")


def test_deletion_is_refused(work: Work) -> None:
    assert work.refusal("origin", ":main") == (
        "refs/heads/main cannot be deleted: remove your files below by-hand/ instead, and push that."
    )


def test_rewritten_history_is_refused(work: Work) -> None:
    work.git("commit", "-q", "--amend", "-m", "Rewritten")
    assert work.refusal("--force", "origin", "main") == (
        "refs/heads/main only moves forward: run `git pull --rebase` and push again, without force."
    )


def test_first_push_to_an_empty_repository_is_refused(centre: GitHttpCentre, git: Git, tmp_path: Path) -> None:
    repository, url = centre.repository(populated=False)
    git("clone", "-q", url, "empty")
    (tmp_path / "empty/by-hand").mkdir()
    (tmp_path / "empty/by-hand/a").write_text("1")
    git("-C", "empty", "add", "-A")
    git("-C", "empty", "commit", "-qm", "First")
    done = git("-C", "empty", "push", "origin", "main", ok=False)
    assert done.returncode != 0
    assert "remote: refs/heads/main has no commit yet: wait until Edgewright has filled it" in done.stderr
    assert centre.server.head(repository) is None


def test_symbolic_link_is_refused(work: Work) -> None:
    (work.path / "by-hand/link").symlink_to("/etc/passwd")
    work.commit_all()
    assert work.refusal() == "by-hand/link is a symbolic link: push a copy of the file itself."


def test_submodule_is_refused(work: Work) -> None:
    head = work.git("rev-parse", "HEAD").stdout.strip()
    work.git("update-index", "--add", "--cacheinfo", f"160000,{head},by-hand/sub")
    work.git("commit", "-qm", "Submodule")
    assert work.refusal() == "by-hand/sub is a submodule: push the files themselves."


def test_path_that_is_not_portable_is_refused(work: Work) -> None:
    blob = work.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    work.git("update-index", "--add", "--cacheinfo", f"100644,{blob},by-hand/a\\b")
    work.git("commit", "-qm", "Backslash")
    assert work.refusal() == (
        "The path 'by-hand/a\\\\b' has a backslash, which some systems take for a separator: rename it."
    )


def test_removing_the_whole_folder_is_refused_because_flux_would_stall(work: Work) -> None:
    work.git("rm", "-q", "-r", "by-hand")
    work.git("commit", "-qm", "Away")
    assert work.refusal() == (
        "by-hand/ would be gone, and Flux prunes nothing when its folder is missing: "
        "leave a file in it, such as by-hand/README.md."
    )


def test_object_that_fails_fsck_is_refused(centre: GitHttpCentre, work: Work) -> None:
    blob = work.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    inner = work.git("mktree", stdin=f"100644 blob {blob}\t.git\n").stdout.strip()
    _commit_tree(work, inner)
    done = work.git("push", "origin", "main", ok=False)
    assert done.returncode != 0
    assert "hasDotgit" in done.stderr
    assert centre.pushes == []


def _commit_tree(work: Work, by_hand_tree: str) -> None:
    """Commits main's tree with by-hand replaced, past every check of the client."""
    rows = work.git("ls-tree", "HEAD").stdout.splitlines()
    rows = [row for row in rows if not row.endswith("\tby-hand")] + [f"040000 tree {by_hand_tree}\tby-hand"]
    tree = work.git("mktree", stdin="\n".join(rows) + "\n").stdout.strip()
    commit = work.git("commit-tree", tree, "-p", "HEAD", "-m", "x").stdout.strip()
    work.git("update-ref", "refs/heads/main", commit)


def _raw(work: Work, kind: str, content: bytes) -> str:
    """Writes an object past every check of the client."""
    file = work.path.parent / f"raw-{kind}"
    file.write_bytes(content)
    return work.git("hash-object", "-t", kind, "-w", "--literally", file).stdout.strip()


def _subtree(work: Work, name: str) -> str:
    return work.git("rev-parse", f"HEAD:{name}").stdout.strip()


@pytest.mark.parametrize("mode", ["644", "0", "0040755", "1040000"])
def test_change_cannot_hide_behind_a_name_that_looks_like_an_entry(
    centre: GitHttpCentre, work: Work, mode: str
) -> None:
    """Whoever searches for entries finds the old ``edo`` inside of this tree's last name."""
    blob = work.git("hash-object", "-w", "--stdin", stdin="x").stdout.strip()
    evil = work.git("mktree", stdin=f"100644 blob {blob}\tx\n").stdout.strip()
    entries = [
        ("100644", "README.md", _subtree(work, "README.md")),
        ("40000", "by-hand", _subtree(work, "by-hand")),
        ("40000", "edo", evil),
        (mode, "x40000 edo", _subtree(work, "edo")),
    ]
    tree = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(object_id) for mode, name, object_id in entries)
    commit = work.git("commit-tree", _raw(work, "tree", tree), "-p", "HEAD", "-m", "x").stdout.strip()
    work.git("update-ref", "refs/heads/main", commit)
    before = work.head()
    assert work.git("push", "origin", "main", ok=False).returncode != 0
    assert work.head() == before
    assert centre.pushes == []


def test_second_tree_of_a_pushed_commit_counts_for_nobody(centre: GitHttpCentre, work: Work) -> None:
    """Git reads the first ``tree`` of a commit, and the push rules with it; so do the centre's own commits."""
    hidden = work.commit(**{"edo__secrets__ns__evil.yaml": "x"})
    forged = f"{hidden}^{{tree}}"
    tree = work.git("rev-parse", "HEAD~:").stdout.strip()
    parent = work.git("rev-parse", "HEAD~").stdout.strip()
    person = "A <a@example.org> 1700000000 +0000"
    text = f"tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n"
    text += f"tree {work.git('rev-parse', forged).stdout.strip()}\nparent {hidden}\n\nx\n"
    work.git("update-ref", "refs/heads/main", _raw(work, "commit", text.encode()))
    work.git("push", "-q", "origin", "main")
    head = centre.server.commit(work.id, {"edo/x": b"1"}, BY_CENTRE, expected_head=work.head())
    assert centre.server.list(work.id, "edo/secrets", at=head) == ["edo/secrets/ns/one.yaml"]
    assert len(centre.server.log(work.id, limit=9)) == 3


def test_tree_that_names_more_files_than_anyone_has_is_refused(work: Work) -> None:
    """Seven objects that name a million folders: nothing may walk them all."""
    tree = work.git("mktree", stdin="").stdout.strip()
    for _ in range(6):
        rows = "".join(f"040000 tree {tree}\t{name}\n" for name in "abcdefghij")
        tree = work.git("mktree", stdin=rows).stdout.strip()
    _commit_tree(work, tree)
    assert work.refusal() == (f"The push changes more than {MAX_CHANGED} files and folders: push less at a time.")


@pytest.mark.parametrize("buffer", ["65536", "50000000"])
def test_push_over_the_limit_is_refused_with_the_limit(centre: GitHttpCentre, work: Work, buffer: str) -> None:
    (work.path / "by-hand/random").write_bytes(os.urandom(2 * centre.push_limit))
    work.commit_all()
    before = work.head()
    done = work.git("-c", f"http.postBuffer={buffer}", "push", "origin", "main", ok=False)
    assert done.returncode != 0
    assert "The push is larger than 1 MiB: push less at a time" in done.stderr, done.stderr
    assert work.head() == before
    assert centre.pushes == []
    assert not list((centre.server.folder(work.id) / "objects").glob("tmp_objdir*"))


def test_push_that_the_route_does_not_allow_is_forbidden(centre: GitHttpCentre, work: Work) -> None:
    centre.allow_push = False
    work.commit(**{"by-hand__a": "1"})
    assert work.git("push", ok=False).returncode != 0
    assert centre.statuses[-1] == 403


def test_push_is_refused_while_its_rules_cannot_run(
    centre: GitHttpCentre, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git ignores a hook that it cannot run; that must not open the door."""
    monkeypatch.setenv("EDGEWRIGHT_PYTHON", "unrelated")
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    work.commit(**{"by-hand__a": "1"})
    assert "cannot" in work.refusal() or "not found" in work.refusal()


def test_missing_hook_is_made_again_before_the_next_push(centre: GitHttpCentre, work: Work) -> None:
    work.commit(**{"by-hand__a": "1"})
    work.git("push", "-q")
    centre.pushes.clear()
    hook = centre.server.root / "hooks" / "pre-receive"
    for damage in (hook.unlink, lambda: hook.chmod(0o644), lambda: hook.write_text("#!/bin/sh\nexit 0\n")):
        damage()
        work.commit(**{"edo__secrets__evil.yaml": os.urandom(4).hex()})
        assert "only files below by-hand/ may be pushed" in work.refusal()


def test_push_and_commit_at_once_never_lose_each_other(centre: GitHttpCentre, work: Work) -> None:
    """Whoever is second is told so, and succeeds on top of the first."""
    rounds, written = 4, list[CommitId]()

    def write() -> None:
        while len(written) < 30:
            try:
                changes, head = {"edo/n": str(len(written)).encode()}, centre.server.head(work.id)
                written.append(centre.server.commit(work.id, changes, BY_CENTRE, expected_head=head))
            except HeadMoved:
                continue

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for number in range(rounds):
            work.commit(**{f"by-hand__{number}": "x"})
            while work.git("push", "-q", ok=False).returncode != 0:
                work.git("pull", "-q", "--rebase")
        writing.result()
    names = [entry.commit for entry in centre.server.log(work.id, limit=10_000)]
    assert set(written) <= set(names)
    assert len(names) == 1 + len(written) + rounds
    assert len(centre.pushes) == rounds
    assert all(pushed.new in names for pushed in centre.pushes)
