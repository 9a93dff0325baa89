"""What happened to a repository after the backup: a move's secrets are listed, a deletion's removal is undone."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from sealing_keys import NOW
from stopped_home import StoppedHome

from edgewright.adapters.git.bare import BareGitServer
from edgewright.application.committed_requests import REQUEST_TRAILER
from edgewright.application.repository_ahead import (
    PUT_BACK_TRAILER,
    REMOVAL_TRAILER,
    TAKEN_TRAILER,
    entered_since,
    removal_undone,
)
from edgewright.domain.cluster import Fence, Phase
from edgewright.domain.kubernetes_names import OtherText, SecretKey, SecretReference, StoredPlace
from edgewright.domain.projection import Done
from edgewright.domain.rendering import workload_removal
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary
from edgewright.sealing import SealedValue, put_values

DB = SecretReference("default", "db")
PATH = DB.path


def commit(
    home: StoppedHome,
    cluster: UUID,
    keys: Iterable[str],
    *,
    fence: str,
    subject: str = "Change",
    taken: int | None = None,
    entered: Collection[str] = (),
) -> CommitId:
    """Leaves exactly these keys of ``default/db``.

    Args:
        taken: as the step says it that takes values away.
        entered: those of the keys that a request has sealed anew.
    """
    trailers = [("Edgewright-Fence", fence)]
    if taken is not None:
        trailers.append((TAKEN_TRAILER, str(taken)))
    if entered:
        trailers.append((REQUEST_TRAILER, f"{uuid4()} 1"))
    values: Mapping[str, SealedValue] = {
        key: SealedValue("AQAB" if key in entered else "AQAA", "ab" * 32, NOW) for key in keys
    }
    document = put_values(None, DB, values) if values else None
    message = CommitMessage(subject=subject, actor="test", trailers=tuple(trailers))
    return home.git.commit(cluster, {PATH: document}, message, expected_head=home.git.head(cluster))


def commissioned(home: StoppedHome) -> UUID:
    """With three secrets, on its first hardware."""
    cluster = home.create()

    async def publish() -> None:
        async with home.store() as store:
            done = Done(generation=1, commissioning=1)
            await store.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True, done=done)

    asyncio.run(publish())
    commit(home, cluster, {"a", "b", "c"}, fence="1/1")
    return cluster


def listed(home: StoppedHome, cluster: UUID) -> tuple[str, ...]:
    async def read() -> tuple[str, ...]:
        async with home.store() as store:
            return tuple(str(place) for place in (await store.row(cluster)).must_reenter)

    return asyncio.run(read())


@pytest.mark.parametrize(
    "said",
    [
        {"taken": 2},
        {"subject": "Take away 2 secret values sealed for the old hardware"},  # all that versions up to 0.3.0 say
    ],
)
def test_what_a_move_after_the_backup_took_away_is_listed_unless_it_was_entered_since(
    home: StoppedHome, said: dict[str, Any]
) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, {"c"}, fence="2/4", **said)
    commit(home, cluster, {"a", "c"}, fence="2/4")
    commit(home, cluster, {"c"}, fence="2/4")  # entered, and deleted by somebody
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/b",)


def test_a_push_that_only_sounds_like_a_move_takes_nothing_away(home: StoppedHome) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, {"c"}, fence="2/4", subject="Take away what we no longer need")
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ()


def test_a_move_that_the_backup_knows_of_is_not_looked_at_again(home: StoppedHome) -> None:
    cluster = commissioned(home)
    commit(home, cluster, {"c"}, fence="1/1", taken=2)
    made = home.back_up()
    commit(home, cluster, {"c", "d"}, fence="1/1")
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ()


def moved(home: StoppedHome) -> UUID:
    """A cluster on its second hardware: ``a`` and ``b`` are listed to be entered again."""
    cluster = commissioned(home)
    commit(home, cluster, {"c"}, fence="1/1", taken=2)

    async def list_taken() -> None:
        async with home.store() as store:
            row = await store.row(cluster)
            fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
            await store.steps.record_reentry(fence, taken=[DB.at("a"), DB.at("b")])

    asyncio.run(list_taken())
    return cluster


def test_what_was_entered_after_the_backup_is_not_listed_any_more(home: StoppedHome) -> None:
    cluster = moved(home)
    made = home.back_up()
    commit(home, cluster, "ac", fence="1/1", entered="a")
    commit(home, cluster, "abc", fence="1/1")  # by whatever brings back an old value
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/b",)


def test_what_was_entered_and_taken_away_again_stays_listed(home: StoppedHome) -> None:
    cluster = moved(home)
    made = home.back_up()
    commit(home, cluster, "ac", fence="1/1", entered="a")
    commit(home, cluster, "c", fence="2/4", taken=1)
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/a", "default/db/b")


def test_of_values_that_no_key_opens_those_are_entered_that_were_sealed_since(home: StoppedHome) -> None:
    """They are listed, and in the repository, too."""
    cluster = commissioned(home)
    known = commit(home, cluster, "abc", fence="1/1", entered="c")
    pushed(home, cluster, {"by-hand/app.yaml": b"app"})
    commit(home, cluster, "abc", fence="1/1", entered="ac")
    listed: list[StoredPlace] = [DB.at("a"), DB.at("b"), OtherText("alone")]
    other = SecretKey("default", "other", "k")
    assert entered_since(home.git, cluster, listed, last_known=known) == {DB.at("a")}
    assert entered_since(home.git, cluster, [other], last_known=known) == set(), "nobody asks for it"
    for unknown in ("", "0" * 40):
        assert entered_since(home.git, cluster, listed, last_known=unknown) == set(), "nobody knows since when"


def test_a_move_is_found_behind_many_commits(home: StoppedHome) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, set(), fence="2/4", taken=3)
    for number in range(30):
        home.commit(cluster, f"later {number}", trailers={"Edgewright-Fence": "2/5"})
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/a", "default/db/b", "default/db/c")


OLD_SUBJECT = "Remove the workloads of press-shop"
"""The subject of a removal commit up to 0.3.0."""


def removed(
    home: StoppedHome,
    cluster: UUID,
    *,
    fence: str = "1/3",
    subject: str = "Empty press-shop",
    marked: bool = True,
    undoes: CommitId | None = None,
) -> CommitId:
    """As the step of a deletion leaves it: the workloads of the cluster are gone.

    Args:
        marked: whether a trailer says what the commit is; up to 0.3.0 none did.
        undoes: the removal that a restore has undone, by the same commit: somebody has made one of several.
    """
    head = home.git.head(cluster)
    assert head is not None
    trailers = [("Edgewright-Fence", fence), *([(REMOVAL_TRAILER, "workloads")] if marked else [])]
    trailers += [(PUT_BACK_TRAILER, undoes)] if undoes else []
    message = CommitMessage(subject=subject, actor="test", trailers=tuple(trailers))
    changes = workload_removal(home.git.list(cluster, "", at=head))
    return home.git.commit(cluster, changes, message, expected_head=head)


def files(home: StoppedHome, cluster: UUID) -> dict[str, bytes | None]:
    head = home.git.head(cluster) or ""
    return {path: home.git.read(cluster, path, at=head) for path in home.git.list(cluster, "", at=head)}


def pushed(home: StoppedHome, cluster: UUID, changes: dict[str, bytes | None]) -> None:
    home.git.commit(
        cluster, changes, CommitMessage(subject="Push", actor="app"), expected_head=home.git.head(cluster)
    )


def working(home: StoppedHome) -> UUID:
    """A cluster with secrets, and with workloads that somebody has pushed."""
    cluster = commissioned(home)
    pushed(home, cluster, {"by-hand/app.yaml": b"app", "by-hand/other.yaml": b"other"})
    return cluster


@pytest.mark.parametrize("archived", [True, False], ids=["archived", "in service"])
def test_what_a_deletion_after_the_backup_removed_is_put_back(home: StoppedHome, archived: bool) -> None:
    cluster = working(home)
    before = files(home, cluster)
    made = home.back_up()
    removed(home, cluster)
    assert "by-hand/app.yaml" not in files(home, cluster)
    assert PATH not in files(home, cluster)
    if archived:
        home.git.archive(cluster)
    home.restore(made, keep_repositories=True)
    assert files(home, cluster) == before
    assert listed(home, cluster) == (), "nothing has to be entered again"


def test_the_removal_of_an_earlier_version_is_known_by_its_subject(home: StoppedHome) -> None:
    cluster = working(home)
    before = files(home, cluster)
    made = home.back_up()
    removed(home, cluster, subject=OLD_SUBJECT, marked=False)
    home.restore(made, keep_repositories=True)
    assert files(home, cluster) == before


def test_a_commit_of_the_centre_that_says_nothing_of_a_removal_is_not_undone(home: StoppedHome) -> None:
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster, marked=False)
    head = home.git.head(cluster)
    home.restore(made, keep_repositories=True)
    assert home.git.head(cluster) == head


def test_a_removal_and_its_end_made_one_commit_by_hand_are_not_undone(home: StoppedHome) -> None:
    cluster = working(home)
    made = home.back_up()
    head = removed(home, cluster, undoes=home.git.head(cluster))
    home.restore(made, keep_repositories=True)
    assert home.git.head(cluster) == head


def test_a_restore_says_that_it_has_put_something_back(home: StoppedHome, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster)
    home.restore(made, keep_repositories=True)
    told = "1 have back what a deletion after the backup removed: secrets and workloads."
    assert told in capsys.readouterr().out
    home.restore(made, keep_repositories=True)
    assert "have back" not in capsys.readouterr().out


def test_no_fence_of_before_a_restore_counts_for_a_change_of_after_it(home: StoppedHome) -> None:
    """A gateway raises one for each change before it tells of a refusal."""
    cluster = commissioned(home)
    made = home.back_up()
    home.git.raise_fence(cluster, "1/3")  # of a removal, say, that the backup does not know
    home.restore(made, keep_repositories=True)
    number = home.git.fence_number(cluster)
    home.git.raise_fence(cluster, "1/3", once=True)
    assert home.git.fence_number(cluster) == number + 1


def test_of_a_repository_that_is_not_ahead_the_newest_commits_are_enough(home: StoppedHome) -> None:
    cluster = working(home)
    for number in range(30):
        home.commit(cluster, f"{number}", trailers={"Edgewright-Fence": f"1/{number}"})
    limits: list[int] = []

    class Watched(BareGitServer):
        def log(
            self,
            repository: UUID,
            *,
            limit: int,
            back_to: Collection[CommitId] = (),
            only: Callable[[CommitSummary], bool] | None = None,
            until: Callable[[CommitSummary], bool] | None = None,
        ) -> Sequence[CommitSummary]:
            limits.append(limit)
            return super().log(repository, limit=limit, back_to=back_to, only=only, until=until)

    assert removal_undone(Watched(home.git.root), cluster) is None
    assert len(limits) == 1
    assert limits[0] < 30


def test_what_was_changed_since_the_removal_stays_as_it_is(home: StoppedHome) -> None:
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster)
    pushed(home, cluster, {"by-hand/app.yaml": b"newer"})
    home.restore(made, keep_repositories=True)
    found = files(home, cluster)
    assert (found["by-hand/app.yaml"], found["by-hand/other.yaml"]) == (b"newer", b"other")


def test_a_removal_is_undone_once(home: StoppedHome) -> None:
    """Somebody deletes a file after the restore; the next restore of the same backup leaves it deleted."""
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster)
    home.restore(made, keep_repositories=True)
    pushed(home, cluster, {"by-hand/app.yaml": None})
    head = home.git.head(cluster)
    home.restore(made, keep_repositories=True)
    assert home.git.head(cluster) == head


def test_a_removal_that_was_rendered_over_is_not_undone(home: StoppedHome) -> None:
    """Up to 0.3.0 a restore took it for what is wanted: that was years ago, and everybody has lived with it since."""
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster)
    commit(home, cluster, {"d"}, fence="1/9")
    head = home.git.head(cluster)
    home.restore(made, keep_repositories=True)
    assert home.git.head(cluster) == head


def test_a_removal_is_found_behind_many_pushes_and_the_end_of_a_move_that_it_overtook(home: StoppedHome) -> None:
    cluster = working(home)
    made = home.back_up()
    removed(home, cluster, fence="2/4")
    commit(home, cluster, set(), fence="2/4", taken=0)
    for number in range(30):
        pushed(home, cluster, {"by-hand/later.yaml": f"{number}".encode()})
    home.restore(made, keep_repositories=True)
    assert files(home, cluster)["by-hand/app.yaml"] == b"app"
    assert listed(home, cluster) == ()


def test_a_push_that_only_sounds_like_a_removal_is_not_undone(home: StoppedHome) -> None:
    cluster = working(home)
    made = home.back_up()
    message = CommitMessage(subject=OLD_SUBJECT, actor="app")
    home.git.commit(cluster, {"by-hand/app.yaml": None}, message, expected_head=home.git.head(cluster))
    home.restore(made, keep_repositories=True)
    assert "by-hand/app.yaml" not in files(home, cluster)


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "asked for"])
def test_a_deletion_that_the_backup_knows_is_undone_only_where_it_can_still_be_taken_back(
    home: StoppedHome, begun: bool
) -> None:
    cluster = working(home)

    async def end() -> None:
        async with home.store() as store:
            await store.wishes.request_deletion(cluster, actor="test")
            if begun:
                row = await store.row(cluster)
                await store.steps.begin_deletion(Fence(cluster=cluster, generation=row.generation, change=row.change))

    asyncio.run(end())
    made = home.back_up()
    removed(home, cluster)
    home.git.archive(cluster)
    home.restore(made, keep_repositories=True)
    if begun:
        assert not home.git.exists(cluster)
    else:
        assert files(home, cluster)["by-hand/app.yaml"] == b"app"
