"""What each request to delete a cluster does: no database is asked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from edgewright.domain.cluster import Acceptance, Desired, Workloads
from edgewright.domain.deletion import (
    DEADLINE,
    DeletionDecision,
    DeletionRequest,
    DeletionUnderWay,
    DeletionVerb,
    decide_deletion,
    desired_again,
    refuse_unanswered_purge,
    refuse_undeletion,
    sentence_of_deletion,
)
from edgewright.domain.ended import Purge
from edgewright.errors import Refused

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAME = "press-shop"
UNDER_WAY = DeletionUnderWay(
    force=False, deadline=NOW + 2 * HOUR, workloads=Workloads.REMOVE, purge=False, begun=False
)
BEGUN = replace(UNDER_WAY, begun=True)
PURGING = replace(UNDER_WAY, purge=True)


def decide(under_way: DeletionUnderWay | None, request: DeletionRequest) -> DeletionDecision | None:
    return decide_deletion(NAME, under_way, request, now=NOW)


@pytest.mark.parametrize(
    ("asked", "until"),
    [
        (DeletionRequest(), NOW + DEADLINE),
        (DeletionRequest(deadline=timedelta()), NOW),
        (DeletionRequest(force=True, deadline=72 * HOUR, workloads=Workloads.KEEP), NOW + 72 * HOUR),
        (DeletionRequest(purge=True), NOW + DEADLINE),
    ],
)
def test_a_deletion_begins_as_it_was_asked_for(asked: DeletionRequest, until: datetime) -> None:
    decision = DeletionDecision(DeletionVerb.REQUESTED, asked.force, until, asked.workloads, asked.purge)
    assert decide(None, asked) == decision


@pytest.mark.parametrize(
    ("under_way", "asked"),
    [
        (UNDER_WAY, DeletionRequest()),
        (UNDER_WAY, DeletionRequest(workloads=Workloads.KEEP)),
        (UNDER_WAY, DeletionRequest(deadline=2 * HOUR)),
        (UNDER_WAY, DeletionRequest(deadline=3 * HOUR)),
        (replace(UNDER_WAY, deadline=NOW + 72 * HOUR), DeletionRequest()),
        (replace(UNDER_WAY, force=True), DeletionRequest()),
        (replace(UNDER_WAY, force=True), DeletionRequest(force=True)),
        (PURGING, DeletionRequest(purge=True)),
        (replace(PURGING, begun=True), DeletionRequest(purge=True)),
        (replace(UNDER_WAY, deadline=NOW - HOUR), DeletionRequest(deadline=timedelta())),
    ],
)
def test_what_neither_hastens_nor_adds_anything_changes_nothing(
    under_way: DeletionUnderWay, asked: DeletionRequest
) -> None:
    assert decide(under_way, asked) is None


@pytest.mark.parametrize("under_way", [UNDER_WAY, BEGUN])
@pytest.mark.parametrize(
    ("asked", "force", "until"),
    [
        (DeletionRequest(force=True), True, NOW + 2 * HOUR),
        (DeletionRequest(force=True, deadline=3 * HOUR), True, NOW + 2 * HOUR),
        (DeletionRequest(deadline=HOUR), False, NOW + HOUR),
        (DeletionRequest(force=True, deadline=HOUR, workloads=Workloads.KEEP), True, NOW + HOUR),
    ],
)
def test_a_deletion_under_way_is_hastened_and_never_put_off(
    under_way: DeletionUnderWay, asked: DeletionRequest, force: bool, until: datetime
) -> None:
    decision = DeletionDecision(DeletionVerb.HASTENED, force, until, Workloads.REMOVE, purge=False)
    assert decide(under_way, asked) == decision


def test_what_was_forced_or_purges_stays_so_when_it_is_hastened() -> None:
    under_way = replace(PURGING, force=True)
    decision = DeletionDecision(DeletionVerb.HASTENED, True, NOW + HOUR, Workloads.REMOVE, purge=True)
    assert decide(under_way, DeletionRequest(deadline=HOUR)) == decision


@pytest.mark.parametrize(("deadline", "until"), [(None, NOW + DEADLINE), (HOUR, NOW + HOUR)])
def test_a_deletion_without_a_deadline_gets_one(deadline: timedelta | None, until: datetime) -> None:
    decision = DeletionDecision(DeletionVerb.HASTENED, False, until, Workloads.REMOVE, purge=False)
    assert decide(replace(UNDER_WAY, deadline=None), DeletionRequest(deadline=deadline)) == decision


@pytest.mark.parametrize(("deadline", "until"), [(None, 2 * HOUR), (HOUR, HOUR), (3 * HOUR, 2 * HOUR)])
def test_a_purge_is_added_to_a_deletion_that_has_not_begun(deadline: timedelta | None, until: timedelta) -> None:
    decision = DeletionDecision(DeletionVerb.CHANGED, False, NOW + until, Workloads.REMOVE, purge=True)
    assert decide(UNDER_WAY, DeletionRequest(deadline=deadline, purge=True)) == decision


@pytest.mark.parametrize(
    ("under_way", "code"),
    [
        (BEGUN, "purge_too_late"),
        (replace(BEGUN, force=True), "purge_too_late"),
        (replace(UNDER_WAY, force=True), "purge_impossible"),
        (replace(UNDER_WAY, workloads=Workloads.KEEP), "purge_impossible"),
    ],
)
def test_a_purge_that_comes_too_late_is_refused(under_way: DeletionUnderWay, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        decide(under_way, DeletionRequest(deadline=HOUR, purge=True))
    assert refusal.value.code == code


@pytest.mark.parametrize("asked", [DeletionRequest(force=True), DeletionRequest(workloads=Workloads.KEEP)])
def test_no_cluster_is_purged_without_its_edge_or_beside_its_workloads(asked: DeletionRequest) -> None:
    assert asked.check() is asked
    with pytest.raises(Refused) as refusal:
        replace(asked, purge=True).check()
    assert refusal.value.code == "purge_impossible"


@pytest.mark.parametrize("can_answer", [False, None])
def test_a_purge_needs_an_edge_that_can_answer(can_answer: bool | None) -> None:
    refuse_unanswered_purge(NAME, DeletionRequest(), can_answer=can_answer)
    refuse_unanswered_purge(NAME, DeletionRequest(purge=True), can_answer=True)
    with pytest.raises(Refused) as refusal:
        refuse_unanswered_purge(NAME, DeletionRequest(purge=True), can_answer=can_answer)
    assert refusal.value.code == "purge_impossible"


@pytest.mark.parametrize(("under_way", "code"), [(None, "not_deleting"), (BEGUN, "too_late")])
def test_only_a_deletion_that_has_not_begun_is_taken_back(under_way: DeletionUnderWay | None, code: str) -> None:
    refuse_undeletion(NAME, UNDER_WAY)
    with pytest.raises(Refused) as refusal:
        refuse_undeletion(NAME, under_way)
    assert refusal.value.code == code


def test_an_undeleted_cluster_is_what_it_was() -> None:
    assert desired_again(Desired.REMOVED) is Desired.REMOVED
    assert desired_again(None) is Desired.PRESENT


def test_the_timeline_says_what_became_of_the_deletion_and_what_stays() -> None:
    decision = DeletionDecision(DeletionVerb.HASTENED, False, NOW, Workloads.REMOVE, purge=False)
    attached = sentence_of_deletion(NAME, decision, can_answer=True, acceptance=Acceptance.ACCEPTED, purge=Purge())
    assert attached == (
        "The deletion of press-shop was brought forward; it waits for the edge until 2026-03-01T12:00:00Z at the "
        "latest. "
        "The kind SealedSecret and the sealing keys stay on the edge."
    )
    alone = sentence_of_deletion(NAME, decision, can_answer=False, acceptance=Acceptance.NONE, purge=Purge())
    assert alone == "The deletion of press-shop was brought forward; no edge is attached, so it does not wait."
