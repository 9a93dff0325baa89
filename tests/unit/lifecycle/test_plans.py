"""What is done next follows from what is wanted and what is done, and from nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from edgewright.domain.cluster import Acceptance, Desired, Order, Phase, StepName, Wanted, Workloads
from edgewright.domain.lifecycle import (
    CENTRAL_DELETION,
    COMMISSIONING,
    EDGE_GOODBYE,
    REMOVAL,
    RENDERING,
    edge_has_answered,
    finish,
    is_skippable,
    next_step,
    order_for,
    phase_of,
    plan_for,
    reason_to_give_up,
    run_from,
)
from edgewright.domain.projection import Done, PlanKind

CLUSTER = UUID("00000000-0000-4000-8000-000000000001")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def wanted(**changes: Any) -> Wanted:
    facts: dict[str, Any] = {
        "uuid": CLUSTER,
        "name": "press-shop",
        "namespace": "edgewright",
        "generation": 1,
        "change": 1,
        "commissioning": 1,
        "desired": Desired.PRESENT,
        "render_digest": "a" * 64,
    }
    return Wanted(**(facts | changes))


COMMISSIONED = Done(generation=1, commissioning=1, rendered_digest="a" * 64)


def test_a_new_cluster_is_commissioned_in_order() -> None:
    assert plan_for(wanted(), Done()).steps == COMMISSIONING


def test_a_commissioned_cluster_has_nothing_to_do() -> None:
    assert plan_for(wanted(), COMMISSIONED).steps == ()


def test_a_changed_rendering_is_committed_without_unreadying() -> None:
    plan = plan_for(wanted(change=2, render_digest="b" * 64), COMMISSIONED)
    assert plan.steps == RENDERING
    assert StepName.WITHDRAW_STATUS not in plan.steps


def test_a_wish_that_was_taken_back_while_it_was_rendered_is_rendered_all_the_same() -> None:
    """Nothing differs from what is known to be committed; but an attempt at the other wish may still be under way."""
    taken_back = wanted(change=3, rendering_begun=True)
    plan = plan_for(taken_back, COMMISSIONED)
    assert plan.steps == RENDERING
    assert plan_for(wanted(change=3), finish(plan, taken_back, COMMISSIONED, "a" * 64)).steps == ()


def test_a_template_that_cannot_be_rendered_changes_nothing_that_is_there() -> None:
    assert plan_for(wanted(render_digest=None, render_problem="bad"), COMMISSIONED).steps == ()


def test_a_removal_suspends_and_withdraws_once() -> None:
    removed = wanted(desired=Desired.REMOVED, change=2)
    plan = plan_for(removed, COMMISSIONED)
    assert plan.steps == REMOVAL
    assert plan_for(removed, finish(plan, removed, COMMISSIONED, None)).steps == ()


def test_a_removal_that_overtakes_a_move_takes_the_secrets_of_the_old_hardware_along() -> None:
    removed = wanted(desired=Desired.REMOVED, change=3, commissioning=2, generation=2)
    plan = plan_for(removed, COMMISSIONED)
    assert plan.steps == (*REMOVAL, StepName.WITHDRAW_SECRETS)
    assert plan_for(removed, finish(plan, removed, COMMISSIONED, None)).steps == ()


def test_an_entry_written_again_is_commissioned_anew() -> None:
    removed = wanted(desired=Desired.REMOVED, change=2)
    after = finish(plan_for(removed, COMMISSIONED), removed, COMMISSIONED, None)
    assert plan_for(wanted(change=3, commissioning=2), after).steps == COMMISSIONING


def test_a_removal_that_nobody_saw_still_ends_in_a_new_commissioning() -> None:
    plan = plan_for(wanted(change=3, commissioning=2), COMMISSIONED)
    assert plan.steps == (StepName.WITHDRAW_STATUS, *COMMISSIONING)


def test_new_hardware_loses_the_secrets_of_the_old() -> None:
    plan = plan_for(wanted(change=3, commissioning=2, generation=2), COMMISSIONED)
    assert plan.steps == (StepName.WITHDRAW_STATUS, StepName.WITHDRAW_SECRETS, *COMMISSIONING)


def test_a_cluster_that_never_was_bootstrapped_goes_at_once() -> None:
    steps = plan_for(wanted(desired=Desired.DELETED), COMMISSIONED).steps
    assert steps == (StepName.BEGIN_DELETION, *CENTRAL_DELETION)


def test_a_bootstrapped_cluster_says_goodbye_first() -> None:
    steps = plan_for(wanted(desired=Desired.DELETED, bootstrapped=True), COMMISSIONED).steps
    assert steps == (StepName.BEGIN_DELETION, *EDGE_GOODBYE, *CENTRAL_DELETION)


def test_kept_workloads_are_not_removed_but_the_edge_still_detaches() -> None:
    doomed = wanted(desired=Desired.DELETED, bootstrapped=True, workloads=Workloads.KEEP)
    steps = plan_for(doomed, COMMISSIONED).steps
    assert StepName.REMOVE_WORKLOADS not in steps
    assert StepName.AWAIT_GOODBYE in steps


@pytest.mark.parametrize("done", [Done(), COMMISSIONED, Done(generation=1, removed=1)])
def test_a_deletion_wins_over_whatever_was_under_way(done: Done) -> None:
    doomed = plan_for(wanted(desired=Desired.DELETED, change=9), done)
    assert doomed.key != plan_for(wanted(), done).key
    assert doomed.steps[0] is StepName.BEGIN_DELETION


@pytest.mark.parametrize(
    ("changes", "done", "kind", "key"),
    [
        ({}, COMMISSIONED, PlanKind.IDLE, "idle"),
        ({"generation": 2, "commissioning": 5}, Done(), PlanKind.COMMISSION, "commission/2/5"),
        ({"change": 7, "render_digest": "b" * 64}, COMMISSIONED, PlanKind.RENDER, f"render/{'b' * 16}/7"),
        ({"desired": Desired.REMOVED, "commissioning": 3}, COMMISSIONED, PlanKind.REMOVE, "remove/3"),
        ({"desired": Desired.DELETED, "commissioning": 4}, COMMISSIONED, PlanKind.DELETE, "delete/4"),
    ],
)
def test_a_key_says_which_kind_of_plan_it_names_and_never_changes(
    changes: dict[str, Any], done: Done, kind: PlanKind, key: str
) -> None:
    plan = plan_for(wanted(**changes), done)
    assert (plan.kind, plan.key, PlanKind.of(plan.key)) == (kind, key, kind)


@pytest.mark.parametrize("key", ["", "deleted/1", "of a newer program/1"])
def test_a_key_of_no_known_plan_is_of_no_kind(key: str) -> None:
    assert PlanKind.of(key) is None


def test_a_closed_cluster_has_nothing_left_to_do() -> None:
    assert plan_for(wanted(desired=Desired.DELETED, closed=True), COMMISSIONED).steps == ()


def test_quick_steps_run_in_one_go_up_to_one_that_is_not() -> None:
    anew = plan_for(wanted(generation=2, commissioning=2), COMMISSIONED)
    assert run_from(anew, StepName.WITHDRAW_SECRETS, paused=False) == (StepName.WITHDRAW_SECRETS,)
    assert run_from(anew, StepName.ALLOCATE_ADDRESS, paused=False) == COMMISSIONING
    assert run_from(anew, StepName.CREATE_REPOSITORY, paused=False) == COMMISSIONING[2:]
    assert run_from(anew, StepName.ALLOCATE_ADDRESS, paused=True) == COMMISSIONING[:3]
    deletion = plan_for(wanted(desired=Desired.DELETED), COMMISSIONED)
    assert all(run_from(deletion, step, paused=False) == (step,) for step in deletion.steps)


def test_steps_run_in_order_and_finished_ones_are_passed_over() -> None:
    plan = plan_for(wanted(), Done())
    assert next_step(plan, ()) is StepName.ALLOCATE_ADDRESS
    assert next_step(plan, {StepName.ALLOCATE_ADDRESS, StepName.CREATE_ACCOUNTS}) is StepName.CREATE_REPOSITORY
    assert next_step(plan, set(plan.steps)) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"deadline": NOW + timedelta(seconds=1)}, ""),
        ({"deadline": NOW}, "the deadline of the deletion has passed"),
        ({"force": True}, "the deletion was forced"),
    ],
)
def test_the_edge_is_waited_for_until_the_deadline_or_a_forced_deletion(changes: dict[str, Any], reason: str) -> None:
    doomed = wanted(desired=Desired.DELETED, bootstrapped=True, **changes)
    assert reason_to_give_up(StepName.AWAIT_GOODBYE, doomed, NOW) == reason


@pytest.mark.parametrize("step", CENTRAL_DELETION)
def test_central_steps_are_never_given_up(step: StepName) -> None:
    assert reason_to_give_up(step, wanted(desired=Desired.DELETED, force=True), NOW) == ""


def test_the_last_step_of_a_deletion_cannot_be_skipped() -> None:
    assert not is_skippable(StepName.REMOVE_SETUP_STATUS)


@pytest.mark.parametrize("step", [*REMOVAL, *COMMISSIONING, StepName.BEGIN_DELETION, StepName.REVOKE_CREDENTIALS])
def test_only_what_leaves_something_on_another_system_can_be_skipped(step: StepName) -> None:
    assert not is_skippable(step)


@pytest.mark.parametrize("step", [*EDGE_GOODBYE, *CENTRAL_DELETION[1:-1]])
def test_what_another_system_may_keep_from_ending_can_be_skipped(step: StepName) -> None:
    assert is_skippable(step)


def test_an_empty_inventory_is_an_answer_only_to_the_question_for_it() -> None:
    told = wanted(desired=Desired.DELETED, inventory_empty_at=NOW)
    assert edge_has_answered(StepName.AWAIT_EMPTY, told)
    assert not edge_has_answered(StepName.AWAIT_GOODBYE, told)
    assert edge_has_answered(StepName.AWAIT_EMPTY, wanted(detached_at=NOW))


def test_the_agent_is_ordered_to_detach_only_when_its_turn_has_come() -> None:
    assert order_for(StepName.REMOVE_WORKLOADS) is Order.NONE
    assert order_for(StepName.AWAIT_EMPTY) is Order.REPORT_EMPTY
    assert order_for(StepName.AWAIT_GOODBYE) is Order.DETACH
    assert order_for(None) is Order.NONE


@pytest.mark.parametrize(
    ("changes", "commissioned", "phase"),
    [
        ({}, False, Phase.COMMISSIONING),
        ({}, True, Phase.AWAITING_BOOTSTRAP),
        ({"acceptance": Acceptance.PENDING, "bootstrapped": True}, True, Phase.PENDING_ACCEPTANCE),
        ({"acceptance": Acceptance.ACCEPTED, "bootstrapped": True}, True, Phase.ACTIVE),
        ({"acceptance": Acceptance.REJECTED}, True, Phase.AWAITING_BOOTSTRAP),
        ({"edge_reported_at": NOW}, True, Phase.ACTIVE),
        ({"desired": Desired.REMOVED}, True, Phase.REMOVED),
        ({"desired": Desired.DELETED}, True, Phase.DETACHING),
        ({"desired": Desired.DELETED, "closed": True}, True, Phase.DELETED),
    ],
)
def test_phases(changes: dict[str, Any], commissioned: bool, phase: Phase) -> None:
    assert phase_of(wanted(**changes), commissioned=commissioned) is phase
