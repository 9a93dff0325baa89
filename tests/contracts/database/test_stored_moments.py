"""A clock that was 400 days ahead for a while: nothing that it has stored holds anything back for as long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from database_stores import ACTOR, NOON, Store, digest
from notification_queue import FAILED, batch, report, rows, set_webhook, settle
from sqlalchemy import select

from edgewright.adapters.database.access.operators import CLAIM_LIVES, REMEMBERED
from edgewright.adapters.database.columns import UtcDateTime, metadata
from edgewright.adapters.database.rows.applied_verbs import KEPT, applied_verbs
from edgewright.adapters.database.upkeep.stored_moments import HARMLESS, MENDED
from edgewright.domain.cluster import Phase, Role
from edgewright.domain.deletion import DEADLINE
from edgewright.domain.identity import FORK_BREAKS, Link
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.notifications import GIVE_UP_AFTER
from edgewright.ports.clusters import Once
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.operators import FirstAnswer, OperatorToken, Permission
from edgewright.ports.resealing import Verdict

A, B = SecretReference("default", "a"), SecretReference("default", "b")


@asynccontextmanager
async def clock_ahead(store: Store, *, finds: str) -> AsyncIterator[None]:
    """What is done inside is done 400 days ahead; then the sweep comes by."""
    store.clock.advance(days=400)
    yield
    store.clock.advance(days=-400)
    assert finds in await store.edge_reports.mend_future()
    assert finds not in await store.edge_reports.mend_future(), "mended once, it is in order"


def test_every_stored_moment_is_mended_or_harmless() -> None:
    columns = {
        column for table in metadata.tables.values() for column in table.c if isinstance(column.type, UtcDateTime)
    }
    mended = {one.column for one in MENDED}
    assert mended | set(HARMLESS) == columns
    assert not mended & set(HARMLESS)


async def test_what_is_in_order_is_left_alone(timed: Store) -> None:
    timed.clock.at = datetime.now(UTC)  # the store was made by the real clock
    await set_webhook(timed)
    cluster = await timed.joined()
    await report(timed, cluster)
    await settle(timed, await batch(timed), FAILED)
    await timed.wishes.request_deletion(cluster, actor=ACTOR, deadline=timedelta(days=30))
    await timed.idempotency.claim("scope", "key", "digest")
    await timed.token(await timed.commissioned("other"), "longest", expires_in=timedelta(days=7))
    assert await timed.edge_reports.mend_future() == []


async def test_a_deletion_waits_no_longer_than_usual_and_its_workflow_reads_so(timed: Store) -> None:
    cluster = await timed.commissioned()
    async with clock_ahead(timed, finds="deletion deadlines"):
        await timed.wishes.request_deletion(cluster, actor=ACTOR)
        await timed.publish(cluster, Phase.DETACHING, ready=False)
    assert (await timed.row(cluster)).deadline == timed.clock.at + DEADLINE
    assert cluster in await timed.directory.unfinished()


async def test_notifications_are_not_held_back(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    async with clock_ahead(timed, finds="resting notifications"):
        await settle(timed, await batch(timed), FAILED)
    assert len((await batch(timed)).due) == 1


async def test_notifications_are_not_given_up_at_once(timed: Store) -> None:
    """The receiver failed today and, it seems, in 400 days: all that waits for it is older than three days."""
    await set_webhook(timed)
    await report(timed, await timed.create())
    await settle(timed, await batch(timed), FAILED)
    async with clock_ahead(timed, finds="the webhook's newest try"):
        await settle(timed, (await batch(timed)), FAILED)
    await report(timed, await timed.create("other"))
    await timed.notifications.collect()
    assert await rows(timed) == 1


async def test_notifications_to_a_receiver_that_wants_none_are_given_up_in_time(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await report(timed, cluster, fingerprint="ab" * 32)
    async with clock_ahead(timed, finds="the stopped webhook"):
        await settle(timed, await batch(timed, 1), FAILED, status=410)
    timed.clock.advance(seconds=GIVE_UP_AFTER.total_seconds())
    await timed.notifications.collect()
    assert await rows(timed) == 0


async def test_a_request_that_was_never_answered_can_be_sent_again(timed: Store) -> None:
    async with clock_ahead(timed, finds="unanswered idempotency keys"):
        assert await timed.idempotency.claim("scope", "key", "digest") is None
    assert await timed.idempotency.claim("scope", "key", "digest") == FirstAnswer("digest", 0, None, {})
    timed.clock.advance(seconds=CLAIM_LIVES.total_seconds() + 1)
    assert await timed.idempotency.claim("scope", "key", "digest") is None
    timed.clock.advance(seconds=REMEMBERED.total_seconds())
    assert await timed.idempotency.claim("scope", "key", "another digest") is None, (
        "it is forgotten after a day, as usual"
    )


@pytest.mark.parametrize("life", [None, timedelta(days=90)])
async def test_an_operators_token_lives_as_long_as_was_asked(timed: Store, life: timedelta | None) -> None:
    async with clock_ahead(timed, finds="operator tokens"):
        now = timed.clock.at
        ends = None if life is None else now + life
        token = OperatorToken("t1", "ci", frozenset({Permission.READ}), digest("t1"), now, ends)
        await timed.operators.add(token, actor=ACTOR)
    found = await timed.operators.find("t1")
    assert found is not None
    assert (found.created_at, found.expires_at) == (NOON, life and NOON + life)


async def test_a_credential_is_as_old_as_it_can_be_and_its_rotation_is_watched(timed: Store) -> None:
    cluster = await timed.joined()
    async with clock_ahead(timed, finds="credentials"):
        await timed.edge_access.add_rotated(cluster, Role.AGENT, digest("new"), actor="agent")
        await timed.edge_access.ask_rotation(cluster, [Role.FLUX], actor=ACTOR, reason="")
        await timed.publish(cluster, Phase.ACTIVE, ready=True)
    assert {one.created_at for one in await timed.edge_access.credentials(cluster)} == {NOON}
    assert cluster in await timed.directory.unfinished()
    timed.clock.advance(days=2)
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None and "never used" in (wanted.rotation_problem or "")


async def test_a_fork_that_was_seen_in_the_future_ends_when_one_agent_is_left(timed: Store) -> None:
    cluster = await timed.joined()
    async with clock_ahead(timed, finds="forked identities"):
        for number in range(2 * FORK_BREAKS):
            link = Link(f"n{number}", f"of another {number}")
            await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, link=link)])
    timed.clock.advance(days=2)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, link=Link("alone"))])
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None and wanted.identity_problem is None


async def test_a_secret_that_was_tried_in_the_future_has_its_turn(timed: Store) -> None:
    cluster = await timed.create()
    await report(timed, cluster, fingerprint="f2")
    await timed.resealings.begin(cluster, 1, [A, B], actor=ACTOR, reason="")
    late = "Its file is not there yet."
    async with clock_ahead(timed, finds="re-sealed Secrets"):
        await timed.resealings.take(cluster, 1, "f2", [Verdict(A, waits_for=late)])
    timed.clock.advance(minutes=1)
    await timed.resealings.take(cluster, 1, "f2", [Verdict(B, waits_for=late)])
    assert await timed.resealings.wanted(cluster, limit=1) == [A]


async def test_a_request_for_a_secret_is_as_young_as_its_commit(timed: Store) -> None:
    cluster = await timed.create()
    change = await timed.change(cluster, sealed_at=NOON + timedelta(days=400))
    await timed.staging.stage([change])
    assert "requests for secrets" in await timed.edge_reports.mend_future()
    assert [one.sealed_at for one in (await timed.staging.pending(cluster)).changes] == [NOON]


async def test_an_applied_signal_is_forgotten_in_time(timed: Store) -> None:
    cluster = await timed.create()
    async with clock_ahead(timed, finds="applied signals"):
        await timed.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR, once=Once(uuid4(), "run"))
    timed.clock.advance(seconds=KEPT.total_seconds() + 1)
    await timed.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR, once=Once(uuid4(), "run"))
    async with timed.database.read() as connection:
        assert len(list(await connection.execute(select(applied_verbs)))) == 1
