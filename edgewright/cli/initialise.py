"""Makes an installation ready to be started: idempotent, and safe to be killed at any point.

Storage first (database, entries, organisation, repositories, charts, webhook key, admin token), then Temporal.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.adapters.temporal.client import connect
from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.adapters.temporal.nudging import nudge_all
from edgewright.adapters.temporal.setup import prepare, rebuild
from edgewright.adapters.webhook.key_file import FILE_NAME as WEBHOOK_KEY
from edgewright.adapters.webhook.key_file import KEY_BYTES
from edgewright.application.installation import ensure_installation_id
from edgewright.application.rendering import RENDERED_WITH, RENDERER_IN_FORCE
from edgewright.cli.admin_token import ensure_admin_token
from edgewright.cli.demo import want_demo
from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import one_setup_at_a_time
from edgewright.domain.default_entries import DefaultEntry, default_entries
from edgewright.domain.rendering import RENDERER_VERSION
from edgewright.domain.wellknown import (
    APP_CLUSTER_SETTINGS,
    APP_CONFIG_SCHEMA,
    APP_INSTALLATION,
    CLASS_SERVICE,
    REPOSITORY_HELM_CHARTS,
    SERVICE_CLUSTER_MANAGER,
)
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore, NewEntry
from edgewright.ports.fleet import Fleet, FleetUnavailable
from edgewright.settings import Settings
from edgewright.wiring import OpenPorts, open_ports

T = TypeVar("T")

_PATIENCE_SECONDS = 10.0
"""For a connection."""
_SERVES_SECONDS = 60.0
"""For a server that takes connections to serve."""


@dataclass(frozen=True)
class InitialisedStorage:
    """What the user is told about. ``token_written``: the token file is new."""

    token_file: Path
    token_written: bool


async def initialise_storage(
    settings: Settings, *, demo: bool = False, new_git_storage: bool = False
) -> InitialisedStorage:
    """Brings everything that is stored up to date.

    Args:
        demo: whether a fresh installation gets the cluster `demo` later.
        new_git_storage: the repositories are lost for good, and their clusters go on with an empty storage.

    Raises:
        CliError: the organisation is not the one of the first start; or the repositories of all clusters are gone.
        EdgewrightError: the database or the repositories cannot be used.
    """
    with one_setup_at_a_time(settings.home):
        return await _initialise_storage(settings, demo=demo, new_git_storage=new_git_storage)


async def _initialise_storage(settings: Settings, *, demo: bool, new_git_storage: bool) -> InitialisedStorage:
    async with open_ports(settings) as ports:
        await ports.database.migrate()
        config = ports.config
        if demo and await config.get(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER) is None:
            want_demo(settings.home)
        await _fix_organisation(config, settings.organisation)
        await ensure_installation_id(config)
        defaults = default_entries(settings.organisation)
        await config.install([NewEntry(entry.app, entry.object, entry.klass, entry.body) for entry in defaults])
        await _extend_settings_schema(config, defaults)
        if not new_git_storage:
            await _demand_git_storage(ports, settings.effective_git_root)
        chart = SealedSecretsChart(settings.sealing_chart, settings.registry_mirror)
        _publish(ports.repositories, chart)
        token_file = settings.home / "admin-token"
        ensure_webhook_key(settings.home / WEBHOOK_KEY)
        written = await ensure_admin_token(ports.operators, token_file)
    return InitialisedStorage(token_file, written)


def ensure_webhook_key(file: Path) -> None:
    """Makes the file that the signing secrets of webhooks are derived from, if it is not there.

    One that is there is never replaced, whatever it holds.
    """
    if not file.exists():
        write_atomically(file, secrets.token_bytes(KEY_BYTES).hex() + "\n", mode=0o600)
    elif file.stat().st_mode & 0o077:  # else left alone: it may be mounted read-only
        file.chmod(0o600)


async def _extend_settings_schema(config: ConfigStore, defaults: Sequence[DefaultEntry]) -> None:
    """Lets the schema of an earlier version take the settings that clusters have by now; nothing of it is changed."""
    place = (APP_CONFIG_SCHEMA, APP_CLUSTER_SETTINGS)
    there = await config.get(*place)
    body: Any = there.body if there else None
    known = body.get("properties") if isinstance(body, dict) else None
    wanted: Any = next(entry.body for entry in defaults if (entry.app, entry.object) == place)
    if not isinstance(known, dict) or wanted["properties"].keys() <= known.keys():
        return
    await config.put(*place, {**body, "properties": {**wanted["properties"], **known}}, actor="centre")


async def initialise_temporal(settings: Settings) -> None:
    """Makes what is missing of the namespace, its search attributes and the schedule of the sweep.

    Raises:
        FleetUnavailable: Temporal does not answer.
    """
    async with _temporal(settings) as client:
        await _once_it_serves(lambda: prepare(client, sweep_every=timedelta(seconds=settings.sweep_seconds)))


async def rebuild_workflows(settings: Settings) -> int:
    """Starts the workflow of every cluster that has none, because Temporal's file was lost; returns how many, of a
    start that had to be tried again those of the last try."""
    async with _temporal(settings) as client, open_ports(settings) as ports:
        fleet = TemporalFleet(client, name_of=ports.directory.name_of)
        missing = await _once_it_serves(lambda: rebuild(fleet, ports.directory))
        await _render_anew(ports.config, ports.directory, fleet, settings.effective_external_url)
        return missing


async def _once_it_serves(work: Callable[[], Awaitable[T]]) -> T:
    """The result of work that may be done again. A server that has just begun to answer does not know all its parts
    yet, and on a busy machine a schedule of its own may need more than the ten seconds that one call is given."""
    until = asyncio.get_running_loop().time() + _SERVES_SECONDS
    while True:
        try:
            return await work()
        except FleetUnavailable:
            if asyncio.get_running_loop().time() > until:
                raise
        await asyncio.sleep(0.2)


async def _render_anew(config: ConfigStore, directory: ClusterDirectory, fleet: Fleet, external_url: str) -> None:
    """Wakes every cluster if all generated files depend on something that is new: another URL, another renderer.

    A template that changes wakes the clusters that use it; these two change only at a start. While one cluster could
    not be woken the next start wakes all of them again.
    """
    entry = await config.get(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
    fixed = dict(entry.body) if entry else {}
    base = {"external_url": external_url, "renderer": RENDERER_VERSION}
    if fixed.get(RENDERER_IN_FORCE) != RENDERER_VERSION:
        # Before anybody is woken: from here on the workers of this version render, and those of no other.
        fixed[RENDERER_IN_FORCE] = RENDERER_VERSION
        await config.put(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER, fixed, actor="centre")
    if fixed.get(RENDERED_WITH) == base:
        return
    if await nudge_all(fleet, await directory.open_clusters()):
        return
    await config.put(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER, {**fixed, RENDERED_WITH: base}, actor="centre")


@asynccontextmanager
async def _temporal(settings: Settings) -> AsyncIterator[Client]:
    client = await _connected(str(settings.temporal_address), settings.temporal_namespace)
    try:
        yield client
    finally:
        # A client that is dropped at once may crash its process at exit (temporalio/sdk-python issue 300).
        await asyncio.sleep(0.2)


async def _connected(address: str, namespace: str) -> Client:
    """A connection; a server that is just starting, too, gets its time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE_SECONDS
    while True:
        try:
            return await asyncio.wait_for(connect(address, namespace), timeout=_PATIENCE_SECONDS)
        except (TimeoutError, FleetUnavailable) as error:
            # Whoever starts it here is not to be told to start it here.
            if isinstance(error, TimeoutError) or loop.time() > until:
                raise FleetUnavailable(
                    f"Temporal does not answer at {address}.",
                    hint="Check EDGEWRIGHT_TEMPORAL_ADDRESS and the network.",
                ) from None
        await asyncio.sleep(0.2)


async def _fix_organisation(config: ConfigStore, organisation: str) -> None:
    """The first start decides: Group-IDs of all clusters begin with it."""
    wanted = {"organisation": organisation}
    await config.install([NewEntry(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER, CLASS_SERVICE, wanted)])
    entry = await config.get(APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
    fixed = entry.body.get("organisation") if entry and isinstance(entry.body, dict) else None
    if fixed != organisation:
        raise CliError(
            f"This installation belongs to the organisation {fixed}, fixed at its first start; "
            f"EDGEWRIGHT_ORGANISATION says {organisation}.",
            f"Set EDGEWRIGHT_ORGANISATION={fixed}, or start another installation with another EDGEWRIGHT_HOME.",
            ExitCode.REFUSED,
        )


async def _demand_git_storage(ports: OpenPorts, root: Path) -> None:
    """An empty folder in the place of what clusters have is most often a volume that is not mounted."""
    if ports.git.exists(REPOSITORY_HELM_CHARTS):
        return
    known = len(await ports.directory.open_clusters())
    if known:
        raise CliError(
            f"The database knows {known} cluster{'s' * (known > 1)}, and the Git storage {root} is empty.",
            "Mount its volume, or set EDGEWRIGHT_GIT_ROOT to where it is now. If it is lost: edgewright admin "
            "restore; without a backup: edgewright admin init --new-git-storage.",
            ExitCode.REFUSED,
        )


def _publish(repositories: BareGitServer, sealed_secrets: SealedSecretsChart) -> None:
    repositories.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    publish_charts(repositories, charts_path(), sealed_secrets)
