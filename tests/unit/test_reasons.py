"""What was not accepted is explained in words, whichever library found out."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from pydantic_core.core_schema import ErrorType

from edgewright.adapters.json_schema import violation_of
from edgewright.domain.reasons import FORMS, reason_of
from edgewright.settings import Settings

CHECKOUT = Path(__file__).parents[2]
FOREIGN = re.compile(r"Value error|Input should|String should|pydantic|pattern|regex|schemas|\^|\$|\\")


def patterns(document: Any) -> Iterator[str]:
    """Every pattern that a value has to match; those that it must not match are never shown."""
    if isinstance(document, dict):
        if isinstance(document.get("pattern"), str):
            yield document["pattern"]
        for name, value in document.items():
            if name != "not":
                yield from patterns(value)
    elif isinstance(document, list):
        for value in document:
            yield from patterns(value)


def documents() -> Iterator[Any]:
    yield json.loads((CHECKOUT / "docs" / "openapi.json").read_text())
    yield Settings.model_json_schema()
    for file in sorted((CHECKOUT / "edgewright" / "domain" / "defaults" / "schemas").glob("*.json")):
        yield json.loads(file.read_text())


def test_every_pattern_of_ours_is_said_in_words() -> None:
    ours = {pattern for document in documents() for pattern in patterns(document)}
    assert len(ours) > 15
    assert ours - FORMS.keys() == set()


BOUNDS = {
    **dict.fromkeys(("min_length", "max_length", "gt", "ge", "lt", "le", "multiple_of"), 7),
    "expected": "'a', 'b' or 'c'",
    "pattern": "^theirs$",
    "error": ValueError("must be even"),
}


@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_whatever_the_library_finds_is_said_in_words(kind: str) -> None:
    for problem in ({"type": kind, "ctx": BOUNDS}, {"type": kind}):
        reason = reason_of(problem)
        assert FOREIGN.search(reason) is None
        assert reason.split()[0] in {"must", "is", "has", "does"}


@pytest.mark.parametrize("name", ["EDGEWRIGHT_EXTERNAL_URL", "EDGEWRIGHT_ORGANISATION", "EDGEWRIGHT_DEMO"])
def test_setting_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "s3cr3t s3cr3t")
    with pytest.raises(ValidationError) as caught:
        Settings()
    (problem,) = caught.value.errors()
    assert FOREIGN.search(reason_of(problem)) is None
    assert "s3cr3t" not in reason_of(problem)


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"pattern": "^[0-9a-f]{64}$"}, "x", "'x' must be 64 hexadecimal digits in lower case"),
        ({"pattern": "^theirs+$"}, "x", "'x' does not have the form that its schema asks for"),
        ({"not": {"pattern": "x"}}, "x", "'x' is not allowed here"),
        ({"oneOf": [{"pattern": "x"}, {"type": "string"}]}, "x", "'x' fits several of the alternatives"),
    ],
)
def test_schema_is_never_shown(schema: Any, value: Any, sentence: str) -> None:
    violation = violation_of(schema, value)
    assert violation is not None and violation.message == sentence
