"""Nothing unbounded travels through Temporal: a payload over its limit would wedge a cluster for good."""

import inspect
import types
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum
from importlib import import_module
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

import pytest
from golden_messages import MODULES
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from edgewright.domain.bounds import AtMost, WithinBytes

LARGEST = 2 * 1024 * 1024
"""Bytes of a payload that Temporal's server takes (``limit.blobSize.error``)."""
SCALARS = (int, float, bool, UUID, datetime, AwareDatetime, type(None))
SCALAR = 40
"""Bytes that one needs at most."""
LETTER = 6
"""Bytes of a letter that JSON has to escape."""


class Unbounded(Exception):
    """A value that may have any size."""


def messages() -> Iterator[type[BaseModel]]:
    for name in MODULES:
        module = import_module(f"edgewright.messages.{name}")
        for model in vars(module).values():
            if inspect.isclass(model) and issubclass(model, BaseModel) and model.__module__ == module.__name__:
                yield model


def largest(annotation: Any, bounds: Sequence[Any], where: str) -> int:
    """The bytes that a value of a type can have as JSON.

    Raises:
        Unbounded: any number of them.
    """
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return largest(inner, [*bounds, *more], where)
    for bound in bounds:
        if isinstance(bound, WithinBytes):
            return bound.most
    most = next((bound.most for bound in bounds if isinstance(bound, AtMost)), None)
    if annotation in SCALARS:
        return SCALAR
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return SCALAR
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return of_model(annotation, where)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        return max(largest(each, bounds, where) for each in arguments)
    if most is None:
        raise Unbounded(where)
    if annotation is str:
        return LETTER * most + 2
    return most * sum(largest(each, (), f"{where}[]") + 1 for each in arguments if each is not Ellipsis) + 2


def of_model(model: type[BaseModel], where: str) -> int:
    return 2 + sum(
        len(name) + 4 + of_field(field, f"{where}.{name}" if where else name)
        for name, field in model.model_fields.items()
    )


def of_field(field: FieldInfo, where: str) -> int:
    return largest(field.annotation, field.metadata, where)


@pytest.mark.parametrize("message", list(messages()), ids=lambda model: model.__name__)
def test_every_message_is_bounded_and_fits_into_a_payload(message: type[BaseModel]) -> None:
    assert of_model(message, message.__name__) <= LARGEST


class Loose(BaseModel):
    names: tuple[str, ...] = ()


class Wide(BaseModel):
    names: Annotated[tuple[Annotated[str, AtMost(1000)], ...], AtMost(1000)] = ()


def test_the_check_itself_can_fail() -> None:
    with pytest.raises(Unbounded, match="names"):
        of_model(Loose, "")
    assert of_model(Wide, "") > LARGEST
