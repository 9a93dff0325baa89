"""How long a failing step of a cluster rests, as docs/defects.md promises."""

from datetime import timedelta
from itertools import pairwise

import pytest

from edgewright.domain.cluster import StepName
from edgewright.domain.lifecycle import CENTRAL_DELETION, EDGE_GOODBYE, REMOVAL
from edgewright.messages.names import BULK_QUEUE, CLUSTERS_QUEUE
from workflows.policies import backoff, step_policy


def test_a_step_is_tried_again_after_a_second_and_at_most_five_minutes_apart() -> None:
    waits = [backoff(attempts) for attempts in range(1, 20_000)]
    assert waits[0] == timedelta(seconds=1)
    assert all(later == min(earlier * 2, timedelta(minutes=5)) for earlier, later in pairwise(waits))
    assert max(waits) == timedelta(minutes=5)


def test_quick_retries_within_a_round_are_few_and_seconds_apart() -> None:
    for step in StepName:
        retry = step_policy(step)["retry_policy"]
        assert retry.maximum_attempts <= 3
        assert retry.maximum_interval is not None and retry.maximum_interval <= timedelta(seconds=2)


@pytest.mark.parametrize("step", [*REMOVAL, StepName.BEGIN_DELETION, *EDGE_GOODBYE, *CENTRAL_DELETION])
def test_no_step_of_a_removal_or_a_deletion_stands_in_the_bulk_queue(step: StepName) -> None:
    assert step_policy(step)["task_queue"] == CLUSTERS_QUEUE


def test_rendering_waits_in_the_bulk_queue() -> None:
    assert step_policy(StepName.POPULATE_REPOSITORY)["task_queue"] == BULK_QUEUE
