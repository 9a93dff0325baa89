"""Every message and what it embeds: found, filled, and written down for those who come later.

Run as a program with the version that is being worked on (`python tests/support/golden_messages.py 0.3.0`) it writes
the golden file of every message that is new or has new fields. Golden files of a release are never changed: they are
what running clusters and their histories hold.
"""

import inspect
import json
import pkgutil
import sys
import types
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Ge
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

import edgewright.messages
from edgewright.messages import names

GOLDEN = Path(__file__).parents[1] / "unit" / "messages" / "golden"
MODULES = tuple(module.name for module in pkgutil.walk_packages(edgewright.messages.__path__))
AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
SCALARS: Mapping[Any, Any] = {
    str: "text",
    int: 7,
    float: 1.5,
    bool: True,
    UUID: UUID("7d6a4c1e-5b0f-4f57-9a43-0f6a2d1c9b8e"),
    AwareDatetime: AT,
    Any: {"any": [1, None]},
}

Model = type[BaseModel]


@cache
def models() -> Mapping[str, Model]:
    """Every message, and every model that a message embeds, by name."""
    found: dict[str, Model] = {}
    for module in (import_module(f"edgewright.messages.{name}") for name in MODULES):
        for model in vars(module).values():
            if inspect.isclass(model) and issubclass(model, BaseModel) and model.__module__ == module.__name__:
                _collect(model, found)
    return found


def _collect(model: Model, found: dict[str, Model]) -> None:
    if found.setdefault(model.__name__, model) is not model:
        raise TypeError(f"two models are called {model.__name__}")
    for field in model.model_fields.values():
        for part in parts(field.annotation):
            if inspect.isclass(part) and issubclass(part, BaseModel) and part.__name__ not in found:
                _collect(part, found)


@cache
def enumerations() -> Mapping[str, type[Enum]]:
    """Every enumeration that a message holds, by name."""
    return {
        part.__name__: part
        for model in models().values()
        for field in model.model_fields.values()
        for part in parts(field.annotation)
        if inspect.isclass(part) and issubclass(part, Enum)
    }


def parts(annotation: Any) -> Iterator[Any]:
    """A type and everything inside it."""
    yield annotation
    for argument in get_args(annotation):
        if get_origin(annotation) is not Literal:
            yield from parts(argument)


def filled(model: Model) -> dict[str, Any]:
    """A JSON document in which every field is stated, and differs from its default."""
    values = {name: _value(field.annotation, field) for name, field in model.model_fields.items()}
    document = json.loads(model.model_validate(values).model_dump_json())
    assert isinstance(document, dict)
    return document


def minimal(document: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """The fields of a document that cannot be left out."""
    return {name: value for name, value in document.items() if model.model_fields[name].is_required()}


def _value(annotation: Any, field: FieldInfo | None = None) -> Any:
    least = next((limit.ge for limit in field.metadata if isinstance(limit, Ge)), None) if field else None
    if least is not None:
        return least
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return filled(annotation)
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return list(annotation)[-1]
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(arguments[0], field)
    if origin in {Union, types.UnionType}:
        return _value(arguments[0])
    if origin is tuple:
        return [_value(arguments[0])]
    if origin is dict:
        return {"key": _value(arguments[1])}
    return {"json": [1, "two", None]}  # pydantic's JsonValue, whose parts are no types


def properties(model: Model) -> dict[str, Any]:
    """What each field takes and what it is when it is left out, as JSON Schema."""
    found = model.model_json_schema(mode="validation").get("properties", {})
    assert isinstance(found, dict)
    return found


def pinned_names() -> dict[str, Any]:
    """Every name that Temporal stores."""
    return {name: value for name, value in vars(names).items() if isinstance(value, str | dict) and name.isupper()}


def versions() -> list[Path]:
    """The golden folders, oldest first."""
    return sorted(GOLDEN.iterdir(), key=lambda folder: [int(part) for part in folder.name.split(".")])


def known(name: str) -> list[dict[str, Any]]:
    """The golden files of a name, oldest first."""
    files = [folder / f"{name}.json" for folder in versions()]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def known_fields(model: str) -> set[str]:
    """The fields of a model that a golden file states."""
    return {name for golden in known(model) for name in golden["filled"]}


def record(version: str) -> None:
    """Writes golden files for what has none."""
    folder = GOLDEN / version
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models().items():
        document = filled(model)
        if not known(name) or set(document) - known_fields(name):
            golden = {"minimal": minimal(document, model), "filled": document, "fields": properties(model)}
            _write(folder / f"{name}.json", golden)
    for name, members in enumerations().items():
        listed = [member.value for member in members]
        if set(listed) - {member for golden in known(name) for member in golden["members"]}:
            _write(folder / f"{name}.json", {"members": listed})
    if set(pinned_names()) - {name for golden in known("names") for name in golden}:
        _write(folder / "names.json", pinned_names())


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    record(sys.argv[1])
