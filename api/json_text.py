"""JSON text into values, in time that is linear in its length and memory that is bounded by its limits."""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from edgewright.errors import Invalid, Refused

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
"""What the shape of a document follows from. A string without an end is one token: nothing is looked at twice."""
_NUL = r"\u0000"
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""What half of a surrogate pair looks like; so do whole ones."""
_TOKENS_PER_NODE = 4
"""In valid JSON, with two to spare: a comma or an opening bracket, a name, a text and a closing bracket."""
_SPARE_TOKENS = 4


@dataclass(frozen=True)
class JsonLimits:
    """What one JSON document may be.

    Args:
        octets: length of its text.
        levels: of objects and arrays in each other.
        nodes: objects, arrays and their members, counted together.
    """

    octets: int
    levels: int
    nodes: int


def parse_json(body: bytes, limits: JsonLimits) -> Any:
    """The value of a JSON text. Its length is the caller's to check.

    Raises:
        Refused: code ``json_malformed``: no JSON, or JSON that no store can hold (NaN, half of a surrogate pair,
            NUL).
        Invalid: codes ``json_too_deep`` and ``json_too_many_nodes``, before any value is made.
    """
    try:
        text = body.decode(json.detect_encoding(body))
    except UnicodeDecodeError:
        raise _malformed("The body is not valid JSON: it is not UTF-8.") from None
    _check_shape(text, limits)
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        escapes = text.replace(r"\\", "  ")  # what is left of the backslashes begins an escape
        if _HALF_PAIR.search(escapes):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise _malformed(f"The body is not valid JSON{place}.") from None
    if _NUL in escapes:
        raise _malformed("The body holds a NUL character, which no name or text may have.")
    return value


def _check_shape(text: str, limits: JsonLimits) -> None:
    """Counts levels and nodes in the text, and stops as soon as there are too many."""
    opened = text.count("[") + text.count("{")
    if opened <= limits.levels and opened + text.count(",") <= limits.nodes:
        return  # even if none of them stood in a string
    level = nodes = 0
    for tokens, found in enumerate(_TOKEN.finditer(text), 1):
        match text[found.start()]:
            case "[" | "{":
                level += 1
                nodes += 1
            case "]" | "}":
                level -= 1
            case ",":
                nodes += 1
            case _:
                pass
        if level > limits.levels:
            raise Invalid(
                f"The body has more than {limits.levels} levels.",
                code="json_too_deep",
                hint="Send fewer objects and arrays inside each other.",
                where="/",
            )
        if nodes > limits.nodes:
            raise Invalid(
                f"The body has more than {limits.nodes} objects, arrays and members.",
                code="json_too_many_nodes",
                hint="Send less at once.",
                where="/",
            )
        if tokens > _TOKENS_PER_NODE * limits.nodes + _SPARE_TOKENS:
            raise _malformed("The body is not valid JSON.")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("JSON has no such number")
    return number


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("JSON has no such number")


def _malformed(detail: str) -> Refused:
    return Refused(
        detail, code="json_malformed", hint='Send one JSON document in UTF-8, such as {"name": "press-shop"}.'
    )
