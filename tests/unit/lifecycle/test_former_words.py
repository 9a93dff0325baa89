"""What earlier versions have written is read in present words, and nothing else is reworded."""

from datetime import UTC, datetime

import pytest

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase
from edgewright.domain.projection import Projection

NOW = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
REWORDED = {
    "The edge was never heard.": "No heartbeat yet.",
    "Last heard 2031-02-03T04:05:06Z.": "No heartbeat since 2031-02-03T04:05:06Z.",
    "The edge told of nothing wrong, and is silent since.": "The edge reported no problem before it fell silent.",
    "The edge has told of nothing to judge by.": "The edge has reported nothing to judge its health by.",
    "The edge has applied 0123456789ab. That is what it said last; it is silent since.": (
        "The edge has applied 0123456789ab. That was its last report before it fell silent."
    ),
}


def condition(message: str, reason: str = "Reason") -> Condition:
    return Condition(
        type=ConditionType.AVAILABLE, status=ConditionStatus.UNKNOWN, reason=reason, message=message, since=NOW
    )


@pytest.mark.parametrize(("former", "present"), REWORDED.items())
def test_a_projection_of_an_earlier_version_is_read_in_present_words(former: str, present: str) -> None:
    now = Projection(sequence=1, phase=Phase.ACTIVE, ready=True, conditions=(condition(present, "NotBlocked"),))
    before = now.model_dump_json().replace(present, former).replace("NotBlocked", "Unhindered")
    assert former in before
    assert Projection.model_validate_json(before) == now


def test_two_sentences_that_differed_go_on_differing_and_present_ones_stay() -> None:
    said = [*REWORDED, *REWORDED.values()]
    assert [condition(each).message for each in said] == [*REWORDED.values()] * 2
    assert len({condition(each).message for each in REWORDED}) == len(REWORDED)


@pytest.mark.parametrize(
    "others",
    [
        "",
        "Last heard from Ann: change freeze until Monday.",
        "The edge was never heard. Ask Ann.",
        "Last heard 2031-02-03T04:05:06Z. So Ann says.",
    ],
)
def test_the_words_of_others_stay_as_they_are(others: str) -> None:
    assert condition(others).message == others
