"""A whole centre in one process: real database, real repositories, real Temporal, real worker. No gateway."""

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

from sandbox import sandboxed
from shared_statements import open_database
from supervised import pause
from temporalio.client import Client, WorkflowHandle

from activities.composition import build_activities
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import SqlAuditLog
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.temporal.client import connect
from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.adapters.webhook.key_file import FILE_NAME
from edgewright.adapters.webhook.sender import open_sender
from edgewright.cli.initialise import ensure_webhook_key
from edgewright.domain.default_entries import default_entries
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.messages.names import workflow_id
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import NewEntry
from edgewright.ports.fleet import Fleet
from edgewright.ports.stored import StoredPorts
from edgewright.ports.webhook_delivery import WebhookSender
from edgewright.wiring import OpenPorts, ports_on
from worker import build_workers

EXTERNAL_URL = "http://127.0.0.1:8484"
_FIRST_STARTS: list[bytes] = []


@dataclass
class WorkflowCentre:
    """Everything that a test of the workflow touches."""

    database: Database
    client: Client
    ports: StoredPorts
    fleet: Fleet
    sender: WebhookSender

    @property
    def audit(self) -> SqlAuditLog:
        assert isinstance(self.ports.audit, SqlAuditLog)
        return self.ports.audit

    @property
    def wishes(self) -> ClusterWishes:
        return self.ports.wishes

    @property
    def directory(self) -> ClusterDirectory:
        return self.ports.directory

    @property
    def steps(self) -> ClusterSteps:
        return self.ports.steps

    @property
    def git(self) -> BareGitServer:
        assert isinstance(self.ports.git, BareGitServer)
        return self.ports.git

    def handle(self, cluster: UUID) -> "WorkflowHandle[Any, Any]":
        return self.client.get_workflow_handle(workflow_id(cluster))

    async def write(self, cluster: UUID, name: str, **more: Any) -> None:
        """Writes the configuration entry, as any door does, and nudges."""
        body = {"name": name, "namespace": "edgewright", **more}
        await self.wishes.write_configuration(cluster, body, actor="token:test", create_object=True)
        await self.fleet.nudge(cluster)

    async def create(self, name: str, **more: Any) -> UUID:
        """Creates a cluster and waits until it is ready."""
        cluster = uuid4()
        await self.write(cluster, name, **more)
        await self.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        return cluster

    async def row(self, cluster: UUID) -> ClusterRow:
        row = await self.directory.get(cluster)
        assert row is not None
        return row

    async def until(self, cluster: UUID, holds: Callable[[ClusterRow], bool], *, seconds: float = 90.0) -> ClusterRow:
        """Waits for a condition on the row."""
        latest: list[ClusterRow] = []

        async def reached() -> bool:
            latest[:] = [await self.row(cluster)]
            return holds(latest[0])

        await eventually(reached, seconds=seconds, shows=lambda: str(latest))
        return latest[0]

    async def bootstrap(self, cluster: UUID, kube_uid: str | None = None) -> str:
        """Registers an edge as the script does; returns its kube-system UID."""
        uid = kube_uid or str(uuid4())
        token_id, secret = secrets.token_hex(8), secrets.token_bytes(32)
        sha = hashlib.sha256(secret).digest()
        await self.ports.edge_access.issue_token(
            cluster, token_id=token_id, secret_sha256=sha, expires_in=timedelta(hours=1), actor="token:test"
        )
        await self.ports.edge_access.register(
            token_id=token_id,
            secret_sha256=sha,
            kube_system_uid=uid,
            kubernetes_version="v1.33.1",
            flux_sha256=secrets.token_bytes(32),
            agent_sha256=secrets.token_bytes(32),
        )
        await self.fleet.nudge(cluster)
        return uid


async def eventually(
    holds: Callable[[], Awaitable[bool]], *, seconds: float = 90.0, shows: Callable[[], str] = lambda: ""
) -> None:
    """Waits until a condition holds; fails with what was seen last."""
    try:
        async with asyncio.timeout(seconds):
            began = asked = time.monotonic()
            while not await holds():
                now = time.monotonic()
                await asyncio.sleep(pause(asking=now - asked, waited=now - began))
                asked = time.monotonic()
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s; last seen: {shows()}") from None


@asynccontextmanager
async def open_centre(
    folder: Path, temporal: str, *, clock: Callable[[], datetime] | None = None
) -> AsyncIterator[WorkflowCentre]:
    """A centre without a worker; the folder may hold an earlier one. ``clock`` stands in for the database's."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "edgewright.db"
    if not file.exists() and clock is None:
        file.write_bytes(await _first_start())
    async with (
        open_database(f"sqlite+aiosqlite:///{file}", clock=clock) as database,
        open_sender() as sender,
    ):
        ports = ports_on(database, BareGitServer(folder / "repositories"), folder / FILE_NAME)
        await _started(ports)
        client = await connect(temporal, "default")
        ensure_webhook_key(folder / FILE_NAME)
        ports.git.create_repository(REPOSITORY_HELM_CHARTS)
        yield WorkflowCentre(
            database=database, client=client, ports=ports, fleet=TemporalFleet(client), sender=sender
        )


async def _first_start() -> bytes:
    """A database as the first start leaves it, made once for all tests of a process."""
    if not _FIRST_STARTS:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "edgewright.db"
            async with open_database(f"sqlite+aiosqlite:///{file}") as database:
                await _started(ports_on(database, BareGitServer(Path(folder)), Path(folder) / FILE_NAME))
            _FIRST_STARTS.append(file.read_bytes())
    return _FIRST_STARTS[0]


async def _started(ports: OpenPorts) -> None:
    """Brings a database to where each start brings it; nothing to do when it is there."""
    await ports.database.migrate()
    entries = default_entries("ACME")
    await ports.config.install([NewEntry(app=e.app, object=e.object, klass=e.klass, body=e.body) for e in entries])


@asynccontextmanager
async def working(
    centre: WorkflowCentre,
    *,
    but: str = "",
    fleet: Fleet | None = None,
    sender: WebhookSender | None = None,
    **replaced: Any,
) -> AsyncIterator[None]:
    """Runs a worker for the centre; ``fleet``, ``sender`` and ``replaced`` swap single ports for faulty ones.

    Args:
        but: a queue that it stops to poll before anything stands there.
    """
    activities = build_activities(
        replace(centre.ports, **replaced),
        fleet or centre.fleet,
        sender or centre.sender,
        organisation="ACME",
        external_url=EXTERNAL_URL,
    )
    workers = build_workers(centre.client, activities, slots=16, runner=sandboxed())
    async with AsyncExitStack() as polling:
        for one in workers:
            if one.task_queue == but:
                async with one:  # a worker that never ran keeps its place in the client, and no other takes it
                    pass
        for one in workers:
            if one.task_queue != but:
                await polling.enter_async_context(one)
        yield
