"""`doctor --repositories` names the cluster whose repository is not what was written."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update

from edgewright.adapters.database.tables import clusters
from edgewright.adapters.git.bare import BareGitServer
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.initialise import initialise_storage
from edgewright.cli.repository_checks import MOST_NAMED, repository_checks
from edgewright.domain.cluster import Desired
from edgewright.ports.git_server import CommitMessage
from edgewright.settings import Settings
from edgewright.wiring import open_ports


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path)
    asyncio.run(initialise_storage(settings))
    return settings


def cluster(settings: Settings, name: str, **columns: object) -> UUID:
    """With a repository of one commit, which its edge has unless ``columns`` says something else."""
    uuid = uuid4()
    server = BareGitServer(settings.effective_git_root)
    server.create_repository(uuid)
    head = server.commit(uuid, {"README.md": b"x"}, CommitMessage("Populate", "desk"), expected_head=None)

    async def write() -> None:
        async with open_ports(settings) as ports:
            body = {"name": name, "namespace": "edgewright"}
            await ports.wishes.write_configuration(uuid, body, actor="token:test", create_object=True)
            async with ports.database.write() as connection:
                known = {"observed_revision": head, **columns}
                await connection.execute(update(clusters).where(clusters.c.uuid == uuid).values(**known))

    asyncio.run(write())
    return uuid


def wrong(found: Sequence[Check]) -> list[tuple[str, str]]:
    assert all(check.fix for check in found if check.verdict is CheckVerdict.WRONG)
    return [(check.name, check.sentence) for check in found if check.verdict is CheckVerdict.WRONG]


def test_whole_repositories_are_one_line(settings: Settings) -> None:
    before = BareGitServer(settings.effective_git_root)
    cluster(settings, "one")
    before.archive(cluster(settings, "two", desired=Desired.DELETED))
    [check] = repository_checks(settings)
    assert check.verdict is CheckVerdict.OK
    assert ", 1 of them archived," in check.sentence


def test_the_cluster_of_a_damaged_repository_is_named(settings: Settings) -> None:
    cluster(settings, "whole")
    damaged = cluster(settings, "paint-shop")
    folder = settings.effective_git_root / f"{damaged}.git"
    (folder / "HEAD").unlink()
    [(name, sentence)] = wrong(repository_checks(settings))
    assert name == "repository of paint-shop"
    assert sentence == f"{damaged}.git: It has lost its file HEAD, so Git does not recognise it."


def test_a_repository_that_is_gone_is_named_if_an_edge_has_applied_it(settings: Settings) -> None:
    gone = cluster(settings, "gone")
    new = cluster(settings, "new", observed_revision=None)
    deleting = cluster(settings, "deleting", desired=Desired.DELETED)
    for uuid in (gone, new, deleting):
        BareGitServer(settings.effective_git_root).archive(uuid)
    assert [name for name, _ in wrong(repository_checks(settings))] == ["repository of gone"]


def test_a_copy_that_is_older_than_its_edge_is_named(settings: Settings) -> None:
    cluster(settings, "put-back", observed_revision="a" * 40)
    [(name, sentence)] = wrong(repository_checks(settings))
    assert name == "repository of put-back"
    assert "a" * 40 in sentence


def test_the_list_is_bounded(settings: Settings) -> None:
    root = settings.effective_git_root
    for _ in range(MOST_NAMED + 3):
        (root / f"{uuid4()}.git").mkdir(parents=True)
    found = wrong(repository_checks(settings))
    assert len(found) == MOST_NAMED + 1
    assert found[-1] == ("repositories", "3 more are damaged.")


def test_repositories_are_read_without_a_database(settings: Settings) -> None:
    uuid = cluster(settings, "paint-shop")
    (settings.effective_git_root / f"{uuid}.git" / "HEAD").unlink()
    for file in settings.home.glob("edgewright.db*"):
        file.unlink()
    (settings.home / "edgewright.db").write_bytes(b"not a database")
    [(name, _)] = wrong(repository_checks(settings))
    assert name == "repository"


def test_a_home_without_anything_stays_without_anything(tmp_path: Path) -> None:
    [check] = repository_checks(Settings(home=tmp_path))
    assert check.verdict is CheckVerdict.OK
    assert list(tmp_path.iterdir()) == []


def test_a_shared_repository_that_is_missing_or_damaged_is_named(settings: Settings) -> None:
    async def make(name: str) -> UUID:
        async with open_ports(settings) as ports:
            made, _ = await SharedRepositories.on(ports).make(name, actor="token:test")
            return made.uuid

    server = BareGitServer(settings.effective_git_root)
    lost, damaged, whole = (asyncio.run(make(name)) for name in ("lost", "damaged", "whole"))
    for each in (damaged, whole):
        server.commit(each, {"README.md": b"x"}, CommitMessage("First", "desk"), expected_head=None)
    [check] = repository_checks(settings)
    assert check.verdict is CheckVerdict.OK
    server.folder(lost).rename(settings.home / "elsewhere")
    (server.folder(damaged) / "HEAD").unlink()
    assert wrong(repository_checks(settings)) == [
        ("repository shared/damaged", f"{damaged}.git: It has lost its file HEAD, so Git does not recognise it."),
        ("repository shared/lost", f"{lost}.git is not there, but edges may read it."),
    ]
