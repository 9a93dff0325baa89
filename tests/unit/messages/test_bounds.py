"""What is too long for a message is cut, where it is made, copied, read or written."""

import json

import pytest
from pydantic import JsonValue

from edgewright.domain.bounds import STATUS_BYTES
from edgewright.domain.projection import StepRecord
from edgewright.messages.cluster import ChangeSecrets, ClusterState, PendingVerb, StepVerb, VerbKind
from edgewright.messages.steps import Receipt, RecordEdgeStatus

LONG = "x" * 100_000


def test_a_long_sentence_ends_with_an_ellipsis() -> None:
    told = Receipt(refusal=LONG).refusal
    assert (len(told), told[-1]) == (1000, "…")


def test_what_is_short_stays_as_it_is() -> None:
    assert Receipt(refusal="no").refusal == "no"


def test_a_copy_that_was_not_checked_is_written_cut() -> None:
    copied = StepRecord.model_validate({"name": "create_accounts"}).model_copy(update={"error": LONG})
    assert len(json.loads(copied.model_dump_json())["error"]) == 1000


def test_an_old_message_that_is_too_long_is_read_cut() -> None:
    document = {"step": "create_accounts", "reason": LONG}
    assert len(StepVerb.model_validate_json(json.dumps(document)).reason) == 10_000


def test_the_first_of_many_is_kept() -> None:
    many = [f"00000000-0000-4000-8000-{number:012}" for number in range(5000)]
    read = ChangeSecrets.model_validate({"requests": many}).requests
    assert [str(request) for request in read] == many[:1000]


@pytest.mark.parametrize(("size", "kept"), [(1000, True), (STATUS_BYTES + 1, False)])
def test_a_document_is_kept_whole_or_not_at_all(size: int, kept: bool) -> None:
    body: dict[str, JsonValue] = {"text": "x" * size}
    message = {"cluster": "00000000-0000-4000-8000-000000000000", "actor": "a", "body": body}
    assert RecordEdgeStatus.model_validate(message).body == (body if kept else {})


def test_as_many_verbs_are_carried_as_fit() -> None:
    verbs = tuple(PendingVerb(kind=VerbKind.EDGE_STATUS, number=n, body={"text": "x" * 50_000}) for n in range(20))
    carried = ClusterState(verbs=verbs).verbs
    assert carried == verbs[: len(carried)]
    assert 3 < len(carried) < 10
