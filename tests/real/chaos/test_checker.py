"""The checker of the chaos runs proves itself: whatever promise is broken in the stores, it names it."""

import asyncio
import base64
import json
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest

from tools.chaos.checker import check_stores
from tools.chaos.edge_keys import EdgeKey, read_keys
from tools.chaos.embedded_centre import EmbeddedCentre
from tools.chaos.git_mutants import REPOSITORIES, git
from tools.chaos.journal import JournalLine, read_lines
from tools.chaos.mutants import SECRETIVE, Home, Mutant, copy_home
from tools.chaos.put_backs import PutBack
from tools.chaos.repositories import CheckedRepository, is_secret
from tools.chaos.row_mutants import ROWS
from tools.chaos.run import ChaosPlan, run
from tools.chaos.sealed import Opener
from tools.chaos.stores import Stores, read_stores, read_tables

pytestmark = [pytest.mark.real, pytest.mark.timeout(1900)]

SHOWN = 5
PEACE = ChaosPlan(seed=2340, kills=0, lives=2)
"""A seed whose few lives leave clusters that are there, removed, deleted and moved, one that was paused, one whose
deletion was thought over, and a secret that was refused."""
PUSHES = ChaosPlan(seed=5134, kills=0, lives=2)
"""A seed whose few lives leave a cluster with a push, and one with a secret that was deleted."""


@dataclass(frozen=True)
class Finished:
    """A small run in which nothing was killed."""

    home: Path
    stores: Stores
    lines: list[JournalLine]
    keys: list[EdgeKey]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return _played(tmp_path_factory.mktemp("peace"), PEACE)


@pytest.fixture(scope="module")
def with_pushes(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return _played(tmp_path_factory.mktemp("pushes"), PUSHES)


def _played(folder: Path, plan: ChaosPlan) -> Finished:
    ran = asyncio.run(run(folder, plan, EmbeddedCentre(folder)))
    assert ran.left == ()
    return Finished(ran.home, ran.stores, read_lines(ran.journal), read_keys(ran.keys))


def test_stores_of_a_run_in_peace_keep_every_promise(finished: Finished) -> None:
    assert check_stores(finished.stores, finished.lines, finished.keys) == []


def test_the_real_kubeseal_opens_what_the_checker_opens(finished: Finished, kubeseal: Path, tmp_path: Path) -> None:
    opener, key_file = Opener(finished.keys), tmp_path / "key.pem"
    documents = [text for repository in finished.stores.repositories for text in _secrets(repository)]
    assert documents
    for document in documents[:SHOWN]:
        values = opener.values(document)
        number = next(iter(values.values())).key
        assert number is not None
        key_file.write_text(finished.keys[number].private)
        command = [str(kubeseal), "--recovery-unseal", "--recovery-private-key", str(key_file)]
        done = subprocess.run(command, input=document, capture_output=True, text=True, check=True)
        found = {key: base64.b64decode(value).decode() for key, value in json.loads(done.stdout)["data"].items()}
        assert found == {place.rpartition("/")[2]: opened.value for place, opened in values.items()}


def _secrets(repository: CheckedRepository) -> list[str]:
    return [repository.blobs[blob] for path, blob in repository.files.items() if is_secret(path)]


def test_two_writers_of_one_revision_who_were_both_told_yes_are_named(finished: Finished) -> None:
    """A lost update that the stores alone cannot show: the entry is as the second one has left it."""
    contested = [line for line in finished.lines if "contest" in line.asked]
    assert Counter(line.outcome for line in contested)["no"] * 2 == len(contested) > 0
    lines = [replace(line, outcome="yes", status=200) if "contest" in line.asked else line for line in finished.lines]
    assert "impossible_answer" in {
        violation.name for violation in check_stores(finished.stores, lines, finished.keys)
    }


@pytest.mark.parametrize("mutant", ROWS, ids=lambda mutant: mutant.name)
def test_a_promise_broken_in_the_database_is_named(finished: Finished, mutant: Mutant, tmp_path: Path) -> None:
    home = copy_home(finished.home, tmp_path / "home", finished.lines, finished.keys, repositories=False)
    mutant.plant(home)
    stores = Stores(read_tables(home.path), finished.stores.repositories)
    found = check_stores(stores, finished.lines, finished.keys)
    assert mutant.caught_as in {violation.name for violation in found}, found


@pytest.mark.parametrize("mutant", REPOSITORIES, ids=lambda mutant: mutant.name)
def test_a_promise_broken_in_a_repository_is_named(with_pushes: Finished, mutant: Mutant, tmp_path: Path) -> None:
    home = copy_home(with_pushes.home, tmp_path / "home", with_pushes.lines, with_pushes.keys)
    mutant.plant(home)
    found = check_stores(read_stores(home.path), with_pushes.lines, with_pushes.keys)
    assert mutant.caught_as in {violation.name for violation in found}, found


@dataclass(frozen=True)
class OldCopy:
    """Stores whose last repository with a secret lacks all that was committed after its first commit."""

    home: Home
    cluster: str
    put_back: PutBack

    def found(self, with_pushes: Finished) -> set[str]:
        stores = read_stores(self.home.path)
        violations = check_stores(stores, with_pushes.lines, with_pushes.keys, [self.put_back])
        return {f"{violation.name}: {violation.detail}" for violation in violations if "untold" in violation.name}


@pytest.fixture
def old_copy(with_pushes: Finished, tmp_path: Path) -> OldCopy:
    home = copy_home(with_pushes.home, tmp_path / "home", with_pushes.lines, with_pushes.keys)
    for repository in home.open_repositories(SECRETIVE):
        if any(is_secret(path) for path in repository.files):
            git(repository.folder, "update-ref", "refs/heads/main", repository.commits[0].id)
            return OldCopy(home, repository.uuid, PutBack(repository.uuid, 0.0, 0.0, 1e9, 1e9))
    raise AssertionError("the run has left no secret")


def _tell(home: Home, cluster: str, *, listed: bool) -> None:
    """As the centre would: an event, and perhaps what has to be entered again."""
    numbers = {"cluster": UUID(cluster).hex, "new": UUID(int=1).hex}
    named = ", ".join(commit[:12] for commit in _recorded(home, cluster))
    with home.database() as database:
        database.execute(
            "INSERT INTO events SELECT max(position) + 1, :new, :cluster, 'centre', 'git.drifted', max(at), :named, "
            "'{}' FROM events",
            {**numbers, "named": named},
        )
        if listed:
            places = sorted(
                {
                    f"{namespace}/{name}/{key}"
                    for namespace, name, key in database.execute(
                        "SELECT detail ->> 'namespace', detail ->> 'name', detail ->> 'key' FROM events "
                        "WHERE cluster = :cluster AND kind = 'secret.put'",
                        {"cluster": numbers["cluster"]},
                    )
                }
            )
            database.execute(
                "UPDATE clusters SET must_reenter = ? WHERE uuid = ?", [json.dumps(places), numbers["cluster"]]
            )


def _recorded(home: Home, cluster: str) -> list[str]:
    with home.database() as database:
        found = database.execute(
            "SELECT coalesce(detail ->> 'commit', detail ->> 'new') FROM events WHERE cluster = ?",
            [UUID(cluster).hex],
        )
        return [commit for (commit,) in found if commit]


def test_a_put_back_that_nobody_was_told_of_is_named(old_copy: OldCopy, with_pushes: Finished) -> None:
    found = old_copy.found(with_pushes)
    assert any("no git.drifted tells" in each for each in found), found
    assert any("is not listed to be entered again" in each for each in found), found
    assert any("which no event names" in each for each in found), found


def test_a_put_back_that_was_told_without_the_secrets_that_it_lost_is_named(
    old_copy: OldCopy, with_pushes: Finished
) -> None:
    _tell(old_copy.home, old_copy.cluster, listed=False)
    found = old_copy.found(with_pushes)
    assert found
    assert all("is not listed to be entered again" in each for each in found), found


def test_a_put_back_that_was_told_whole_breaks_no_promise_of_its_own(
    old_copy: OldCopy, with_pushes: Finished
) -> None:
    _tell(old_copy.home, old_copy.cluster, listed=True)
    assert old_copy.found(with_pushes) == set()
