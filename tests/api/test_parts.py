"""The parts of a gateway that live in memory, and the spelling of credentials."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from api.heartbeats import HeartbeatBatch
from api.nudges import MOMENT_SECONDS, PATIENCE_SECONDS, Nudges
from api.operator_time import METER, Meter, OperatorTime
from api.problems import TooManyWrongCredentials
from api.routes.clusters import duration
from api.secret_lane import AT_ONCE, MOST_CHANGES, SecretLanes
from api.wrong_credentials import ADDRESS_LIMIT, WINDOW_SECONDS, WRONG_LIMIT, WrongCredentials
from edgewright.application import waking
from edgewright.application.secret_commits import CommittedSecrets
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


class Taken:
    """A directory of clusters that have taken all that they were told."""

    async def unfinished(self, *, among: Sequence[UUID]) -> Sequence[UUID]:
        assert among
        return []


TAKEN = Taken()


class Commits:
    """Commits at once what is told to it; counts attempts."""

    def __init__(self) -> None:
        self.attempts: list[UUID] = []
        self.staged: list[UUID] = []
        self.known: list[set[UUID]] = []
        self.at_once = 100
        self.errors: dict[int, Exception] = {}
        """By attempt."""
        self.error: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    async def commit(self, cluster: UUID, *, staged_on: Mapping[UUID, str], most: int) -> CommittedSecrets:
        assert most == MOST_CHANGES
        self.attempts.append(cluster)
        self.known.append(set(staged_on))
        await self.go.wait()
        if error := self.errors.get(len(self.attempts), self.error):
            raise error
        made, self.staged = self.staged[: self.at_once], self.staged[self.at_once :]
        commits = {request: f"commit of {request}" for request in made}
        return CommittedSecrets(commits, commits[made[-1]] if made else None, len(made), bool(self.staged))


def lane_of(fleet: Fleet, commits: Commits | None = None, **more: float) -> SecretLanes:
    """Without ``commits``, the gateway commits nothing itself."""
    if commits is None:
        commits = Commits()
        commits.error = Waiting("The repository cannot be written.", code="git_unavailable")
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    return SecretLanes(commits, fleet, nudges, **more)  # type: ignore[arg-type] # of what the lane calls


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


async def test_what_is_committed_here_needs_no_workflow() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    fleet.error = FleetUnavailable("Temporal is away.")
    lane, requests = lane_of(fleet, commits), [uuid4() for _ in range(3)]
    commits.staged, commits.at_once = requests[:], 2
    answers = await asyncio.gather(*(lane.change(CLUSTER, request) for request in requests))
    assert answers == [f"commit of {request}" for request in requests]
    assert (fleet.updates, commits.attempts) == ([], [CLUSTER] * 2), "as many commits as there are batches"


async def test_the_workflow_is_told_once_of_commits_that_follow_closely() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    lane = lane_of(fleet, commits)
    for _ in range(4):
        commits.staged = [uuid4()]
        await lane.change(CLUSTER, commits.staged[0])
    await until(lambda: fleet.nudged == [CLUSTER])
    await lane.change(CLUSTER, uuid4())
    await asyncio.sleep(2 * MOMENT_SECONDS)
    assert fleet.nudged == [CLUSTER], "nothing was committed since"


async def test_what_cannot_be_committed_here_is_left_to_the_workflow() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    lane, (done, left, other) = lane_of(fleet, commits), (uuid4(), uuid4(), uuid4())
    commits.staged, commits.at_once = [done, left], 1
    commits.errors = {2: Waiting("It is large.", code="large_commit"), 3: RuntimeError("a defect")}
    answers = await asyncio.gather(*(lane.change(CLUSTER, request) for request in (done, left)))
    assert answers == [f"commit of {done}", None], "its rows tell"
    assert await lane.change(CLUSTER, other) is None
    assert fleet.updates == [[left], [other]]


async def test_the_span_of_a_commit_holds_no_text_of_an_exception() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    commits.error = Waiting("marked")
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    await SecretLanes(commits, fleet, nudges, tracer=provider.get_tracer("x")).change(CLUSTER, uuid4())  # type: ignore[arg-type] # of what the lane calls
    [span] = spans.get_finished_spans()
    assert (span.name, list(span.events), span.status.description) == ("commit secrets", [], None)


async def test_a_repository_that_hangs_holds_up_nobody_for_long() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    lane = lane_of(fleet, commits, patience=0.05)
    commits.go.clear()
    assert await asyncio.wait_for(lane.change(CLUSTER, uuid4()), 5) is None
    assert len(fleet.updates) == 1, "the workflow was asked"
    assert await asyncio.wait_for(lane.change(CLUSTER, uuid4()), 5) is None
    assert commits.attempts == [CLUSTER], "no second thread waits for the same disk"
    commits.go.set()
    await until(lambda: not lane._under_way)
    commits.staged = [request := uuid4()]
    assert await lane.change(CLUSTER, request) == f"commit of {request}"


async def test_clusters_beyond_those_that_hang_are_left_to_their_workflows() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    lane = lane_of(fleet, commits, patience=0.05)
    commits.go.clear()
    await asyncio.gather(*(lane.change(uuid4(), uuid4()) for _ in range(AT_ONCE + 5)))
    assert (len(commits.attempts), len(fleet.updates)) == (AT_ONCE, AT_ONCE + 5)
    lane._patience = 60.0
    await asyncio.wait_for(lane.change(uuid4(), uuid4()), 5)
    assert len(fleet.updates) == AT_ONCE + 6, "nobody waits for places that do not become free"


async def test_each_commit_is_in_the_trace_of_one_who_waits_for_it_and_charged_to_nobody() -> None:
    fleet = Fleet()
    fleet.go.set()
    trace: ContextVar[str] = ContextVar("trace")
    seen: list[tuple[str, Meter | None]] = []

    class Traced(Commits):
        async def commit(self, cluster: UUID, **more: Any) -> CommittedSecrets:
            seen.append((trace.get(), METER.get()))
            return await super().commit(cluster, **more)

    commits, time = Traced(), OperatorTime()
    lane = lane_of(fleet, commits)

    async def of(token: str) -> None:
        trace.set(token)
        METER.set(await time.turn(token))
        await lane.change(CLUSTER, uuid4())

    commits.go.clear()
    callers = [asyncio.create_task(of(token)) for token in ("one", "two")]
    await until(lambda: seen)
    callers.append(asyncio.create_task(of("three")))
    await asyncio.sleep(0.01)
    commits.go.set()
    await asyncio.gather(*callers)
    assert seen == [("one", None), ("three", None)]


async def test_a_commit_is_told_what_each_request_was_staged_on_until_it_ended() -> None:
    fleet, commits = Fleet(), Commits()
    fleet.go.set()
    lane, (known, unknown) = lane_of(fleet, commits), (uuid4(), uuid4())
    with lane.staged_on(known, "c0"), lane.staged_on(unknown, None):
        await lane.change(CLUSTER, known)
    await lane.change(CLUSTER, unknown)
    assert commits.known == [{known}, set()]


async def test_an_answer_waits_for_its_nudge_only_a_moment_and_the_nudge_goes_on() -> None:
    fleet = Fleet()
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    started = asyncio.get_running_loop().time()
    await nudges.nudge(CLUSTER)
    assert asyncio.get_running_loop().time() - started < PATIENCE_SECONDS + 2
    assert fleet.nudged == []
    fleet.go.set()
    await until(lambda: fleet.nudged == [CLUSTER])


async def test_a_nudge_survives_the_request_that_caused_it() -> None:
    fleet = Fleet()
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    request = asyncio.create_task(nudges.nudge(CLUSTER))
    await asyncio.sleep(0.01)
    request.cancel()
    fleet.go.set()
    await nudges.drain()
    assert fleet.nudged == [CLUSTER]


async def test_a_nudge_that_fails_fails_no_request() -> None:
    fleet = Fleet()
    fleet.go.set()
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    for error in (FleetUnavailable("away"), Conflict("odd")):
        fleet.error = error
        await nudges.nudge(CLUSTER)
        nudges.nudge_many([CLUSTER])
        await nudges.drain()


async def test_many_nudges_are_given_up_once_temporal_is_away() -> None:
    fleet, tried = Fleet(), [uuid4() for _ in range(1000)]
    fleet.go.set()
    fleet.error = FleetUnavailable("away")
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    with capture_logs() as logs:
        nudges.nudge_many(tried)
        await nudges.drain()
    assert sum(line["event"] == "nudge not sent, the sweep sends it" for line in logs) == waking.AT_ONCE
    fleet.error = None
    nudges.nudge_many([CLUSTER])
    await nudges.drain()
    assert fleet.nudged == [CLUSTER]


async def test_many_are_nudged_once_each_however_often_that_is_asked_for_meanwhile() -> None:
    fleet, clusters = Fleet(), [uuid4() for _ in range(200)]
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
    for _ in range(3):
        nudges.nudge_many(clusters)
    assert nudges.under_way == 1
    fleet.go.set()
    await nudges.drain()
    assert sorted(fleet.nudged) == sorted(clusters)


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
    nudges = Nudges(fleet, TAKEN)  # type: ignore[arg-type] # of what nudges call
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
