"""Who has published a step and not finished it is reminded of it, less and less often."""

from itertools import pairwise
from uuid import uuid4

from activities.upkeep import FIRST_REMINDER, LONGEST_PAUSE, MOST_REMINDERS, Reminders

DAY = 86_400


def test_a_cluster_that_waits_for_a_day_is_reminded_soon_then_at_growing_intervals() -> None:
    waits, reminders = uuid4(), Reminders()
    reminded = [now for now in range(0, DAY, 30) if reminders.due([waits], float(now))]
    assert reminded[:5] == [30, 60, 120, 240, 480]
    pauses = [later - earlier for earlier, later in pairwise(reminded[4:])]
    assert set(pauses) == {LONGEST_PAUSE}


def test_a_cluster_that_was_done_meanwhile_is_new_when_it_waits_again() -> None:
    waits, reminders = uuid4(), Reminders()
    assert reminders.due([waits], 0.0) == []
    assert reminders.due([waits], 1000.0) == [waits]
    assert reminders.due([], 1001.0) == []
    assert reminders.due([waits], 1002.0) == []
    assert reminders.due([waits], 1002.0 + FIRST_REMINDER) == [waits]


def test_very_many_are_reminded_one_part_after_the_other() -> None:
    waiting, reminders = [uuid4() for _ in range(2 * MOST_REMINDERS)], Reminders()
    reminders.due(waiting, 0.0)
    first, second = reminders.due(waiting, 60.0), reminders.due(waiting, 61.0)
    assert len(first) == len(second) == MOST_REMINDERS
    assert {*first, *second} == {*waiting}
