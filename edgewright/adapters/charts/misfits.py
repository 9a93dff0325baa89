"""Why values do not fit a chart's schema, in an operator's words: which value, and what it has to be.

No word of what the values hold: they may hold passwords. Names of values and what the schema says are told.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jsonschema.exceptions import ValidationError as Violation

from edgewright.adapters.json_schema import ADDITIONAL, unexpected_names
from edgewright.domain.json import Json
from edgewright.domain.reasons import form_of
from edgewright.domain.templates import child

LONGEST_PATH, LONGEST_REASON = 200, 200
MOST_NAMES = 100
"""Among which one that was meant is looked for."""
_KINDS = {
    "boolean": "true or false",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "array": "a list",
    "null": "null",
}

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Misfit:
    """One value that does not fit.

    Args:
        chart: folder of the chart.
        path: keys and numbers that lead to the value; of one that is missing, to where it should be.
        reason: completes a sentence that begins with the value.
        meant: a value of the chart with a name much like it; empty: none.
    """

    chart: str
    path: Path
    reason: str
    meant: str = ""

    @property
    def pointer(self) -> str:
        """JSON pointer, RFC 6901, bounded."""
        pointer = ""
        for step in self.path:
            pointer = child(pointer, step)
        return _short(pointer, LONGEST_PATH)

    @property
    def sentence(self) -> str:
        """Such as ``sealed-secrets.enabled: has to be true or false.``"""
        return f"{dotted(self.path) or 'All values together'}: {self.reason}."


def dotted(path: Path) -> str:
    """As Helm's users write it: ``a.b[0].c``; bounded."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return _short(text, LONGEST_PATH)


def is_in(values: Json, path: Path) -> bool:
    """Whether there is something at a place in values."""
    for step in path:
        if isinstance(values, Mapping) and step in values:
            values = values[str(step)]
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return False
    return True


def place_of(violation: Violation) -> Path:
    """The path of the value that a violation is about: also of one that should not be there, or that should."""
    path, wanted, instance = tuple(violation.absolute_path), violation.validator_value, violation.instance
    named = unexpected_names(violation)
    if violation.validator == "required" and isinstance(wanted, Sequence) and isinstance(instance, Mapping):
        named = [name for name in wanted if name not in instance]
    return (*path, *named[:1])


def misfit_of(chart: str, violation: Violation, *, below: Path = ()) -> Misfit:
    """What a violation of a chart's schema says.

    Args:
        below: where the values of the dependency stand whose schema it is; empty: it is the chart's own.
    """
    place, keyword = (*below, *place_of(violation)), str(violation.validator)
    if keyword == ADDITIONAL:
        return Misfit(chart, place, "there is no such value", _meant(violation, place))
    if list(violation.absolute_schema_path)[-2:-1] == ["propertyNames"]:
        keyword = "propertyNames"
    words = _WORDS.get(keyword)
    reason = words(violation.validator_value) if words else f"does not fit the chart's schema ({keyword})"
    return Misfit(chart, place, _short(reason, LONGEST_REASON))


def _meant(violation: Violation, place: Path) -> str:
    """The value of the chart whose name is most like the last one of a place; empty: none is."""
    schema = violation.schema if isinstance(violation.schema, Mapping) else {}
    known = list(schema.get("properties", ()))[:MOST_NAMES]
    close = get_close_matches(str(place[-1])[:LONGEST_PATH], known, n=1)
    return dotted((*place[:-1], *close)) if close else ""


def _of_type(wanted: Any) -> str:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    return f"has to be {' or '.join(_KINDS.get(str(kind), str(kind)) for kind in kinds)}"


def _at_least(wanted: Any) -> str:
    return "must not be empty" if wanted == 1 else f"needs {wanted} characters at least"


def _spelled(wanted: Any) -> str:
    return json.dumps(wanted, ensure_ascii=False)


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "type": _of_type,
    "enum": lambda wanted: f"has to be one of {', '.join(_spelled(each) for each in wanted)}",
    "const": lambda wanted: f"has to be {_spelled(wanted)}",
    "pattern": form_of,
    "minLength": _at_least,
    "maxLength": lambda wanted: f"may have {wanted} characters at most",
    "minimum": lambda wanted: f"has to be {wanted} at least",
    "maximum": lambda wanted: f"has to be {wanted} at most",
    "exclusiveMinimum": lambda wanted: f"has to be more than {wanted}",
    "exclusiveMaximum": lambda wanted: f"has to be less than {wanted}",
    "multipleOf": lambda wanted: f"has to be a multiple of {wanted}",
    "minItems": lambda wanted: f"needs {wanted} items at least",
    "maxItems": lambda wanted: f"may have {wanted} items at most",
    "uniqueItems": lambda _wanted: "holds the same item twice",
    "minProperties": lambda wanted: f"needs {wanted} values at least",
    "maxProperties": lambda wanted: f"may have {wanted} values at most",
    "required": lambda _wanted: "is missing",
    "properties": lambda _wanted: "may not be set",
    "propertyNames": lambda _wanted: "has a name in it that the chart does not take",
}


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
