"""What a history or a running cluster holds is understood by every later version.

The files below ``golden/`` are what earlier versions wrote. `tests/support/golden_messages.py` adds the files of new
messages and new fields; it changes none.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from golden_messages import (
    enumerations,
    filled,
    known_fields,
    minimal,
    models,
    pinned_names,
    properties,
    versions,
)
from pydantic import BaseModel, Field, create_model
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter

CONVERTER = pydantic_data_converter.payload_converter


def goldens() -> Iterator[Path]:
    for folder in versions():
        yield from sorted(folder.glob("*.json"))


MODEL_FILES = [path for path in goldens() if path.stem in models()]
ENUMERATION_FILES = [path for path in goldens() if path.stem in enumerations()]
NAME_FILES = [path for path in goldens() if path.stem == "names"]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def parsed(document: Any, model: type[BaseModel]) -> BaseModel:
    """Reads a document as Temporal's payloads are read."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(document).encode())
    value = CONVERTER.from_payload(payload, model)
    assert isinstance(value, model)
    return value


def written(value: BaseModel) -> Any:
    """What is written of a value, as Temporal's payloads are written."""
    return json.loads(CONVERTER.to_payload(value).data)


def missing(old: Any, new: Any, where: str = "") -> list[str]:
    """What an old document says that a new one does not."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            line
            for key, value in old.items()
            for line in (missing(value, new[key], f"{where}/{key}") if key in new else [f"{where}/{key}"])
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for number, value in enumerate(old) for line in missing(value, new[number], f"{where}/{number}")]
    return [] if old == new else [where]


@pytest.mark.parametrize("path", MODEL_FILES, ids=named)
@pytest.mark.parametrize("form", ["minimal", "filled"])
def test_what_was_written_before_is_read_whole(path: Path, form: str) -> None:
    document = json.loads(path.read_text())[form]
    assert missing(document, written(parsed(document, models()[path.stem]))) == []


@pytest.mark.parametrize("path", MODEL_FILES, ids=named)
def test_no_field_takes_less_or_means_something_else(path: Path) -> None:
    before, now = json.loads(path.read_text())["fields"], properties(models()[path.stem])
    assert {name: now.get(name) for name in before} == before


@pytest.mark.parametrize("path", ENUMERATION_FILES, ids=named)
def test_no_member_of_an_enumeration_is_gone(path: Path) -> None:
    now = {member.value for member in enumerations()[path.stem]}
    assert set(json.loads(path.read_text())["members"]) - now == set()


@pytest.mark.parametrize("path", NAME_FILES, ids=named)
def test_no_name_that_temporal_stores_has_changed(path: Path) -> None:
    assert missing(json.loads(path.read_text()), pinned_names()) == []


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.__name__)
def test_fields_of_a_later_version_are_ignored(model: type[BaseModel]) -> None:
    document = filled(model)
    read = written(parsed({"from_the_future": {"x": [1]}} | document, model))
    assert missing(document, read) == []
    assert "from_the_future" not in read


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.__name__)
def test_every_field_of_today_has_a_golden_file(model: type[BaseModel]) -> None:
    unknown = set(model.model_fields) - known_fields(model.__name__)
    assert unknown == set(), "write them down: python tests/support/golden_messages.py VERSION"


def test_every_model_and_enumeration_of_a_golden_file_exists() -> None:
    known = {*models(), *enumerations(), "names"}
    assert [named(path) for path in goldens() if path.stem not in known] == []


# --- the comparison itself can fail ----------------------------------------------------------------------------


class Yesterday(BaseModel):
    kept: int
    also: str = ""


def verdict(today: type[BaseModel]) -> str:
    """What the comparisons above would say of a model that was ``Yesterday``."""
    document = filled(Yesterday)
    for form in (minimal(document, Yesterday), document):
        try:
            if missing(form, written(parsed(form, today))):
                return "lost"
        except (RuntimeError, ValueError):
            return "refused"
    before = properties(Yesterday)
    return "same" if {name: properties(today).get(name) for name in before} == before else "changed"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kept": (int, ...), "also": (str, ""), "new": (int, 0)}, "same"),
        ({"kept": (int, ...)}, "lost"),
        ({"kept": (int, ...), "renamed": (str, "")}, "lost"),
        ({"kept": (int, ...), "also": (str, ...)}, "refused"),
        ({"kept": (int, ...), "also": (str, ""), "new": (int, ...)}, "refused"),
        ({"kept": (int, ...), "also": (int, 0)}, "refused"),
        ({"kept": (int, Field(le=1000)), "also": (str, "")}, "changed"),
        ({"kept": (int, ...), "also": (str, "other default")}, "changed"),
    ],
    ids=["addition", "removal", "renaming", "requirement", "required addition", "other type", "narrowing", "default"],
)
def test_a_change_that_breaks_old_messages_is_noticed(fields: dict[str, Any], expected: str) -> None:
    assert verdict(create_model("Today", **fields)) == expected
