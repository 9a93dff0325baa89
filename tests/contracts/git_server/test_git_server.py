"""The promises of the ``GitServer`` port."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from edgewright.errors import Invalid, NotFound, Waiting
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, HeadMoved, WriterFence

BY_TEST = CommitMessage("Change files", "token:test")


def put(
    server: GitServer,
    repository: UUID,
    changes: Mapping[str, bytes | None],
    message: CommitMessage = BY_TEST,
) -> CommitId:
    return server.commit(repository, changes, message, expected_head=server.head(repository))


def tree(server: GitServer, repository: UUID) -> dict[str, bytes | None]:
    head = server.head(repository)
    assert head is not None
    return {path: server.read(repository, path, at=head) for path in server.list(repository, "", at=head)}


def test_new_repository_is_empty(server: GitServer, repository: UUID) -> None:
    assert server.exists(repository)
    assert server.head(repository) is None
    assert list(server.log(repository, limit=5)) == []


def test_creating_twice_keeps_what_is_there(server: GitServer, repository: UUID) -> None:
    head = put(server, repository, {"a": b"1"})
    server.create_repository(repository)
    assert server.head(repository) == head


def test_commit_becomes_the_head_and_can_be_read(server: GitServer, repository: UUID) -> None:
    content = {"README.md": b"# hello\n", "edo/secrets/ns/name.yaml": b"\x00\xff", "empty": b""}
    head = put(server, repository, content)
    assert server.head(repository) == head
    assert len(head) == 40 and set(head) <= set("0123456789abcdef")
    assert tree(server, repository) == content


def test_commit_leaves_other_paths_untouched(server: GitServer, repository: UUID) -> None:
    put(server, repository, {"a/b/c": b"1", "a/b/d": b"2", "a/e": b"3", "f": b"4"})
    put(server, repository, {"a/b/c": b"9", "a/g/h/i": b"5"})
    assert tree(server, repository) == {
        "a/b/c": b"9",
        "a/b/d": b"2",
        "a/e": b"3",
        "a/g/h/i": b"5",
        "f": b"4",
    }


def test_older_commits_stay_readable(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {"a": b"1"})
    put(server, repository, {"a": None, "b": b"2"})
    assert server.read(repository, "a", at=first) == b"1"
    assert server.list(repository, "", at=first) == ["a"]


def test_deleting_the_last_file_of_folders_removes_them(server: GitServer, repository: UUID) -> None:
    put(server, repository, {"keep": b"1", "a/b/c": b"2"})
    head = put(server, repository, {"a/b/c": None})
    assert server.list(repository, "a", at=head) == []
    head = put(server, repository, {"a": b"now a file"})
    assert server.read(repository, "a", at=head) == b"now a file"


def test_everything_can_be_deleted(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {"a/b": b"1", "c": b"2"})
    head = put(server, repository, {"a/b": None, "c": None})
    assert head != first
    assert server.list(repository, "", at=head) == []
    assert put(server, repository, {"a/b": b"1"}) != head


def test_deleting_what_is_absent_is_no_change(server: GitServer, repository: UUID) -> None:
    head = put(server, repository, {"a/b": b"1"})
    assert put(server, repository, {"a": None, "a/b/c": None, "x/y": None}) == head


def test_writing_what_is_there_is_no_commit(server: GitServer, repository: UUID) -> None:
    head = put(server, repository, {"a/b": b"1", "c": b"2"})
    assert put(server, repository, {"a/b": b"1"}) == head
    assert put(server, repository, {}) == head
    assert len(server.log(repository, limit=9)) == 1


def test_first_commit_without_a_file_is_refused(server: GitServer, repository: UUID) -> None:
    for changes in ({}, {"a": None}):
        with pytest.raises(Invalid) as refusal:
            put(server, repository, changes)
        assert refusal.value.code == "commit_empty"
    assert server.head(repository) is None


def test_commit_upon_an_old_head_is_refused_and_changes_nothing(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {"a": b"1"})
    second = put(server, repository, {"a": b"2"})
    for stale in (None, first, "0" * 40):
        with pytest.raises(HeadMoved):
            server.commit(repository, {"b": b"3"}, BY_TEST, expected_head=stale)
        with pytest.raises(HeadMoved):
            server.commit(repository, {"a": b"2"}, BY_TEST, expected_head=stale)
    assert server.head(repository) == second
    assert tree(server, repository) == {"a": b"2"}


def test_first_commit_upon_a_head_that_never_was_is_refused(server: GitServer, repository: UUID) -> None:
    with pytest.raises(HeadMoved):
        server.commit(repository, {"b": b"3"}, BY_TEST, expected_head="0" * 40)


def test_attempt_that_was_overtaken_by_one_without_a_change_is_refused(server: GitServer, repository: UUID) -> None:
    """Its fence was checked, and then its disk stalled: the wish was taken back, and nothing differs any more."""
    head = put(server, repository, {"a": b"1"})
    late = WriterFence("1/5", server.fence_number(repository))
    newest = WriterFence("1/6", server.fence_number(repository))
    assert server.commit(repository, {"a": b"1"}, BY_TEST, expected_head=head, fence=newest) == head
    for changes in ({"a": b"taken back"}, {"a": b"1"}):
        with pytest.raises(HeadMoved):
            server.commit(repository, changes, BY_TEST, expected_head=head, fence=late)
    assert server.head(repository) == head
    begun_later = WriterFence("1/6", server.fence_number(repository))
    assert begun_later.number == newest.number + 1
    assert server.commit(repository, {"a": b"2"}, BY_TEST, expected_head=head, fence=begun_later) != head


def test_fence_of_an_attempt_on_an_old_head_is_not_written(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {"a": b"1"})
    put(server, repository, {"a": b"2"})
    fence = WriterFence("1/5", server.fence_number(repository))
    with pytest.raises(HeadMoved):
        server.commit(repository, {"a": b"1"}, BY_TEST, expected_head=first, fence=fence)
    assert server.fence_number(repository) == fence.number


def test_attempt_that_was_begun_before_a_raised_fence_is_refused(server: GitServer, repository: UUID) -> None:
    """A pause or a removal commits nothing, and nothing that was begun before may land after it."""
    head = put(server, repository, {"a": b"1"})
    late = WriterFence("1/5", server.fence_number(repository))
    for _ in range(2):
        server.raise_fence(repository, "1/6")
    with pytest.raises(HeadMoved):
        server.commit(repository, {"a": b"late"}, BY_TEST, expected_head=head, fence=late)
    assert server.head(repository) == head
    begun_later = WriterFence("1/7", server.fence_number(repository))
    assert server.commit(repository, {"a": b"2"}, BY_TEST, expected_head=head, fence=begun_later) != head


def test_fence_that_is_raised_once_for_a_change_stays_until_another_change(
    server: GitServer, repository: UUID
) -> None:
    """Who was begun since has read the row as it is; nobody can hold up the others by asking again and again."""
    head = put(server, repository, {"a": b"1"})
    late = WriterFence("1/5", server.fence_number(repository))
    server.raise_fence(repository, "1/6", once=True)
    begun = WriterFence("1/6", server.fence_number(repository))
    server.raise_fence(repository, "1/6", once=True)
    with pytest.raises(HeadMoved):
        server.commit(repository, {"a": b"late"}, BY_TEST, expected_head=head, fence=late)
    assert server.commit(repository, {"a": b"1"}, BY_TEST, expected_head=head, fence=begun) == head
    server.raise_fence(repository, "1/6", once=True)
    same = WriterFence("1/6", server.fence_number(repository))
    assert same.number == begun.number + 1
    server.raise_fence(repository, "1/7", once=True)
    with pytest.raises(HeadMoved):
        server.commit(repository, {"a": b"2"}, BY_TEST, expected_head=head, fence=same)


def test_fence_of_an_unknown_repository_is_refused(server: GitServer) -> None:
    with pytest.raises(NotFound):
        server.raise_fence(uuid4(), "1/1")


def test_commit_that_changes_something_writes_no_fence(server: GitServer, repository: UUID) -> None:
    """It moves the head, which refuses whoever began before."""
    fence = WriterFence("1/1", server.fence_number(repository))
    head = server.commit(repository, {"a": b"1"}, BY_TEST, expected_head=None, fence=fence)
    assert server.fence_number(repository) == fence.number == 0
    server.commit(repository, {"a": b"2"}, BY_TEST, expected_head=head, fence=fence)


def test_racing_writers_lose_nothing(server: GitServer, repository: UUID) -> None:
    writers, each = 6, 4
    put(server, repository, {"start": b""})

    def write(writer: int) -> None:
        for number in range(each):
            while True:
                try:
                    put(server, repository, {f"w{writer}/{number}": b"x"})
                    break
                except HeadMoved:
                    continue

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    log = server.log(repository, limit=100)
    assert len(log) == 1 + writers * each
    assert len(tree(server, repository)) == 1 + writers * each
    assert all(server.is_ancestor(repository, entry.commit, log[0].commit) for entry in log[::8])


def test_thousand_files_at_several_depths(server: GitServer, repository: UUID) -> None:
    files = {f"d{n % 7}/{'/'.join(str(n % 40))}/{n}.yaml": str(n).encode() for n in range(1000)}
    deep = "/".join("d" * 100) + "/file"
    put(server, repository, {**files, deep: b"deep"})
    head = put(server, repository, {"d0/0/0.yaml": b"changed", deep: b"deeper"})
    assert len(server.list(repository, "", at=head)) == 1001
    assert server.read(repository, deep, at=head) == b"deeper"
    assert server.read(repository, "d3/3/3.yaml", at=head) == b"3"
    assert server.list(repository, "d1/1", at=head) == sorted(p for p in files if p.startswith("d1/1/"))


def test_names_that_sort_around_a_folder_keep_their_content(server: GitServer, repository: UUID) -> None:
    files = {"a-b": b"1", "a.b": b"2", "a/b": b"3", "a0": b"4", "ab": b"5", "ä/ö ü": b"6"}
    head = put(server, repository, files)
    assert tree(server, repository) == files
    assert server.list(repository, "", at=head) == sorted(files)


@pytest.mark.parametrize("prefix", ["a", "a/"])
def test_list_is_of_a_folder_and_not_of_a_prefix_of_names(server: GitServer, repository: UUID, prefix: str) -> None:
    head = put(server, repository, {"a/x": b"", "ab/y": b"", "a.z": b""})
    assert server.list(repository, prefix, at=head) == ["a/x"]
    assert server.list(repository, "a/x", at=head) == []
    assert server.list(repository, "nothing", at=head) == []


def test_reading_what_is_no_file_gives_none(server: GitServer, repository: UUID) -> None:
    head = put(server, repository, {"a/b": b"1"})
    for path in ("a", "a/", "a/b/c", "b", "", "/a/b", "a//b", "../a", "\ud800"):
        assert server.read(repository, path, at=head) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "a//b",
        "a/",
        ".",
        "../a",
        "a/../b",
        ".git/config",
        "a/.GIT/b",
        "a/.git",
        ".git /x",
        ".git./x",
        "git~1",
        ".git::$INDEX_ALLOCATION/x",
        ".g\u200cit/config",
        "a\\b",
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "\ud800",
        "x" * 256,
        "/".join(["x" * 200] * 6),
    ],
)
def test_path_that_is_not_portable_is_refused(server: GitServer, repository: UUID, path: str) -> None:
    head = put(server, repository, {"ok": b"1"})
    for content in (b"x", None):
        with pytest.raises(Invalid) as refusal:
            put(server, repository, {"fine": b"2", path: content})
        assert refusal.value.code == "path_invalid"
    assert server.head(repository) == head


def test_unusual_but_portable_paths_are_accepted(server: GitServer, repository: UUID) -> None:
    files = {".gitignore": b"1", "a/.gitkeep": b"2", "a b/ü.txt": b"3", "x" * 255: b"4", "..a": b"5"}
    put(server, repository, files)
    assert tree(server, repository) == files


def test_file_and_folder_of_one_name_are_refused(server: GitServer, repository: UUID) -> None:
    put(server, repository, {"file": b"1", "folder/x": b"2"})
    for changes in ({"file/x": b"3"}, {"folder": b"3"}, {"new": b"3", "new/x": b"4"}):
        with pytest.raises(Invalid) as refusal:
            put(server, repository, changes)
        assert refusal.value.code == "path_invalid"
    assert tree(server, repository) == {"file": b"1", "folder/x": b"2"}


def test_file_becomes_folder_and_back_when_the_change_says_so(server: GitServer, repository: UUID) -> None:
    put(server, repository, {"a": b"1"})
    put(server, repository, {"a": None, "a/b": b"2"})
    assert tree(server, repository) == {"a/b": b"2"}
    put(server, repository, {"a/b": None, "a": b"3"})
    assert tree(server, repository) == {"a": b"3"}


def test_every_call_on_an_unknown_repository_is_not_found(server: GitServer) -> None:
    unknown = uuid4()
    assert not server.exists(unknown)
    calls: list[Callable[[], object]] = [
        lambda: server.head(unknown),
        lambda: server.fence_number(unknown),
        lambda: server.commit(unknown, {"a": b""}, BY_TEST, expected_head=None),
        lambda: server.read(unknown, "a", at="0" * 40),
        lambda: server.list(unknown, "", at="0" * 40),
        lambda: server.is_ancestor(unknown, "0" * 40, "0" * 40),
        lambda: server.log(unknown, limit=1),
        lambda: server.upkeep(unknown),
    ]
    for call in calls:
        with pytest.raises(NotFound) as refusal:
            call()
        assert refusal.value.code == "repository_unknown"
    server.archive(unknown)


@pytest.mark.parametrize("commit", ["0" * 40, "main", "--help", ""])
def test_reading_at_an_unknown_commit_is_not_found(server: GitServer, repository: UUID, commit: CommitId) -> None:
    put(server, repository, {"a": b"1"})
    for call in (
        lambda: server.read(repository, "a", at=commit),
        lambda: server.list(repository, "", at=commit),
    ):
        with pytest.raises(NotFound) as refusal:
            call()
        assert refusal.value.code == "commit_unknown"


def test_log_is_newest_first_and_bounded(server: GitServer, repository: UUID) -> None:
    commits = [put(server, repository, {"a": str(n).encode()}) for n in range(5)]
    log = server.log(repository, limit=3)
    assert [entry.commit for entry in log] == commits[:1:-1]
    assert [entry.at for entry in log] == sorted((entry.at for entry in log), reverse=True)


def test_log_goes_back_to_the_oldest_of_some_commits(server: GitServer, repository: UUID) -> None:
    commits = [put(server, repository, {"a": str(n).encode()}) for n in range(6)]
    for back_to, oldest in (([commits[4]], 4), ([commits[4], commits[2]], 2), ([commits[5]], 5), ([], 0)):
        log = server.log(repository, limit=9, back_to=back_to)
        assert [entry.commit for entry in log] == commits[oldest:][::-1]
    assert len(server.log(repository, limit=9, back_to=["0" * 40, commits[4]])) == 6, "one of them is not there"


def test_log_leaves_out_what_is_not_asked_for_and_counts_it(server: GitServer, repository: UUID) -> None:
    commits = [put(server, repository, {"a": str(n).encode()}) for n in range(5)]
    log = server.log(repository, limit=3, only=lambda commit: commit.commit in {commits[0], commits[3]})
    assert [entry.commit for entry in log] == [commits[3]]
    assert (
        server.log(repository, limit=9, back_to=[commits[2]], only=lambda commit: commit.commit == commits[1]) == []
    )


def test_log_ends_with_the_first_that_is_the_last_one_wanted(server: GitServer, repository: UUID) -> None:
    commits = [put(server, repository, {"a": str(n).encode()}) for n in range(5)]
    log = server.log(repository, limit=9, until=lambda commit: commit.commit in commits[1:3])
    assert [entry.commit for entry in log] == commits[:1:-1]
    assert server.log(repository, limit=9, only=lambda _: False, until=lambda _: True) == []
    assert len(server.log(repository, limit=9, until=lambda _: False)) == 5


def test_log_tells_subject_body_trailers_and_actor(server: GitServer, repository: UUID) -> None:
    message = CommitMessage(
        "Add a secret", "token:ci", [("Fence", "3/17"), ("Request", "abc")], body="Because\nof this.\n"
    )
    put(server, repository, {"a": b"1"}, message)
    [entry] = server.log(repository, limit=1)
    assert entry.message == "Add a secret\n\nBecause\nof this.\n\nFence: 3/17\nRequest: abc\n"
    assert entry.author == "token:ci"


def test_hostile_actor_and_trailers_cannot_forge_lines(server: GitServer, repository: UUID) -> None:
    message = CommitMessage(
        "One\nTwo",
        "Eve <root@x>\ncommitter Mallory <m@x> 1 +0000\n\n\x00forged",
        [("Fence\nFence", "1\nFence: 99")],
    )
    put(server, repository, {"a": b"1"}, message)
    [entry] = server.log(repository, limit=1)
    assert entry.message == "One Two\n\nFence-Fence: 1 Fence: 99\n"
    assert entry.author == "Eve root@x committer Mallory m@x 1 +0000 forged"


@pytest.mark.parametrize("actor", ["", "<>", "\n", "\ud800", "...", "张伟", "a" * 5000])
def test_any_text_is_accepted_as_actor(server: GitServer, repository: UUID, actor: str) -> None:
    put(server, repository, {"a": b"1"}, CommitMessage("x", actor))
    [entry] = server.log(repository, limit=1)
    assert 0 < len(entry.author) <= 200


def test_ancestry_follows_parents(server: GitServer, repository: UUID) -> None:
    first, second, third = (put(server, repository, {"a": text}) for text in (b"1", b"2", b"3"))
    assert server.is_ancestor(repository, first, third)
    assert server.is_ancestor(repository, second, second)
    assert not server.is_ancestor(repository, third, first)


@pytest.mark.parametrize("stranger", ["0" * 40, "main", "--all", ""])
def test_unknown_commits_are_nobodys_ancestor(server: GitServer, repository: UUID, stranger: str) -> None:
    head = put(server, repository, {"a": b"1"})
    assert not server.is_ancestor(repository, stranger, head)
    assert not server.is_ancestor(repository, head, stranger)
    assert not server.is_ancestor(repository, stranger, stranger)


def test_archived_repository_is_out_of_service(server: GitServer, repository: UUID) -> None:
    put(server, repository, {"a": b"1"})
    server.archive(repository)
    server.archive(repository)
    assert not server.exists(repository)
    with pytest.raises(NotFound):
        server.head(repository)


def test_archived_repository_can_be_made_anew_and_archived_again(server: GitServer, repository: UUID) -> None:
    for _ in range(3):
        server.create_repository(repository)
        assert server.head(repository) is None
        put(server, repository, {"a": b"1"})
        server.archive(repository)
        server.create_repository(repository)
        server.archive(repository)


def test_upkeep_changes_nothing_that_can_be_seen(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {f"a/{n}": str(n).encode() for n in range(150)})
    second = put(server, repository, {"b": b"2"})
    before = (tree(server, repository), list(server.log(repository, limit=9)))
    server.upkeep(repository)
    server.upkeep(repository)
    assert (tree(server, repository), list(server.log(repository, limit=9))) == before
    assert server.is_ancestor(repository, first, second)
    third = put(server, repository, {"a/3": None, "c/d": b"3"})
    assert server.log(repository, limit=2)[1].commit == second
    assert server.head(repository) == third
    assert len(tree(server, repository)) == 151


def test_what_began_to_make_a_repository_before_it_was_archived_is_refused(server: GitServer) -> None:
    """An attempt may stall for as long as a disk does; nothing would take its repository out of service again."""
    name = uuid4()
    before = server.archivals(name)
    server.archive(name)
    with pytest.raises(Waiting) as overtaken:
        server.create_repository(name, archivals=before)
    assert overtaken.value.code == "repository_archived"
    assert not server.exists(name)
    server.create_repository(name, archivals=server.archivals(name))
    assert server.exists(name)


def test_each_archival_counts(server: GitServer, repository: UUID) -> None:
    numbers = [server.archivals(repository)]
    for _ in range(3):
        server.archive(repository)
        numbers.append(server.archivals(repository))
    assert numbers == [0, 1, 2, 3]
    assert server.archivals(uuid4()) == 0


def test_there_is_one_maker_at_a_time(server: GitServer) -> None:
    """Whichever thread lets go: a coroutine does so in another one."""
    inside: list[int] = []
    most: list[int] = []

    def make(number: int) -> None:
        with server.sole_maker():
            inside.append(number)
            most.append(len(inside))
            server.create_repository(uuid4())
            inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(20)))
        held = server.sole_maker()
        pool.submit(held.__enter__).result()
        waiting = pool.submit(make, 20)
        assert not waiting.done()
        held.__exit__(None, None, None)
        waiting.result()
    assert most == [1] * 21


def test_what_a_maker_raises_is_its_own(server: GitServer) -> None:
    with pytest.raises(FileNotFoundError), server.sole_maker():
        raise FileNotFoundError
    with server.sole_maker():
        pass


def test_folders_with_equal_files_have_equal_ids(server: GitServer, repository: UUID) -> None:
    first = put(server, repository, {"a/x": b"1", "b/deep/x": b"1", "b/deep/y": b"2", "c": b"3"})
    other = uuid4()
    server.create_repository(other)
    elsewhere = put(server, other, {"d/e/x": b"1", "top": b"4"})
    one = server.folder_id(repository, "a", at=first)
    assert one is not None
    assert server.folder_id(repository, "a/", at=first) == server.folder_id(other, "d/e", at=elsewhere) == one
    assert server.folder_id(repository, "b", at=first) not in {one, None}
    assert server.folder_id(repository, "b/deep", at=first) != server.folder_id(repository, "b", at=first)
    for nothing in ("c", "e", "a/x", "a/y", "b/deep/x/z"):
        assert server.folder_id(repository, nothing, at=first) is None
    second = put(server, repository, {"a/x": b"2"})
    assert server.folder_id(repository, "a", at=second) not in {one, None}
    assert server.folder_id(repository, "b", at=second) == server.folder_id(repository, "b", at=first)
    assert server.folder_id(repository, "", at=second) != server.folder_id(repository, "", at=first)
    with pytest.raises(NotFound):
        server.folder_id(repository, "a", at="0" * 40)
