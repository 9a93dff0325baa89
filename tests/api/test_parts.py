"""The parts of a gateway that live in memory, and the spelling of credentials."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.commit_watch import CommitWatch
from api.heartbeats import HeartbeatBatch
from api.nudges import PATIENCE_SECONDS, Nudges
from api.problems import TooManyWrongCredentials
from api.routes.clusters import duration
from api.secret_lane import SecretLanes
from api.wrong_credentials import ADDRESS_LIMIT, WINDOW_SECONDS, WRONG_LIMIT, WrongCredentials
from edgewright.domain import credentials as spelling
from edgewright.domain.cluster import Role
from edgewright.errors import Conflict, Invalid, Unauthenticated, Waiting
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.fleet import FleetUnavailable

CLUSTER = uuid4()


class Fleet:
    """Counts updates; each takes until ``go`` is set."""

    def __init__(self) -> None:
        self.updates: list[list[UUID]] = []
        self.nudged: list[UUID] = []
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def change_secrets(self, _cluster: UUID, requests: Sequence[UUID]) -> None:
        self.updates.append(list(requests))
        await self.go.wait()
        if self.error:
            raise self.error

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        await self.go.wait()
        if self.error:
            raise self.error
        self.nudged.append(cluster)


class Commits:
    """What the database says is committed; each look at it is counted."""

    def __init__(self) -> None:
        self.held: set[UUID] = set()
        self.stamp: int | None = 1
        self.looked = 0
        self.away = False

    async def commits(self, requests: Sequence[UUID]) -> dict[UUID, str]:
        self.looked += 1
        if self.away:
            raise Waiting("The database is away.", code="database_unavailable")
        return {request: f"commit of {request}" for request in requests if request in self.held}


def watch_of(commits: Commits) -> CommitWatch:
    return CommitWatch(commits, lambda: commits.stamp)  # type: ignore[arg-type] # staging, as far as it is asked


def lane_of(fleet: Fleet, deadline: float = 20.0, commits: Commits | None = None) -> SecretLanes:
    watch = watch_of(commits or Commits())
    return SecretLanes(fleet, watch, deadline=deadline)  # type: ignore[arg-type] # a fleet of what the lane calls


async def until(holds: Any) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)


async def test_what_comes_during_an_update_goes_together_in_the_next() -> None:
    fleet = Fleet()
    lane = lane_of(fleet)
    requests = [uuid4() for _ in range(10)]
    callers = [asyncio.create_task(lane.change(CLUSTER, requests[0]))]
    await until(lambda: fleet.updates)
    callers += [asyncio.create_task(lane.change(CLUSTER, request)) for request in requests[1:]]
    await asyncio.sleep(0.01)
    fleet.go.set()
    await asyncio.gather(*callers)
    assert fleet.updates == [requests[:1], requests[1:]]


async def test_clusters_do_not_wait_for_each_other() -> None:
    fleet = Fleet()
    lane = lane_of(fleet)
    callers = [asyncio.create_task(lane.change(uuid4(), uuid4())) for _ in range(3)]
    await until(lambda: len(fleet.updates) == 3)
    fleet.go.set()
    await asyncio.gather(*callers)


async def test_no_caller_hangs_beyond_its_deadline() -> None:
    fleet = Fleet()
    lane = lane_of(fleet, deadline=0.05)
    for _ in range(2):  # the second finds a lane that works
        with pytest.raises(FleetUnavailable):
            await asyncio.wait_for(lane.change(CLUSTER, uuid4()), 5)


async def test_a_lane_that_broke_off_begins_anew() -> None:
    fleet = Fleet()
    lane = lane_of(fleet)
    fleet.go.set()
    fleet.error = RuntimeError("a defect")
    with pytest.raises(FleetUnavailable):
        await asyncio.wait_for(lane.change(CLUSTER, uuid4()), 5)
    fleet.error = Conflict("the workflow says no", code="no")
    with pytest.raises(Conflict):
        await lane.change(CLUSTER, uuid4())
    fleet.error = None
    await asyncio.wait_for(lane.change(CLUSTER, uuid4()), 5)


async def test_a_caller_that_leaves_takes_nobody_along() -> None:
    fleet = Fleet()
    lane = lane_of(fleet)
    leaving, staying = (asyncio.create_task(lane.change(CLUSTER, uuid4())) for _ in range(2))
    await until(lambda: fleet.updates)
    leaving.cancel()
    fleet.go.set()
    await asyncio.wait_for(staying, 5)


async def test_who_is_committed_does_not_wait_for_the_workflow_to_say_so() -> None:
    fleet, commits = Fleet(), Commits()
    lane, (first, second) = lane_of(fleet, commits=commits), (uuid4(), uuid4())
    callers = [asyncio.create_task(lane.change(uuid4(), request)) for request in (first, second)]
    await until(lambda: len(fleet.updates) == 2)
    commits.held = {first}
    await asyncio.sleep(0.05)
    assert commits.looked == 0, "nothing was written"
    commits.stamp = 2
    assert await asyncio.wait_for(callers[0], 5) == f"commit of {first}"
    assert not callers[1].done()
    fleet.error = Conflict("the workflow says no", code="no")
    fleet.go.set()
    with pytest.raises(Conflict):
        await callers[1]


async def test_a_database_that_cannot_be_read_leaves_it_to_the_workflow() -> None:
    fleet, commits = Fleet(), Commits()
    lane, request = lane_of(fleet, commits=commits), uuid4()
    caller = asyncio.create_task(lane.change(CLUSTER, request))
    await until(lambda: fleet.updates)
    commits.away, commits.stamp = True, 2
    await until(lambda: commits.looked)
    assert not caller.done()
    commits.away, commits.held, commits.stamp = False, {request}, None
    await asyncio.sleep(0.02)
    assert not caller.done(), "it is not known whether anything was written"
    commits.stamp = 3
    await asyncio.wait_for(caller, 5)


async def test_what_is_written_before_the_first_look_is_seen() -> None:
    commits, request = Commits(), uuid4()
    outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    watch_of(commits).add({request: outcome})
    commits.held, commits.stamp = {request}, 2
    assert await asyncio.wait_for(outcome, 5) == f"commit of {request}"


async def test_nobody_looks_when_nobody_waits() -> None:
    commits, looks = Commits(), [0]

    def stamp() -> int:
        looks[0] += 1
        return looks[0]

    watch = CommitWatch(commits, stamp)  # type: ignore[arg-type] # staging, as far as it is asked
    outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    watch.add({uuid4(): outcome})
    await until(lambda: commits.looked > 1)
    outcome.set_result(None)
    await asyncio.sleep(0.02)
    before = looks[0]
    await asyncio.sleep(0.02)
    assert looks[0] == before


async def test_an_answer_waits_for_its_nudge_only_a_moment_and_the_nudge_goes_on() -> None:
    fleet = Fleet()
    nudges = Nudges(fleet)  # type: ignore[arg-type] # a fleet of what nudges call
    started = asyncio.get_running_loop().time()
    await nudges.nudge(CLUSTER)
    assert asyncio.get_running_loop().time() - started < PATIENCE_SECONDS + 2
    assert fleet.nudged == []
    fleet.go.set()
    await until(lambda: fleet.nudged == [CLUSTER])


async def test_a_nudge_survives_the_request_that_caused_it() -> None:
    fleet = Fleet()
    nudges = Nudges(fleet)  # type: ignore[arg-type] # a fleet of what nudges call
    request = asyncio.create_task(nudges.nudge(CLUSTER))
    await asyncio.sleep(0.01)
    request.cancel()
    fleet.go.set()
    await nudges.drain()
    assert fleet.nudged == [CLUSTER]


async def test_a_nudge_that_fails_fails_no_request() -> None:
    fleet = Fleet()
    fleet.go.set()
    nudges = Nudges(fleet)  # type: ignore[arg-type] # a fleet of what nudges call
    for error in (FleetUnavailable("away"), Conflict("odd")):
        fleet.error = error
        await nudges.nudge(CLUSTER)
        nudges.nudge_many([CLUSTER])
        await nudges.drain()


class Reports:
    """Takes heartbeats unless it is away."""

    def __init__(self) -> None:
        self.written: list[Heartbeat] = []
        self.away = False

    async def heartbeats(self, beats: Sequence[Heartbeat]) -> Sequence[UUID]:
        if self.away:
            raise Waiting("The database is away.")
        self.written += beats
        return [beat.cluster for beat in beats]


async def test_heartbeats_wait_for_the_database_and_lose_nothing_that_was_said() -> None:
    fleet, reports = Fleet(), Reports()
    fleet.go.set()
    nudges = Nudges(fleet)  # type: ignore[arg-type] # a fleet of what nudges call
    batch = HeartbeatBatch(reports, nudges)  # type: ignore[arg-type] # reports of what the batch calls
    reports.away = True
    batch.add(Heartbeat(CLUSTER, 1, observed_revision="a" * 40))
    await batch.flush()
    batch.add(Heartbeat(CLUSTER, 1, clock_offset=2.0))
    await batch.flush()
    assert len(batch) == 1
    reports.away = False
    await batch.flush()
    await nudges.drain()
    assert reports.written == [Heartbeat(CLUSTER, 1, clock_offset=2.0, observed_revision="a" * 40)]
    assert fleet.nudged == [CLUSTER]
    assert len(batch) == 0


def test_wrong_credentials_are_forgotten_after_a_while() -> None:
    now = [0.0]
    counter = WrongCredentials(clock=lambda: now[0])
    for _ in range(WRONG_LIMIT):
        counter.count("192.0.2.1")
    with pytest.raises(TooManyWrongCredentials) as error:
        counter.count("192.0.2.1")
    assert error.value.retry_after == WINDOW_SECONDS
    now[0] = WINDOW_SECONDS + 1
    counter.count("192.0.2.1")


def test_counting_wrong_credentials_needs_bounded_memory() -> None:
    counter = WrongCredentials(clock=lambda: 0.0)
    for number in range(ADDRESS_LIMIT + 100):
        counter.count(str(number))
    assert len(counter._attempts) == ADDRESS_LIMIT


@given(st.binary(min_size=8, max_size=8), st.binary(min_size=32, max_size=32))
def test_tokens_are_taken_apart_as_they_were_put_together(token_id: bytes, secret: bytes) -> None:
    for make, parse in (
        (spelling.operator_token, spelling.parse_operator_token),
        (spelling.registration_token, spelling.parse_registration_token),
    ):
        token = make(token_id, secret)
        assert parse(token.text) == token
        assert token.id == token_id.hex()
        assert spelling.matches(token.text, token.sha256)
        assert token.text not in repr(token)
    for role in Role:
        credential = spelling.cluster_secret(role, secret)
        assert spelling.parse_cluster_secret(credential.text) == credential
        assert credential.text not in repr(credential)


@given(st.text(max_size=90))
def test_other_texts_are_no_credentials_and_are_not_repeated(text: str) -> None:
    for parse in (spelling.parse_operator_token, spelling.parse_registration_token, spelling.parse_cluster_secret):
        with pytest.raises(Unauthenticated) as error:
            parse(text)
        assert len(text) < 8 or text not in error.value.detail


def test_one_kind_of_token_is_not_the_other() -> None:
    operator, registration = (
        make(b"1" * 8, b"2" * 32) for make in (spelling.operator_token, spelling.registration_token)
    )
    with pytest.raises(Unauthenticated):
        spelling.parse_operator_token(registration.text)
    with pytest.raises(Unauthenticated):
        spelling.parse_registration_token(operator.text)
    with pytest.raises(Unauthenticated):
        spelling.parse_operator_token(operator.text + "\n")


DURATIONS = [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("24h", 86400), ("30d", 2592000)]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_durations_have_units(text: str, seconds: int) -> None:
    assert duration(text, where="deadline") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "h", "1 h", "-1", "1.5h", "31d", "1w", "٣", "9" * 30])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        duration(text, where="deadline")
