"""Requests for secrets that have ended are forgotten after a day, whole, and nothing else is."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import Store, key_of

from edgewright.adapters.database.secrets import secret_staging


async def stage(store: Store, cluster: UUID, *keys: str, **more: Any) -> UUID:
    """One request with these keys, sealed now; returns its ID."""
    request = uuid4()
    sealed = {"sealed_at": store.clock.at, **more}
    await store.staging.stage([await store.change(cluster, key, request=request, **sealed) for key in keys])
    return request


async def known(store: Store, *requests: UUID) -> list[bool]:
    return [bool(await store.staging.request(request)) for request in requests]


async def test_a_request_is_forgotten_a_day_after_it_was_sent_if_it_has_ended(timed: Store) -> None:
    cluster = await timed.create()
    waiting = await stage(timed, cluster, "waiting")
    refused = await stage(timed, cluster, "refused")
    superseded = await stage(timed, cluster, "a")
    committed = await stage(timed, cluster, "a", "b")
    await timed.staging.refuse(refused, "too_large", "It is too large.")
    await timed.staging.committed([committed], "c0ffee")
    timed.clock.advance(hours=23, minutes=59)
    young = await stage(timed, cluster, "a")
    await timed.staging.committed([young], "decade")
    assert await timed.ended_requests.forget() == 0
    timed.clock.advance(minutes=2)
    assert await timed.ended_requests.forget() == 4
    everything = (waiting, refused, superseded, committed, young)
    assert await known(timed, *everything) == [True, False, False, False, True]
    assert await timed.ended_requests.forget() == 0

    await timed.staging.committed([waiting], "facade")
    assert await timed.ended_requests.forget() == 1
    assert await known(timed, waiting, young) == [False, True]


async def test_a_request_is_forgotten_as_a_whole(timed: Store) -> None:
    cluster = await timed.create()
    half_waits = await stage(timed, cluster, "a", "b")
    newer = await stage(timed, cluster, "a")
    await timed.staging.committed([newer], "c0ffee")
    timed.clock.advance(hours=25)
    assert await timed.ended_requests.forget() == 1
    assert [key_of(change) for change in await timed.staging.request(half_waits)] == ["a", "b"]
    await timed.staging.committed([half_waits], "decade")
    assert await timed.ended_requests.forget() == 2


async def test_one_call_forgets_a_bounded_number_and_the_next_goes_on(
    timed: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_staging, "FORGET_BATCH", 2)
    monkeypatch.setattr(secret_staging, "MOST_FORGET_BATCHES", 1)
    cluster = await timed.create()
    requests = [await stage(timed, cluster, "a") for _ in range(3)]
    requests.append(await stage(timed, cluster, "a", "b", "c"))
    await timed.staging.committed(requests, "c0ffee")
    timed.clock.advance(hours=25)
    assert await timed.ended_requests.forget() == 2
    assert await timed.ended_requests.forget() == 4, "the end of a batch tears no request"
    last = await stage(timed, cluster, "a")
    assert await timed.ended_requests.forget() == 0
    assert await known(timed, last) == [True]


async def test_a_forgotten_request_that_is_sent_again_is_told_of_again(timed: Store) -> None:
    cluster = await timed.create()
    request = await stage(timed, cluster, "a")
    await timed.staging.committed([request], "c0ffee")
    timed.clock.advance(hours=25)
    await timed.ended_requests.forget()
    again = await timed.change(cluster, "a", request=request, sealed_at=timed.clock.at)
    assert len(await timed.staging.stage([again])) == 1
    await timed.staging.committed([request], "decade")
    told = [event for event in await timed.audit.timeline(cluster) if event.kind == "secret.put"]
    assert [event.detail["commit"] for event in told] == ["c0ffee", "decade"]
