"""A restore checks first, overwrites nothing, and makes database and repositories fit each other."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import Store
from stopped_home import StoppedHome

from edgewright.adapters.database.engine.sole_gateway import sole_gateway
from edgewright.application.repository_uses import RepositoryUses
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.cli import restore as restoring
from edgewright.cli.backup_manifest import part_of
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import exclusive_home
from edgewright.domain.cluster import Desired, Fence, Phase
from edgewright.domain.projection import Done
from edgewright.errors import EdgewrightError
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitMessage, WriterFence
from edgewright.ports.secret_staging import StagedState

pytestmark = pytest.mark.timeout(300)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def bundle_in(backup: Path) -> Path:
    return next((backup / "repositories").glob("*.bundle"))


def edit(backup: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    change(manifest)
    (backup / "manifest.json").write_text(json.dumps(manifest))


def link(backup: Path) -> None:
    outside = backup.parent / "outside"
    (backup / "admin-token").rename(outside)
    (backup / "admin-token").symlink_to(outside)


TAMPERED: dict[str, Callable[[Path], object]] = {
    "database truncated": lambda backup: truncate(backup / "edgewright.db"),
    "database changed": lambda backup: flip(backup / "edgewright.db"),
    "repository truncated": lambda backup: truncate(bundle_in(backup)),
    "repository changed": lambda backup: flip(bundle_in(backup)),
    "repository missing": lambda backup: bundle_in(backup).unlink(),
    "something added": lambda backup: (backup / "repositories" / "other").touch(),
    "token behind a link": link,
    "manifest truncated": lambda backup: truncate(backup / "manifest.json"),
    "manifest missing": lambda backup: (backup / "manifest.json").unlink(),
    "place outside": lambda backup: edit(backup, lambda m: m["repositories"][0].update(place="../../x.git")),
    "other file of the home": lambda backup: edit(backup, lambda m: m["home"].update(lock=m["database"])),
    "other head": lambda backup: edit(backup, lambda m: m["repositories"][0].update(head="0" * 40)),
    "newer format": lambda backup: edit(backup, lambda m: m.update(format=2)),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_backup_that_is_not_what_it_was_is_refused_before_anything_is_touched(home: StoppedHome, how: str) -> None:
    home.create()
    made = home.back_up()
    before = home.content()
    TAMPERED[how](made)
    with pytest.raises((CliError, EdgewrightError)):
        home.restore(made)
    assert home.content() == before


def test_a_repository_of_another_backup_is_refused_even_if_the_manifest_names_it(home: StoppedHome) -> None:
    cluster = home.create()
    older = home.back_up()
    home.commit(cluster, "second")
    made, before = home.back_up(), home.content()
    foreign = shutil.copyfile(
        older / "repositories" / f"{cluster}.bundle", made / "repositories" / f"{cluster}.bundle"
    )

    def name_it(manifest: dict[str, Any]) -> None:
        [kept] = [kept for kept in manifest["repositories"] if kept["place"] == f"{cluster}.git"]
        kept["bundle"] = part_of(foreign).model_dump()

    edit(made, name_it)
    with pytest.raises(EdgewrightError, match="head"):
        home.restore(made)
    assert home.content() == before


def test_a_database_of_a_newer_version_is_refused_before_anything_is_touched(home: StoppedHome) -> None:
    made = home.back_up()
    with closing(sqlite3.connect(made / "edgewright.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999_of_the_future'")
    edit(made, lambda manifest: manifest.update(database=part_of(made / "edgewright.db").model_dump()))
    before = home.content()
    with pytest.raises(CliError, match="this version cannot read"):
        home.restore(made)
    assert home.content() == before


def test_a_restore_refuses_while_something_runs(home: StoppedHome) -> None:
    made, before = home.back_up(), home.content()
    with exclusive_home(home.folder):
        refused = home.command("admin", "restore", str(made))
        assert (refused.returncode, "has it" in refused.stderr) == (ExitCode.REFUSED, True), refused.stderr
    with sole_gateway(home.settings.effective_database_url):
        refused = home.command("admin", "restore", str(made))
        assert (refused.returncode, "A gateway serves" in refused.stderr) == (ExitCode.REFUSED, True), refused.stderr
    assert home.content() == before


def test_what_was_there_is_moved_aside_and_the_command_says_where(home: StoppedHome) -> None:
    cluster = home.create()
    made = home.back_up()
    home.commit(cluster, "second")
    (home.folder / "temporal.db").write_text("histories")
    old = {name: (home.folder / name).read_bytes() for name in ("admin-token", "edgewright.db", "temporal.db")}
    head = home.git.head(cluster)
    done = home.command("admin", "restore", str(made))
    assert done.returncode == 0, done.stderr
    beside_home, beside_repositories = (
        next(folder.glob("before-restore-*")) for folder in (home.folder, home.settings.effective_git_root)
    )
    assert f"What was there is in {beside_home}\n" in done.stdout
    assert f"What was there is in {beside_repositories}\n" in done.stdout
    assert {name: (beside_home / name).read_bytes() for name in old} == old
    assert not (home.folder / "temporal.db").exists(), "it knows more than the database that was restored"
    assert (beside_repositories / f"{cluster}.git" / "refs/heads/main").read_text().strip() == head
    assert home.git.head(cluster) != head
    assert home.git.read(cluster, "edo/file", at=home.git.head(cluster) or "") == b"first"


def test_an_empty_home_is_restored_for_its_owner_only(home: StoppedHome, tmp_path: Path) -> None:
    cluster = home.create()
    made = home.back_up()
    other = StoppedHome(tmp_path / "other", home.backups)
    other.restore(made)
    assert other.git.head(cluster) == home.git.head(cluster)
    assert (other.folder / "admin-token").read_bytes() == (home.folder / "admin-token").read_bytes()
    for name in ("admin-token", "edgewright.db"):
        assert (other.folder / name).stat().st_mode & 0o077 == 0
    assert not [path for path in other.folder.rglob("*") if "restor" in path.name], "nothing is left over"


def test_the_key_of_webhooks_is_restored_with_the_webhook_that_it_signs_for(home: StoppedHome) -> None:
    key = home.folder / "webhook-key"
    before = key.read_text()
    made = home.back_up()
    key.write_text("00" * 32)  # as a home has it that was made anew
    home.restore(made)
    assert (key.read_text(), key.stat().st_mode & 0o777) == (before, 0o600)


def test_the_key_of_webhooks_stays_when_the_backup_is_of_a_version_that_had_none(home: StoppedHome) -> None:
    key = home.folder / "webhook-key"
    before = key.read_text()
    key.rename(home.folder / "kept")
    made = home.back_up()
    (home.folder / "kept").rename(key)
    home.restore(made)
    assert key.read_text() == before


def test_an_interrupted_restore_is_noticed_and_can_be_repeated(
    home: StoppedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = home.create()
    made = home.back_up()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(restoring, "_put_in_place", lambda _drafts: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            home.restore(made)
    for command in (("up",), ("admin", "init")):
        refused = home.command(*command)
        assert refused.returncode == ExitCode.REFUSED
        assert "was interrupted" in refused.stderr
    home.restore(made)
    assert home.git.head(cluster)
    assert not (home.folder / "restore-unfinished").exists()


def test_repositories_that_are_there_are_kept_and_missing_or_damaged_ones_restored(home: StoppedHome) -> None:
    ahead, missing, damaged = (home.create(name) for name in ("ahead", "missing", "damaged"))
    made = home.back_up()
    newer = home.commit(ahead, "second")
    shutil.rmtree(home.git.folder(missing))
    (home.git.folder(damaged) / "HEAD").unlink()
    home.restore(made, keep_repositories=True)
    assert home.git.head(ahead) == newer
    for cluster in (missing, damaged):
        assert home.git.read(cluster, "edo/file", at=home.git.head(cluster) or "") == b"first"


def test_fence_of_what_happened_after_the_backup_holds_up_no_restored_cluster(home: StoppedHome) -> None:
    """The database is back at a lower change; the repository that was kept knows of a higher one."""
    cluster = home.create()
    made = home.back_up()
    head = home.git.head(cluster)
    message = CommitMessage(subject="Change", actor="test")
    for number in range(3):
        newest = WriterFence(f"1/{900 + number}", home.git.fence_number(cluster))
        home.git.commit(cluster, {}, message, expected_head=head, fence=newest)
    home.restore(made, keep_repositories=True)
    row = asyncio.run(row_of(home, cluster))
    assert row.change < 900
    fence = WriterFence(f"1/{row.change}", home.git.fence_number(cluster))
    assert home.git.commit(cluster, {"edo/file": b"anew"}, message, expected_head=head, fence=fence) != head


def test_every_open_cluster_is_rendered_again_and_told_of_the_restore(home: StoppedHome) -> None:
    cluster, closed = home.create(), home.create("closed")

    async def publish() -> int:
        async with home.store() as store:
            done = Done(generation=1, commissioning=1, rendered_digest="d1")
            await store.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True, done=done)
            await store.wishes.request_deletion(closed, actor="test")
            await store.publish(closed, Phase.DELETED, ready=False)
            return await store.audit.last_position()

    last = asyncio.run(publish())
    change = asyncio.run(row_of(home, cluster)).change
    home.restore(home.back_up())
    row = asyncio.run(row_of(home, cluster))
    assert row.projection is not None
    assert (row.projection.done, row.change) == (Done(generation=1, commissioning=1), change + 1)

    async def told() -> list[str]:
        async with home.store() as store:
            [event] = [event for event in await store.audit.timeline(cluster) if event.kind == "centre.restored"]
            assert event.position > last + 1_000_000, "a reader that is ahead of the backup would miss it"
            return [str(found) for found in await store.directory.unfinished()]

    assert str(cluster) in asyncio.run(told())


def test_a_repository_that_was_archived_after_the_backup_is_in_service_again(home: StoppedHome) -> None:
    cluster, ending = home.create("came-back"), home.create("ending")

    async def end() -> None:
        async with home.store() as store:
            row = await store.wishes.request_deletion(ending, actor="test")
            await store.steps.begin_deletion(Fence(cluster=ending, generation=row.generation, change=row.change))

    asyncio.run(end())
    made = home.back_up()
    head = home.git.head(cluster)
    home.git.archive(cluster)
    home.git.archive(ending)
    home.restore(made, keep_repositories=True)
    assert home.git.head(cluster) == head
    assert not home.git.exists(ending), "its deletion goes on"
    assert asyncio.run(row_of(home, ending)).desired is Desired.DELETED


def shared_repositories(home: StoppedHome, store: Store) -> SharedRepositories:
    return SharedRepositories(store.config, home.git, RepositoryUses(store.config, store.directory, home.git))


@pytest.mark.parametrize("keep_repositories", [False, True])
def test_a_shared_repository_comes_back_with_its_entry(home: StoppedHome, *, keep_repositories: bool) -> None:
    async def make(name: str) -> UUID:
        async with home.store() as store:
            made, _ = await shared_repositories(home, store).make(name, actor="test")
            return made.uuid

    async def remove(name: str) -> None:
        async with home.store() as store:
            await shared_repositories(home, store).remove_named(name, actor="test")

    async def listed() -> set[str]:
        async with home.store() as store:
            return {each.name for each in await shared_repositories(home, store).all()}

    removed, empty = (asyncio.run(make(name)) for name in ("removed", "empty"))
    head = home.commit(removed, "kind: ConfigMap\n")
    made = home.back_up()
    for name in ("removed", "empty"):
        asyncio.run(remove(name))
    assert asyncio.run(listed()) == {"helm-charts"}
    home.restore(made, keep_repositories=keep_repositories)
    assert asyncio.run(listed()) == {"helm-charts", "removed", "empty"}
    assert home.git.head(removed) == head
    assert home.git.exists(empty)


def test_a_secret_that_was_committed_after_the_copy_is_not_committed_again(home: StoppedHome) -> None:
    cluster = home.create()

    async def stage() -> list[UUID]:
        async with home.store() as store:
            changes = [await store.change(cluster, key) for key in ("committed", "waiting")]
            for change in changes:
                await store.staging.stage([change])
            return [change.request for change in changes]

    committed, waiting = asyncio.run(stage())
    made = home.back_up()
    commit = home.commit(cluster, "sealed", trailers={"Edgewright-Request": str(committed)})
    for number in range(5):
        home.commit(cluster, f"later {number}")
    home.restore(made, keep_repositories=True)

    async def outcome() -> list[tuple[StagedState, str | None]]:
        async with home.store() as store:
            found = [await store.staging.request(request) for request in (committed, waiting)]
            return [(change.state, change.commit) for [change] in found]

    assert asyncio.run(outcome()) == [(StagedState.COMMITTED, commit), (StagedState.STAGED, None)]


def test_a_secret_whose_key_was_used_before_is_not_taken_for_that_of_then(home: StoppedHome) -> None:
    """The request of two days ago is forgotten, its commit is not."""
    cluster = home.create()
    request, then = uuid4(), datetime.now(UTC) - timedelta(days=2)
    home.commit(cluster, "sealed then", trailers={"Edgewright-Request": str(request)}, at=then)

    async def stage() -> None:
        async with home.store() as store:
            change = await store.change(cluster, "again", request=request, sealed_at=datetime.now(UTC))
            await store.staging.stage([change])

    asyncio.run(stage())
    made = home.back_up()
    home.restore(made, keep_repositories=True)

    async def states() -> list[StagedState]:
        async with home.store() as store:
            return [change.state for change in await store.staging.request(request)]

    assert asyncio.run(states()) == [StagedState.STAGED]


async def row_of(home: StoppedHome, cluster: UUID) -> ClusterRow:
    async with home.store() as store:
        return await store.row(cluster)
