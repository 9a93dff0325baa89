"""Nothing unbounded travels through Temporal: a payload over its limit would wedge a cluster for good."""

import inspect
import pkgutil
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from golden_messages import MODULES
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo
from temporalio import activity, workflow
from temporalio.common import RawValue

import activities
import workflows
from edgewright.domain.bounds import STATUS_BYTES, AtMost, WithinBytes
from edgewright.domain.cluster import StepName
from edgewright.domain.projection import StepRecord

LARGEST = 2 * 1024 * 1024
"""Bytes of a payload that Temporal's server takes (``limit.blobSize.error``)."""
SCALARS = (int, float, bool, UUID, datetime, AwareDatetime, type(None))
SCALAR = 40
"""Bytes that one needs at most."""
LETTER = 6
"""Bytes of a letter that JSON has to escape."""
DEFINITION = re.compile(r"@(?:activity\.defn|workflow\.(?:run|signal|update|query))\b")
MARKS = (
    "__temporal_activity_definition",
    "__temporal_workflow_run",
    "__temporal_signal_definition",
    "_defn",
    "__temporal_query_definition",
)
"""What Temporal's SDK sets on a function that the server calls; ``_defn`` on updates."""
NO_MESSAGES: Mapping[Any, Any] = {
    # Of a signal, whatever anybody sends. What is longer than a status is dropped before it goes anywhere, see
    # tests/workflows/test_floods.py::test_a_signal_larger_than_a_status_may_be_is_dropped_with_an_event.
    RawValue: Annotated[str, AtMost(STATUS_BYTES)],
    # The same with a name that no handler has: its inputs go nowhere.
    Sequence[RawValue]: Annotated[str, AtMost(STATUS_BYTES)],
    # The answer to a query, which no history keeps; a plan has each step once.
    list[StepRecord]: Annotated[tuple[StepRecord, ...], AtMost(len(StepName))],
}
"""Types of arguments and results that are no messages -> what bounds them."""


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


def called_by_temporal() -> Iterator[Callable[..., Any]]:
    """Every activity, and what a workflow is run, told and asked with."""
    for package in (activities, workflows):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for member in vars(module).values():
                if getattr(member, "__module__", None) == module.__name__:
                    yield from definitions(member)


def definitions(member: Any) -> Iterator[Callable[..., Any]]:
    for each in [member, *vars(member).values()] if inspect.isclass(member) else [member]:
        if inspect.isfunction(each) and any(hasattr(each, mark) for mark in MARKS):
            yield each


def sizes(function: Callable[..., Any]) -> dict[str, int]:
    """The bytes that each argument, and the result, can have.

    Raises:
        Unbounded: any number of them; or nobody says what it is.
    """
    hints = get_type_hints(function, include_extras=True)
    places = [name for name in inspect.signature(function).parameters if name != "self"]
    if unsaid := {*places, "return"} - hints.keys():
        raise Unbounded(f"{function.__qualname__}: {unsaid}")
    return {
        name: largest(NO_MESSAGES.get(hints[name], hints[name]), (), f"{function.__qualname__}: {name}")
        for name in (*places, "return")
    }


@pytest.mark.parametrize("function", list(called_by_temporal()), ids=lambda function: function.__qualname__)
def test_temporal_carries_nothing_but_bounded_values(function: Callable[..., Any]) -> None:
    assert max(sizes(function).values()) <= LARGEST


def test_every_activity_and_every_handler_is_looked_at(product_modules: list[Path]) -> None:
    written = sum(len(DEFINITION.findall(path.read_text("utf-8"))) for path in product_modules)
    assert len(list(called_by_temporal())) == written


class Loose(BaseModel):
    names: tuple[str, ...] = ()


class Wide(BaseModel):
    names: Annotated[tuple[Annotated[str, AtMost(1000)], ...], AtMost(1000)] = ()


def test_the_check_itself_can_fail() -> None:
    with pytest.raises(Unbounded, match="names"):
        of_model(Loose, "")
    assert of_model(Wide, "") > LARGEST


@activity.defn
async def takes_any_list(names: list[str]) -> None:
    """What no activity may be like."""


@activity.defn
async def gives_any_text(number: int) -> str:
    return str(number)


class Asked:
    @workflow.query
    def steps(self) -> list[StepRecord | str]:
        return []

    @workflow.update
    async def changed(self, words: dict[str, int]) -> None:
        """Takes any number of them."""

    @workflow.signal
    def told(self, anything) -> None:  # type: ignore[no-untyped-def] # what is looked for
        """Nobody says what it takes."""


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (takes_any_list, "names"),
        (gives_any_text, "return"),
        (Asked.steps, "return"),
        (Asked.changed, "words"),
        (Asked.told, "anything"),
    ],
)
def test_a_function_that_takes_or_gives_anything_is_found(function: Callable[..., Any], where: str) -> None:
    assert list(definitions(function)) == [function]
    with pytest.raises(Unbounded, match=where):
        sizes(function)
