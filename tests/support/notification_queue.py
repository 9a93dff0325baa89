"""Short cuts of those who test what waits for the webhook."""

from datetime import timedelta
from uuid import UUID, uuid4

from database_stores import ACTOR, NOON, Store, digest
from sqlalchemy import func, select

from edgewright.adapters.database.tables import notifications
from edgewright.domain.cluster import (
    CertificateFacts,
    Condition,
    ConditionStatus,
    ConditionType,
    Phase,
)
from edgewright.domain.notifications import (
    NotificationType,
)
from edgewright.ports.notifications import Batch, Outcome

URL = "https://alerts.example.com/hook?team=7"
FAILED = "The receiver answered 500."


async def set_webhook(store: Store, url: str = URL) -> UUID:
    identity = uuid4()
    await store.webhooks.put(identity, url, digest(str(identity)), actor=ACTOR)
    return identity


async def report(store: Store, cluster: UUID, *, fingerprint: str | None = None) -> None:
    facts = fingerprint and CertificateFacts(
        fingerprint=fingerprint, not_before=NOON, not_after=NOON + timedelta(days=3650), taken_at=NOON
    )
    await store.edge_reports.write_status(
        cluster,
        {"hosts": []},
        certificate=(facts, "pem") if facts else None,
        certificate_problem=None,
        generation=1,
        actor="agent",
    )


async def block(store: Store, cluster: UUID, sentence: str, status: ConditionStatus = ConditionStatus.TRUE) -> None:
    blocked = Condition(
        type=ConditionType.BLOCKED, status=status, reason="NameTaken", message=sentence, since=store.clock.at
    )
    await store.publish(cluster, Phase.COMMISSIONING, ready=False, conditions=(blocked,))


async def batch(store: Store, limit: int = 100) -> Batch:
    await store.notifications.collect()
    found = await store.notifications.due(limit)
    assert found is not None
    return found


async def told(store: Store) -> list[tuple[NotificationType, str]]:
    """Type and cluster of everything that waits, taken one after the other."""
    found = []
    while due := (now := await batch(store)).due:
        found += [(each.body.type, each.body.data.cluster.name) for each in due]
        await settle(store, now, "")
    return found


async def settle(store: Store, of: Batch, problem: str, *, status: int | None = 500) -> int:
    outcomes = [Outcome(each.position, 204 if not problem else status, problem) for each in of.due]
    return await store.notifications.settle(of.webhook, outcomes)


async def rows(store: Store) -> int:
    async with store.database.read() as connection:
        return await connection.scalar(select(func.count()).select_from(notifications)) or 0
