"""What an edge says of secrets is read whatever it looks like, bounded, and told when it changes."""

from typing import Any

import pytest

from edgewright.domain import opened_secrets as reading
from edgewright.domain.edge_status import EdgeStatus, read_edge_status
from edgewright.domain.health import About, Finding, edge_health
from edgewright.domain.opened_secrets import LONGEST_SENTENCE, EdgeState, OpenedSecrets

TAKEN = 'Resource "taken" already exists and is not managed by SealedSecret'


Document = dict[str, Any]


def status_of(document: Document | None) -> EdgeStatus | None:
    return None if document is None else read_edge_status(document)


def opened_secrets(document: Document | None) -> OpenedSecrets | None:
    return reading.opened_secrets(status_of(document))


def refusal_news(before: Document | None, now: Document) -> tuple[str, str]:
    return reading.refusal_news(status_of(before), read_edge_status(now))


def secret_findings(document: Document) -> list[Finding]:
    return reading.secret_findings(read_edge_status(document))


def refusing(*names: str, count: int | None = None, sentence: str = TAKEN) -> dict[str, Any]:
    refused = [{"namespace": "default", "name": each, "digest": "a" * 8, "message": sentence} for each in names]
    counts = {"opened": 0, "pending": 0, "refused": len(names) if count is None else count}
    return {"secrets": {"counts": counts, "opened": "", "pending": "", "refused": refused}}


@pytest.mark.parametrize(
    "said",
    [
        {"counts": 5, "opened": 5, "pending": None, "refused": "x"},
        {"counts": {"opened": "many", "refused": -1}, "opened": ["x"], "refused": [5, {}, {"namespace": 5}]},
        {"refused": [{"namespace": "../..", "name": "x"}, {"namespace": "default", "name": "a/b"}]},
        {"counts": {"opened": 1, "pending": 0, "refused": 0}, "opened": ""},
        {"opened": "a" * 8, "templates": 5},
        {"opened": "a" * 8, "templates": {"opened": ["a"], "pending": "abcd"}, "refused": [{"template": 5}]},
    ],
)
def test_whatever_an_edge_says_nothing_is_opened_by_it(said: dict[str, Any]) -> None:
    read = opened_secrets({"secrets": said})
    assert read is not None
    assert (read.refused, read.state_of("x" * 8, "none")) == ((), (EdgeState.UNKNOWN, ""))
    assert secret_findings({"secrets": said}) == []


def test_what_is_opened_with_another_template_is_not_opened() -> None:
    opened, pending, refused = "o" * 8, "p" * 8, "r" * 8
    taken = {"namespace": "default", "name": "r", "digest": refused, "template": "rrrr", "message": TAKEN}
    counts = {"opened": 1, "pending": 1, "refused": 1}
    said: Document = {"counts": counts, "opened": opened, "pending": pending, "refused": [taken]}
    read = opened_secrets({"secrets": {**said, "templates": {"opened": "oooo", "pending": "pppp"}}})
    assert read is not None
    assert read.state_of(opened, "oooo")[0] is read.state_with_template(opened, "oooo") is EdgeState.OPENED
    assert read.state_of(pending, "pppp")[0] is EdgeState.APPLIED
    assert read.state_of(refused, "rrrr") == (EdgeState.REFUSED, TAKEN)
    for digest in (opened, pending, refused, "x" * 8):
        assert read.state_of(digest, "none") == (EdgeState.SEALED, "")
        assert read.state_with_template(digest, "none") is EdgeState.SEALED


@pytest.mark.parametrize("templates", [None, {}, {"opened": "aaa"}, {"opened": "aaaabbbb"}, {"pending": "aaaa"}])
def test_templates_that_are_not_told_are_not_guessed_at(templates: Document | None) -> None:
    """As an agent of an earlier version does, or one that has too much to say."""
    counts = {"opened": 1, "pending": 0, "refused": 0}
    read = opened_secrets({"secrets": {"counts": counts, "opened": "a" * 8, "templates": templates}})
    assert read is not None
    assert read.state_of("a" * 8, "aaaa")[0] is EdgeState.OPENED, "of the values it is said"
    assert read.state_with_template("a" * 8, "aaaa") is EdgeState.UNKNOWN
    assert read.state_with_template("b" * 8, "aaaa") is EdgeState.SEALED, "these values are not there at all"


@pytest.mark.parametrize("status", [None, {}, {"secrets": None}, {"secrets": []}])
def test_an_agent_that_does_not_say_is_not_taken_for_one_that_has_nothing(status: dict[str, Any] | None) -> None:
    assert opened_secrets(status) is None
    assert refusal_news(refusing("db"), status or {}) == ("", "")


def test_what_is_refused_is_told_once_and_so_is_its_end() -> None:
    assert refusal_news(None, refusing("a")) == (f"default/a ({TAKEN})", "")
    assert refusal_news(refusing("a"), refusing("a")) == ("", "")
    assert refusal_news(refusing("a"), refusing("a", "b")) == (f"default/b ({TAKEN})", "")
    assert refusal_news(refusing("a", "b"), refusing("b")) == ("", "default/a")
    assert refusal_news(None, refusing(*"abcdef", sentence="")) == ("default/a, default/b, default/c and 3 more", "")


def test_of_more_than_are_named_nobody_is_called_new_or_healed() -> None:
    many = refusing(*"abcdefghijklmnopqrst", count=300)
    others = refusing(*"bcdefghijklmnopqrstu", count=300)
    assert refusal_news(many, others) == ("", "")


def test_a_sentence_is_one_line_and_no_longer_than_a_line_bears() -> None:
    hostile = "x\n\x1b[31m\u202e" + "m" * 100_000
    [refused] = (opened_secrets(refusing("a", sentence=hostile)) or pytest.fail("none")).refused
    assert refused.sentence.startswith("x [31m mm") and len(refused.sentence) == LONGEST_SENTENCE
    assert len(refusal_news(None, refusing(*"abcdefghijkl", sentence=hostile))[0]) < 1000
    [finding] = secret_findings(refusing("a", sentence=hostile, count=10**300))
    assert len(finding.sentence) < 500


def test_what_is_refused_makes_the_edge_unhealthy_in_the_controllers_words() -> None:
    [first, second] = secret_findings(refusing("a", "b"))
    assert (first.about, first.name, first.own, first.reason) == (About.SECRET, "default/a", True, "SecretRefused")
    assert first.sentence == f"The secret default/a is not opened on the edge: {TAKEN}"
    assert edge_health([second, first]).message == f"{first.sentence}. Also failing: secret default/b."
    [one] = secret_findings(refusing("a", count=30))
    assert one.sentence.endswith(f"{TAKEN} (30 secrets are refused)")
    assert secret_findings(refusing()) == secret_findings({}) == []
