"""All database ports of one process, and the short cuts that their tests share."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

import pytest

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.cluster import (
    ClusterSettings,
    CredentialState,
    Fence,
    Phase,
    Role,
    StepName,
    TokenState,
    Wanted,
)
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.projection import Projection
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import EdgewrightError
from edgewright.ports.clusters import ClusterRow, Written
from edgewright.ports.config_store import Entry
from edgewright.ports.edge_access import Credential, Registration
from edgewright.ports.secret_staging import StagedChange
from edgewright.wiring import OpenPorts, ports_on

ACTOR = "token:test"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class DatabaseClock:
    """The database's clock, in the hands of a test."""

    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at

    def advance(self, **span: float) -> None:
        self.at += timedelta(**span)


@dataclass(frozen=True, kw_only=True)
class Store(OpenPorts):
    """All ports on one database, as one process has them; no repositories and no key."""

    clock: DatabaseClock

    @classmethod
    def on(cls, database: Database, clock: DatabaseClock | None = None) -> Self:
        nowhere = Path(os.devnull)
        return cls(**vars(ports_on(database, BareGitServer(nowhere), nowhere)), clock=clock or DatabaseClock())

    async def write(self, cluster: UUID, name: str = "press-shop", **more: Any) -> Written:
        body = {"name": name, "namespace": "edgewright", **more}
        return await self.wishes.write_configuration(cluster, body, actor=ACTOR, create_object=True)

    async def create(self, name: str = "press-shop", *, settings: ClusterSettings | None = None, **more: Any) -> UUID:
        cluster = uuid4()
        body = {"name": name, "namespace": "edgewright", **more}
        await self.wishes.write_configuration(cluster, body, actor=ACTOR, create_object=True, settings=settings)
        return cluster

    async def row(self, cluster: UUID) -> ClusterRow:
        row = await self.directory.get(cluster)
        assert row is not None
        return row

    async def fence(self, cluster: UUID) -> Fence:
        row = await self.row(cluster)
        return Fence(cluster=cluster, generation=row.generation, change=row.change)

    async def commissioned(self, name: str = "press-shop", *, settings: ClusterSettings | None = None) -> UUID:
        """A cluster whose workflow has published that it is ready."""
        cluster = await self.create(name, settings=settings)
        await self.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True)
        return cluster

    async def publish(self, cluster: UUID, phase: Phase, *, ready: bool, **more: Any) -> None:
        row = await self.row(cluster)
        before = row.projection.sequence if row.projection else 0
        published = {"change_done": row.change, "lease_epoch": row.lease.epoch, **more}
        projection = Projection(sequence=before + 1, phase=phase, ready=ready, **published)
        await self.steps.project(cluster, projection, [])

    async def token(self, cluster: UUID, token_id: str = "t1", *, expires_in: timedelta = timedelta(hours=1)) -> str:
        await self.edge_access.issue_token(
            cluster, token_id=token_id, secret_sha256=digest(token_id), expires_in=expires_in, actor=ACTOR
        )
        return token_id

    async def registered(self, cluster: UUID, *, uid: str = "uid-1", token_id: str = "t1") -> None:
        await self.register(await self.token(cluster, token_id), uid=uid)

    async def kinds(self, cluster: UUID) -> list[str]:
        return [event.kind for event in await self.audit.timeline(cluster)]

    async def register(self, token_id: str, *, uid: str = "uid-1", secrets: str = "first") -> Registration:
        return await self.edge_access.register(
            token_id=token_id,
            secret_sha256=digest(token_id),
            kube_system_uid=uid,
            kubernetes_version="v1.31.4",
            flux_sha256=digest(f"flux-{secrets}"),
            agent_sha256=digest(f"agent-{secrets}"),
        )

    async def credential(self, cluster: UUID, role: Role, secret: str | None = None) -> Credential:
        """The newest living credential of a role, or the one of a secret."""
        for credential in await self.edge_access.credentials(cluster):
            if credential.role is role and (secret is None or credential.secret_sha256 == digest(secret)):
                return credential
        raise LookupError(f"no {role} credential")

    async def joined(self, name: str = "press-shop", *, settings: ClusterSettings | None = None) -> UUID:
        """A cluster whose edge has registered and used both credentials."""
        cluster = await self.commissioned(name, settings=settings)
        await self.registered(cluster, uid=f"uid-of-{name}", token_id=f"token-of-{name}")
        for role in Role:
            await self.edge_access.record_use((await self.credential(cluster, role)).id)
        return cluster

    async def change(
        self,
        cluster: UUID,
        key: str | None = "password",
        *,
        name: str = "db",
        request: UUID | None = None,
        **more: Any,
    ) -> StagedChange:
        """A change of ``default/db`` to stage; not staged yet. ``key`` None: it is about no key."""
        row = await self.row(cluster)
        values: dict[str, Any] = {
            "ciphertext": "AgB=",
            "fingerprint": "f1",
            "sealed_at": NOON,
            "actor": ACTOR,
        }
        return StagedChange(
            request=request or uuid4(),
            cluster=cluster,
            generation=row.generation,
            place=SecretReference("default", name) if key is None else SecretKey("default", name, key),
            **(values | more),
        )


def key_of(change: StagedChange) -> str | None:
    """The key that a change is about; None: no key."""
    return change.place.key if isinstance(change.place, SecretKey) else None


def digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


async def code_of(attempt: Any) -> str:
    """The code of the refusal that an attempt ends with."""
    with pytest.raises(EdgewrightError) as refusal:
        await attempt
    return refusal.value.code


async def state_of(store: Store, token_id: str) -> TokenState:
    token = await store.edge_access.token(token_id)
    assert token is not None
    return token.state


async def states(store: Store, cluster: Any) -> list[CredentialState]:
    return [credential.state for credential in await store.edge_access.credentials(cluster)]


async def wanted(store: Store, cluster: UUID) -> Wanted:
    reading = await store.steps.read_wanted(cluster)
    assert reading is not None
    return reading


async def entry(store: Store, cluster: UUID, app: UUID = APP_CLUSTER_CONFIGURATION) -> Entry | None:
    return await store.config.get(app, cluster)


async def close(store: Store, cluster: UUID) -> Fence:
    """Deletes a cluster to the end, without its edge."""
    await store.wishes.request_deletion(cluster, actor=ACTOR, force=True)
    fence = await store.fence(cluster)
    for step in (StepName.REMOVE_ADDRESS, StepName.REMOVE_EDGE_STATUS, StepName.REMOVE_SETUP_STATUS):
        await store.steps.remove_central_entries(fence, step)
    return fence
