"""Limits for values in messages through Temporal, which carries at most 2 MB in one payload.

Longer values are cut off when they are created, read or written, because a refused message would wedge a cluster. The
full values are in the database.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, NewType, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, SerializerFunctionWrapHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema, to_json


@dataclass(frozen=True)
class _Cut:
    """Cuts a value without changing the schema of its field, so that old messages are read as before."""

    most: int

    def cut(self, value: Any) -> Any:
        """Returns the value, or the part of it that fits."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            self.cut,
            handler(source),
            serialization=core_schema.wrap_serializer_function_ser_schema(_writing(self.cut), schema=handler(source)),
        )


def _writing(cut: Callable[[Any], Any]) -> Callable[[Any, SerializerFunctionWrapHandler], Any]:
    def write(value: Any, handler: SerializerFunctionWrapHandler) -> Any:
        return handler(cut(value))

    return write


@dataclass(frozen=True)
class AtMost(_Cut):
    """The first ``most`` characters of a text, items of a tuple, or entries of an object."""

    def cut(self, value: Any) -> Any:
        if value is None or len(value) <= self.most:
            return value
        if isinstance(value, dict):
            return dict(islice(value.items(), self.most))
        return value[: self.most - 1] + "…" if isinstance(value, str) else value[: self.most]


@dataclass(frozen=True)
class WithinBytes(_Cut):
    """Keeps the first items of a tuple that fit into ``most`` bytes of JSON. An object is kept whole, or becomes
    empty: parts of it could mislead."""

    def cut(self, value: Any) -> Any:
        if not isinstance(value, tuple):
            return value if len(to_json(value)) <= self.most else {}
        left, fitting = self.most - 2, 0
        for item in value:
            left -= len(to_json(item)) + 1
            if left < 0:
                break
            fitting += 1
        return value[:fitting]


Word = Annotated[str, AtMost(320)]
"""A name, an identifier, a code, a digest."""
OtherWord = NewType("OtherWord", str)
"""A word in place of an enumeration's member that only a newer program knows."""
Member = TypeVar("Member", bound=StrEnum)


class _AnyWordIsRead:
    """Accepts any word, so that a message from a newer program wedges nothing; only members are written."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string"} if handler.mode == "validation" else handler(schema)["anyOf"][0]


WordOf = Annotated[Member | Annotated[OtherWord, AtMost(320)], Field(union_mode="left_to_right"), _AnyWordIsRead()]
"""A member of an enumeration. Any other word is kept as it is."""
Place = Annotated[str, AtMost(600)]
"""``namespace/name/key``."""
Sentence = Annotated[str, AtMost(1000)]
"""Text for people."""
STATUS_BYTES = 64 * 1024
STATUS_LEVELS = 30
STATUS_NODES = 10_000
"""Bounds of an edge's status."""
