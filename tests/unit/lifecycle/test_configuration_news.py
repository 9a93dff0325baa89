"""The timeline says which fields of a configuration have changed, and never a secret."""

from typing import Any

import pytest

from edgewright.domain.configuration_news import changed_fields, names_of, sentence_of

BEFORE: dict[str, Any] = {
    "name": "x",
    "namespace": "edgewright",
    "values": {"db": {"user": "u", "password": "old-s3cr3t"}},
}


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"namespace": "other"}, '/namespace ("edgewright" → "other")'),
        ({"bare": True}, "/bare (unset → true)"),
        ({"labels": {"site/a": "b"}}, '/labels (unset → {"site/a": "b"})'),
        ({"values": {"db": {"user": "u", "password": "new-s3cr3t"}}}, "/values/db/password"),
        ({"values": {"db": {"user": "u"}, "more": ["s3cr3t"]}}, "/values/db/password, /values/more"),
        ({"values": {}}, "/values/db"),
        ({"values": "s3cr3t"}, "/values"),
        ({"own": {"password": "s3cr3t"}}, "/own"),
        ({"values": None, "name": None}, '/name ("x" → null), /values'),
    ],
)
def test_fields_are_named_and_helm_values_not_told(after: dict[str, Any], told: str) -> None:
    changes = changed_fields(BEFORE, {**BEFORE, **after})
    sentence = sentence_of("The configuration of x", changes)
    assert sentence == f"The configuration of x was changed: {told}."
    assert "s3cr3t" not in sentence + names_of(changes)


def test_labels_are_told_one_by_one() -> None:
    changes = changed_fields({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1", "b": "3", "c": "4"}})
    assert [str(change) for change in changes] == ['/labels/b ("2" → "3")', '/labels/c (unset → "4")']


def test_many_fields_are_counted_and_long_ones_cut() -> None:
    changes = changed_fields({"values": {}}, {"values": {f"key-{number:03}" * 30: number for number in range(100)}})
    sentence = sentence_of("It", changes)
    assert sentence.endswith(" and 92 more.")
    assert len(sentence) < 700


def test_what_does_not_differ_is_not_told() -> None:
    assert changed_fields(BEFORE, dict(BEFORE)) == []
    assert sentence_of("It", []) == "It was written without changes."


class CountedObject(dict[str, Any]):
    """An object of a configuration that counts how often all of it is read."""

    readings = 0

    def items(self) -> Any:
        self.readings += 1
        return super().items()


def test_a_field_deep_inside_is_read_once_and_not_once_for_each_level() -> None:
    was, is_ = CountedObject(size=1), CountedObject(size=2)
    before: dict[str, Any] = was
    after: dict[str, Any] = is_
    for _ in range(40):
        before, after = {"in": before}, {"in": after}
    assert names_of(changed_fields({"values": before}, {"values": after})).startswith("/values/in/in/")
    assert was.readings + is_.readings <= 2
