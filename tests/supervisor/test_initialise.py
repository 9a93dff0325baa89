"""An installation is made ready once, and making it ready again changes nothing."""

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from stopped_home import StoppedHome

from edgewright.adapters.database.engine.engine import open_database
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.temporal import nudging
from edgewright.cli import initialise
from edgewright.cli.demo import demo_is_due
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.initialise import initialise_storage, initialise_temporal, rebuild_workflows
from edgewright.cli.service_checks import service_checks
from edgewright.domain.default_entries import default_entries
from edgewright.domain.wellknown import APP_CLUSTER_SETTINGS, APP_CONFIG_SCHEMA, REPOSITORY_HELM_CHARTS
from edgewright.errors import Waiting
from edgewright.ports.fleet import FleetUnavailable
from edgewright.settings import Settings
from edgewright.wiring import open_ports


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, organisation="Acme")


async def content(settings: Settings) -> dict[str, str]:
    """Every entry with its revision."""
    async with open_ports(settings) as ports:
        entries = [await ports.config.get(entry.app, entry.object) for entry in default_entries("Acme")]
    return {f"{entry.app}/{entry.object}": entry.etag for entry in entries if entry}


async def test_first_start_makes_entries_charts_and_token(settings: Settings) -> None:
    storage = await initialise_storage(settings)
    assert storage.token_written
    assert len(await content(settings)) == len(default_entries("Acme"))
    assert BareGitServer(settings.effective_git_root).head(REPOSITORY_HELM_CHARTS)
    async with open_ports(settings) as ports:
        [token] = await ports.operators.list()
    text = storage.token_file.read_text().strip()
    assert token.secret_sha256 == hashlib.sha256(text.encode()).digest()


async def test_later_starts_change_nothing(settings: Settings) -> None:
    await initialise_storage(settings)
    before = await content(settings), BareGitServer(settings.effective_git_root).head(REPOSITORY_HELM_CHARTS)
    storage = await initialise_storage(settings)
    assert not storage.token_written
    assert before == (
        await content(settings),
        BareGitServer(settings.effective_git_root).head(REPOSITORY_HELM_CHARTS),
    )


def test_starts_at_once_make_one_token(settings: Settings) -> None:
    asyncio.run(initialise_storage(settings)).token_file.unlink()
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda _: asyncio.run(initialise_storage(settings)), range(4)))
    assert sorted(storage.token_written for storage in started) == [False, False, False, True]

    async def tokens() -> int:
        async with open_ports(settings) as ports:
            return len(await ports.operators.list())

    assert asyncio.run(tokens()) == 2  # the one whose file was lost, and one new


async def test_organisation_of_the_first_start_is_kept(settings: Settings) -> None:
    await initialise_storage(settings)
    before = await content(settings)
    with pytest.raises(CliError, match="belongs to the organisation Acme") as caught:
        await initialise_storage(settings.model_copy(update={"organisation": "Other"}))
    assert caught.value.exit_code == ExitCode.REFUSED
    assert await content(settings) == before


async def test_repositories_that_are_not_there_are_not_begun_anew_unasked(tmp_path: Path) -> None:
    """The folder of a volume is there and empty while it is not mounted."""
    home = StoppedHome(tmp_path / "home", tmp_path / "backups")
    await home.make()
    async with home.store() as store:
        await store.create()
    root, elsewhere = home.settings.effective_git_root, tmp_path / "elsewhere"
    root.rename(elsewhere)
    root.mkdir()
    with pytest.raises(CliError, match=r"The database knows 1 cluster, and the Git storage .* is empty\.") as caught:
        await initialise_storage(home.settings)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert not list(root.iterdir())
    root.rmdir()
    elsewhere.rename(root)
    await initialise_storage(home.settings)

    shutil.rmtree(root)
    done = await asyncio.to_thread(home.command, "admin", "init", "--new-git-storage")
    assert done.returncode == 0, done.stderr
    assert "Temporal is started and prepared by `edgewright up`." in done.stdout
    assert BareGitServer(root).head(REPOSITORY_HELM_CHARTS)


async def test_a_home_of_an_earlier_version_takes_the_settings_that_clusters_have_by_now(settings: Settings) -> None:
    await initialise_storage(settings)
    place = (APP_CONFIG_SCHEMA, APP_CLUSTER_SETTINGS)
    async with open_ports(settings) as ports:
        config = ports.config
        entry = await config.get(*place)
        assert entry is not None
        properties = {**entry.body["properties"], "labels": {"type": "object", "maxProperties": 3}}
        del properties["check_in"]
        await config.put(*place, {**entry.body, "properties": properties}, actor="test")
        await initialise_storage(settings)
        extended = await config.get(*place)
        assert extended is not None and extended.body["properties"].keys() == entry.body["properties"].keys()
        assert extended.body["properties"]["labels"]["maxProperties"] == 3, "what somebody has changed stays"
        await initialise_storage(settings)
        again = await config.get(*place)
        assert again is not None and again.etag == extended.etag


async def test_demo_is_due_on_a_fresh_home_only(settings: Settings) -> None:
    await initialise_storage(settings)
    await initialise_storage(settings, demo=True)
    assert not demo_is_due(settings.home)


async def test_demo_stays_due_when_the_first_start_is_cut_off(settings: Settings) -> None:
    await initialise_storage(settings, demo=True)
    await initialise_storage(settings, demo=True)
    assert demo_is_due(settings.home)


async def test_temporal_that_is_away_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.cli.initialise._PATIENCE_SECONDS", 0.1)
    with pytest.raises(FleetUnavailable, match=r"127\.0\.0\.1:1"):
        await initialise_temporal(settings.model_copy(update={"temporal_address": "127.0.0.1:1"}))


class OneRefuses:
    """Temporal with a workflow for each cluster, one of which takes no message."""

    def __init__(self, wedged: UUID, clusters: Iterable[UUID]) -> None:
        self.wedged: UUID | None = wedged
        self.nudged: set[UUID] = set()
        self._clusters = set(clusters)

    async def running(self) -> set[UUID]:
        return self._clusters

    async def healthy(self) -> bool:
        return True

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        if cluster == self.wedged:
            raise Waiting("Temporal does not answer (INVALID_ARGUMENT).")
        self.nudged.add(cluster)


@pytest.mark.parametrize("news", ["external URL", "renderer"])
async def test_one_wedged_cluster_keeps_no_start_and_no_other_cluster_from_what_is_new(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, news: str
) -> None:
    await initialise_storage(settings)
    wedged, *others = clusters = [uuid4() for _ in range(4)]
    async with open_ports(settings) as ports:
        for number, cluster in enumerate(clusters):
            body = {"name": f"edge-{number}", "namespace": "edgewright"}
            await ports.wishes.write_configuration(cluster, body, actor="token:test", create_object=True)
    fleet = OneRefuses(wedged, clusters)

    @asynccontextmanager
    async def temporal(_settings: Settings) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(initialise, "_temporal", temporal)
    monkeypatch.setattr(initialise, "TemporalFleet", lambda _client, **_: fleet)
    monkeypatch.setattr(nudging, "PAUSE_SECONDS", 0)
    fleet.wedged = None
    await rebuild_workflows(settings)
    fleet.nudged.clear()
    await rebuild_workflows(settings)
    assert fleet.nudged == set(), "nothing is new"

    if news == "renderer":
        monkeypatch.setattr(initialise, "RENDERER_VERSION", "the-next-one")
    else:
        settings = settings.model_copy(update={"external_url": "https://centre.example.com"})
    fleet.wedged = wedged
    assert await rebuild_workflows(settings) == 0
    assert fleet.nudged == set(others)
    fleet.wedged = None
    await rebuild_workflows(settings)
    assert fleet.nudged == set(clusters), "the next start wakes what this one could not"
    fleet.nudged.clear()
    await rebuild_workflows(settings)
    assert fleet.nudged == set()


async def test_doctor_finds_what_a_good_installation_has(settings: Settings) -> None:
    await initialise_storage(settings)
    verdicts = {check.name: check.verdict for check in await service_checks(settings)}
    assert verdicts == {
        "database": "ok",
        "admin token": "ok",
        "Flux for edges": "warning",
    }


@pytest.mark.parametrize(
    ("mode", "text", "said"),
    [(0o644, None, "can be read by other users"), (0o600, "nonsense", "does not hold a valid token")],
)
async def test_doctor_finds_a_bad_token_file(settings: Settings, mode: int, text: str | None, said: str) -> None:
    storage = await initialise_storage(settings)
    if text:
        storage.token_file.write_text(text)
    storage.token_file.chmod(mode)
    [check] = [check for check in await service_checks(settings) if check.name == "admin token"]
    assert (check.verdict, said in check.sentence, bool(check.fix)) == ("wrong", True, True)


async def test_doctor_finds_a_damaged_database(settings: Settings) -> None:
    (settings.home / "edgewright.db").write_text("this is not a database, whatever its name says" * 100)
    [check] = [check for check in await service_checks(settings) if check.name == "database"]
    assert check.verdict == "wrong"


async def test_doctor_finds_a_database_that_was_never_migrated(settings: Settings) -> None:
    (settings.home / "edgewright.db").touch()
    (settings.home / "admin-token").write_text(f"ew_{'0' * 16}_{'A' * 43}\n")
    [check] = [check for check in await service_checks(settings) if check.name == "database"]
    assert (check.verdict, "The schema is none" in check.sentence) == ("wrong", True)


@pytest.mark.parametrize("ahead", [-90, 90])
async def test_doctor_finds_a_clock_that_is_not_the_databases(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """SQLite's clock is this machine's own: the database is given another, as one on another machine may have."""
    await initialise_storage(settings)
    assert not [check for check in await service_checks(settings) if check.name == "database clock"]
    elsewhere = partial(open_database, clock=lambda: datetime.now(UTC) - timedelta(seconds=ahead))
    monkeypatch.setattr("edgewright.wiring.open_database", elsewhere)
    [check] = [check for check in await service_checks(settings) if check.name == "database clock"]
    assert check.verdict == "wrong"
    assert f"This machine's clock is {ahead:+d} s off the database's clock" in check.sentence
