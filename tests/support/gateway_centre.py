"""A gateway on a real database and real repositories; what stands in for Temporal runs the real activities."""

import asyncio
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from fastapi import FastAPI
from memory_fleet import MemoryFleet
from shared_statements import open_database
from temporalio.testing import ActivityEnvironment

from activities.commissioning import CommissioningActivities
from activities.repository import RepositoryActivities, SecretActivities
from api.app import create_app
from api.connections.limits import ConnectionLimits
from api.dependencies import EdgeOffer
from api.gateway import Gateway
from api.rooms import furnish
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.sqlite_engine import change_stamp
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.webhook.key_file import FILE_NAME
from edgewright.application.rendering import RenderInputs
from edgewright.cli.initialise import ensure_webhook_key
from edgewright.domain.cluster import Desired, Fence, Phase, Role, StepName
from edgewright.domain.credentials import Token, cluster_secret, operator_token
from edgewright.domain.default_entries import default_entries
from edgewright.domain.projection import Done, Projection
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Superseded
from edgewright.messages.steps import CommitSecrets, StepInput
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import NewEntry
from edgewright.ports.operators import OperatorToken, Permission
from edgewright.wiring import OpenPorts, ports_on

BASE_URL = "http://127.0.0.1:8484"
STATUS_APP = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
CONFIGURATION_APP = "bdb13634-0b3d-4e38-a065-9d88c12ee78d"
SETUP_STATUS_APP = "f6c67e6f-e48e-4f69-b4bb-bfbddcc2a517"


async def make_database(file: Path) -> None:
    """A database as the first start leaves it."""
    async with open_database(f"sqlite+aiosqlite:///{file}") as database:
        await database.migrate()
        entries = default_entries("Edgewright")
        ports = ports_on(database, BareGitServer(file.parent / "repositories"), file.parent / FILE_NAME)
        await ports.config.install([NewEntry(e.app, e.object, e.klass, e.body) for e in entries])


@dataclass(frozen=True)
class EdgeCredentials:
    """The two credentials that an edge has made."""

    cluster: UUID
    flux: str
    agent: str

    @property
    def as_flux(self) -> dict[str, str]:
        return basic(str(self.cluster), self.flux)

    @property
    def as_agent(self) -> dict[str, str]:
        return basic(str(self.cluster), self.agent)


@dataclass
class Workflow:
    """What the workflow of a cluster does when it is nudged, without Temporal: steps in one go, no retries."""

    directory: ClusterDirectory
    steps: ClusterSteps
    commissioning: CommissioningActivities
    repository: RepositoryActivities
    secrets: SecretActivities
    commissions: bool = True
    """False: clusters stay as they were written."""
    commits: bool = True
    """False: no update is ever answered with a commit."""
    turns: dict[UUID, asyncio.Lock] = field(default_factory=dict)

    async def reconcile(self, cluster: UUID) -> None:
        """One at a time, and again when the row has moved on meanwhile."""
        async with self.turns.setdefault(cluster, asyncio.Lock()):
            for _ in range(10):
                with suppress(Superseded):
                    await self._step(cluster)
                    return

    async def _step(self, cluster: UUID) -> None:
        row = await self.directory.get(cluster)
        if row is None or row.closed or not self.commissions:
            return
        if row.desired is Desired.REMOVED:
            await self._remove(row)
        elif row.desired is Desired.PRESENT and not _is_commissioned(row):
            await self._commission(row)

    async def commit(self, cluster: UUID, _requests: Sequence[UUID]) -> None:
        if self.commits:
            await ActivityEnvironment().run(self.secrets.commit_secrets, CommitSecrets(cluster=cluster))

    async def _commission(self, row: ClusterRow) -> None:
        fence = fence_of(row)
        await self.commissioning.allocate_address(StepInput(fence=fence, step=StepName.ALLOCATE_ADDRESS))
        await self.commissioning.create_accounts(StepInput(fence=fence, step=StepName.CREATE_ACCOUNTS))
        await self.repository.create_repository(StepInput(fence=fence, step=StepName.CREATE_REPOSITORY))
        result = await self.repository.populate_repository(StepInput(fence=fence, step=StepName.POPULATE_REPOSITORY))
        await self.commissioning.publish_status(StepInput(fence=fence, step=StepName.PUBLISH_STATUS))
        await self.steps.project(
            row.uuid,
            Projection(
                sequence=_next(row),
                phase=Phase.AWAITING_BOOTSTRAP,
                ready=True,
                done=Done(generation=row.generation, commissioning=row.commissioning),
                change_done=row.change,
                desired_revision=result.commit,
            ),
            [],
        )

    async def _remove(self, row: ClusterRow) -> None:
        fence = fence_of(row)
        await self.commissioning.withdraw_status(StepInput(fence=fence, step=StepName.WITHDRAW_STATUS))
        await self.commissioning.suspend_credentials(StepInput(fence=fence, step=StepName.SUSPEND_CREDENTIALS))
        await self.steps.project(row.uuid, Projection(sequence=_next(row), phase=Phase.REMOVED, ready=False), [])


@dataclass
class GatewayCentre:
    """Everything that a test of the gateway touches."""

    gateway: Gateway
    app: FastAPI
    fleet: MemoryFleet
    workflow: Workflow
    ports: OpenPorts
    _clients: list[httpx.AsyncClient] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.ports.database

    @property
    def git(self) -> BareGitServer:
        return self.ports.repositories

    def change(self, **values: Any) -> None:
        """Goes on with other values of the gateway, as a restart with other settings would."""
        state = self.app.state
        furnish(self.app, replace(self.gateway, **values), state.live, state.access)

    def offer(self, **values: Any) -> None:
        """Tells or gives edges something else from now on."""
        self.change(offer=replace(self.gateway.offer, **values))

    def client(self, headers: dict[str, str] | None = None, **more: Any) -> httpx.AsyncClient:
        """A client that sends these headers with every request."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, **more)
        client = httpx.AsyncClient(
            transport=transport,
            base_url=BASE_URL,
            headers=headers,
            trust_env=False,
            event_hooks={"response": [self._settled]},
        )
        self._clients.append(client)
        return client

    async def _settled(self, _answer: httpx.Response) -> None:
        """Lets nudges finish that an answer did not wait for, so that a slow machine changes no outcome."""
        while self.app.state.live.nudges.under_way:
            await asyncio.sleep(0.01)

    async def token(self, *permissions: Permission, name: str | None = None) -> Token:
        """A new operator token."""
        drawn = operator_token(secrets.token_bytes(8), secrets.token_bytes(32))
        await self.ports.operators.add(
            OperatorToken(
                id=drawn.id,
                name=name or f"test-{drawn.id}",
                permissions=frozenset(permissions),
                secret_sha256=drawn.sha256,
                created_at=datetime.now(UTC),
            ),
            actor="centre",
        )
        return drawn

    @property
    def steps(self) -> ClusterSteps:
        return self.workflow.steps

    async def operator(self, *permissions: Permission) -> httpx.AsyncClient:
        """A client with a new operator token."""
        return self.client(bearer((await self.token(*permissions)).text))

    async def row(self, cluster: UUID) -> ClusterRow:
        row = await self.gateway.directory.get(cluster)
        assert row is not None
        return row

    async def create(self, name: str, **wish: Any) -> UUID:
        """A commissioned cluster."""
        admin = await self.operator(Permission.ADMIN)
        answer = await admin.post("/v1/cluster", json={"name": name, **wish})
        assert answer.status_code == 201, answer.text
        return UUID(answer.json()["uuid"])

    async def bootstrap_token(self, cluster: UUID) -> str:
        """A fresh registration token."""
        admin = await self.operator(Permission.ADMIN)
        answer = await admin.post(f"/v1/cluster/{cluster}/bootstrap-url")
        assert answer.status_code == 200, answer.text
        token: str = answer.json().partition("token=")[2]
        return token

    async def register(self, cluster: UUID, *, uid: str = "uid-1", token: str | None = None) -> EdgeCredentials:
        """A Kubernetes cluster that has registered; it is accepted if the policy says so."""
        edge = EdgeCredentials(
            cluster,
            cluster_secret(Role.FLUX, secrets.token_bytes(32)).text,
            cluster_secret(Role.AGENT, secrets.token_bytes(32)).text,
        )
        answer = await self.client(bearer(token or await self.bootstrap_token(cluster))).post(
            "/v1/register",
            json={
                "kube_system_uid": uid,
                "kubernetes_version": "v1.31.2+k3s1",
                "flux_secret": edge.flux,
                "agent_secret": edge.agent,
            },
        )
        assert answer.status_code == 200, answer.text
        return edge

    async def project(self, cluster: UUID, **changes: Any) -> None:
        """Publishes a changed projection, as the workflow does."""
        row = await self.row(cluster)
        base = row.projection or Projection(sequence=0, phase=Phase.COMMISSIONING, ready=False)
        await self.steps.project(cluster, base.model_copy(update={"sequence": base.sequence + 1, **changes}), [])


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def fence_of(row: ClusterRow) -> Fence:
    return Fence(cluster=row.uuid, generation=row.generation, change=row.change)


@asynccontextmanager
async def gateway_centre(
    database_file: Path, git_root: Path, limits: ConnectionLimits | None = None, *, database_url: str | None = None
) -> AsyncIterator[GatewayCentre]:
    """A gateway whose background tasks run; everything is closed at the end.

    Args:
        database_url: another database than the SQLite file, beside which the key file is all the same.
    """
    url = database_url or f"sqlite+aiosqlite:///{database_file}"
    async with AsyncExitStack() as opened:
        database = await opened.enter_async_context(open_database(url))
        git = BareGitServer(git_root)
        ports = ports_on(database, git, database_file.parent / FILE_NAME)
        directory, steps = ports.directory, ports.steps
        git.create_repository(REPOSITORY_HELM_CHARTS)
        workflow = Workflow(
            directory=directory,
            steps=steps,
            commissioning=CommissioningActivities(
                directory, steps, ports.edge_access, ports.accounts, git, organisation="Edgewright"
            ),
            repository=RepositoryActivities(directory, steps, git, RenderInputs(ports.config, BASE_URL)),
            secrets=SecretActivities(directory, ports.staging, git),
        )
        fleet = MemoryFleet(ports.wishes, directory, steps, workflow.commit, workflow.reconcile)
        gateway = Gateway(
            ports=ports,
            git_http=GitHttp(git),
            fleet=fleet,
            offer=EdgeOffer(BASE_URL),
            temporal_ui_url="http://127.0.0.1:8233",
            connections=limits or ConnectionLimits(),
            change_stamp=opened.enter_context(change_stamp(url)),
        )
        ensure_webhook_key(database_file.parent / FILE_NAME)
        app = create_app(gateway)
        app.state.live.nudges.moment = 0.0  # each request of a test waits for what it has nudged
        centre = GatewayCentre(gateway, app, fleet, workflow, ports)
        async with app.router.lifespan_context(app):
            try:
                yield centre
            finally:
                for client in centre._clients:
                    await client.aclose()


def _is_commissioned(row: ClusterRow) -> bool:
    done = row.projection.done if row.projection else Done()
    return (done.generation, done.commissioning) == (row.generation, row.commissioning)


def _next(row: ClusterRow) -> int:
    return row.projection.sequence + 1 if row.projection else 1
