"""What a put-back of a repository does to what was answered."""

from tools.chaos.journal import JournalLine, Outcome
from tools.chaos.put_backs import PutBack, after_put_backs

CLUSTER = "0b5ff2b0-6f0c-4b7d-8a53-3fd0cd0f0fa5"
PUT_BACK = PutBack(CLUSTER, copy_began=10, copy_ended=11, began=50, ended=51)
ASKED = {"changes": [["default/db/a", "1"]]}


def attempt(began: float, outcome: Outcome, wish: str = "w") -> JournalLine:
    return JournalLine(wish, "secrets", CLUSTER, ASKED, began, began + 1, outcome, said={"commit": "c"})


def test_a_request_that_is_repeated_after_it_may_be_answered_with_a_commit_that_is_lost() -> None:
    """The first attempt had no answer, but its commit was made: the second is told of that."""
    seen = after_put_backs([attempt(40, "maybe"), attempt(60, "yes")], [PUT_BACK])
    assert [line.outcome for line in seen] == ["maybe", "maybe"]


def test_what_was_asked_first_after_it_holds() -> None:
    seen = after_put_backs([attempt(40, "maybe", "other"), attempt(60, "yes")], [PUT_BACK])
    assert [line.outcome for line in seen] == ["maybe", "yes"]


def test_what_was_answered_before_it_is_lost() -> None:
    assert after_put_backs([attempt(40, "yes")], [PUT_BACK]) == []
