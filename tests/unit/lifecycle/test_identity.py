"""Two agents with one identity are noticed; whatever happens to one alone is not mistaken for that."""

from datetime import UTC, datetime, timedelta

import pytest

from edgewright.agent.reporter import Nonces
from edgewright.domain.identity import FORK_BREAKS, Chain, Link

START, LEASE = datetime(2026, 3, 1, tzinfo=UTC), timedelta(minutes=5)


class Centre:
    """What it knows of one edge. ``heard``: how many heartbeats it has taken."""

    def __init__(self) -> None:
        self.chain, self.heard = Chain(), 0

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=50 * self.heard)

    def hear(self, agent: Nonces, *, answered: bool = True) -> None:
        self.heard += 1
        self.chain = self.chain.with_link(Link(agent.current, agent.previous), self.now, LEASE)
        if answered:
            agent.answered()

    @property
    def is_forked(self) -> bool:
        return self.chain.forked_at is not None


def copied(agent: Nonces) -> Nonces:
    """As a snapshot of the whole machine, memory and all."""
    copy = Nonces()
    copy.current, copy.previous = agent.current, agent.previous
    return copy


@pytest.fixture
def centre() -> Centre:
    return Centre()


@pytest.fixture
def agent(centre: Centre) -> Nonces:
    agent = Nonces()
    for _ in range(3):
        centre.hear(agent)
    return agent


@pytest.mark.parametrize("started_anew", [False, True], ids=["with its memory", "its disk only"])
def test_a_copy_is_noticed_within_some_heartbeats(centre: Centre, agent: Nonces, started_anew: bool) -> None:
    copy = Nonces() if started_anew else copied(agent)
    heard = centre.heard
    while not centre.is_forked:
        centre.hear(agent)
        centre.hear(copy)
        assert centre.heard - heard <= FORK_BREAKS + 3
    since = centre.chain.forked_at
    for _ in range(100):
        centre.hear(agent)
        centre.hear(copy)
    assert centre.chain.forked_at == since


def test_it_is_over_when_one_of_the_two_was_turned_off(centre: Centre, agent: Nonces) -> None:
    copy = copied(agent)
    for _ in range(FORK_BREAKS):
        centre.hear(agent)
        centre.hear(copy)
    assert centre.is_forked
    off = centre.now
    while centre.is_forked:
        centre.hear(agent)
        assert centre.now - off < 2 * LEASE + timedelta(minutes=2)
    assert centre.now - off > timedelta(minutes=5), "the copy may be heard less often"


def test_starts_one_after_the_other_are_no_copies(centre: Centre) -> None:
    for _ in range(50):
        agent = Nonces()
        centre.hear(agent)
        centre.hear(agent)
    assert centre.chain.breaks == 0


def test_a_pod_that_takes_over_while_the_one_before_still_calls_is_no_copy(centre: Centre, agent: Nonces) -> None:
    """Seconds: each waits for an answer as long as a lease allows, so each calls once or twice."""
    for _ in range(20):
        successor = Nonces()
        for calling in (successor, successor, agent, successor, agent):
            centre.hear(calling)
        for _ in range(5):
            centre.hear(successor)
        agent = successor
    assert not centre.is_forked


def test_answers_that_get_lost_are_no_copies(centre: Centre, agent: Nonces) -> None:
    for _ in range(50):
        centre.hear(agent, answered=False)
        centre.hear(agent, answered=False)
        centre.hear(agent)
    assert centre.chain.breaks == 0


def test_a_centre_that_was_restored_and_heartbeats_lost_with_gateways_are_no_copies(
    centre: Centre, agent: Nonces
) -> None:
    backup = centre.chain
    for _ in range(10):
        centre.hear(agent)
    centre.chain = backup
    centre.hear(agent)
    assert centre.chain.breaks == 1
    for _ in range(20):
        agent.answered()  # by a gateway that was killed before it had written
        for _ in range(5):
            centre.hear(agent)
    assert not centre.is_forked


def test_an_agent_of_an_earlier_version_draws_a_nonce_each_time_and_is_no_copy(centre: Centre) -> None:
    for number in range(50):
        centre.chain = centre.chain.with_link(Link(str(number)), START, LEASE)
    assert centre.chain.breaks == 0


def test_heartbeats_that_are_written_together_are_one_link() -> None:
    chain = Chain("n0")
    together = Link("n3", "n2").after(Link("n2", "n1").after(Link("n1", "n0")))
    assert chain.with_link(together, START, LEASE).breaks == 0
    foreign = Link("x1", "x0").after(Link("n1", "n0"))
    assert chain.with_link(foreign, START, LEASE).breaks == 1
    assert chain.with_link(Link("s1").after(Link("n1", "n0")), START, LEASE).breaks == 0
