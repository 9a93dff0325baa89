"""Says in words why a value is not accepted, without library names and regular expressions."""

from collections.abc import Callable, Mapping
from typing import Any

from edgewright.domain.check_in import WINDOW

_CREDENTIAL = "must be a credential as an edge makes it"
_LABEL_NAME = "1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
_LOWER_NAME = "must be 1 to 63 lower-case letters, digits or '-', with a letter or digit at both ends"

FORMS: Mapping[str, str] = {
    WINDOW: "must be a window such as 22:00-06:00, or Mon-Fri,Sun 22:00-06:00",
    r"^[0-9A-Fa-f]{64}$": "must be 64 hexadecimal digits",
    r"^[0-9a-f]{64}$": "must be 64 hexadecimal digits in lower case",
    r"^ew[fa]_[0-9a-f]{64}$": _CREDENTIAL,
    r"^ewf_[0-9a-f]{64}$": _CREDENTIAL,
    r"^ewa_[0-9a-f]{64}$": _CREDENTIAL,
    r"^[0-9A-Za-z-]{1,64}$": "must be 1 to 64 letters, digits or '-'",
    r"^[\x20-\x7e]{1,64}$": "must be 1 to 64 printable ASCII characters",
    r"^[A-Za-z0-9][A-Za-z0-9._@ -]{0,62}$": (
        "must be 1 to 63 letters, digits, spaces, '.', '_', '@' or '-', beginning with a letter or digit"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$": (
        "must be 1 to 63 letters, digits, '-' or '_', beginning with a letter or digit"
    ),
    r"^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$": (
        "must be 1 to 63 letters, digits, '-' or '_', with a letter or digit at both ends"
    ),
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": _LOWER_NAME,
    r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$": (
        "must be lower-case letters, digits, '-' or '.', with a letter or digit at both ends"
    ),
    r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$": "must be a UUID",
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$": (
        f"must be a label's key: {_LABEL_NAME}; a domain and a slash may stand before it"
    ),
    r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$": f"must be a label's value: empty, or {_LABEL_NAME}",
    r"^[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*$": "must be a time zone such as Europe/London or UTC",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$": (
        "must be a file name of 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,94}\.yaml$": (
        "must be a file name of letters, digits, '.', '_' or '-' that ends with .yaml"
    ),
    r"^\{\{.*\}\}$": "must be a template, {{ … }}",
    "^(DEBUG|INFO|WARNING|ERROR)$": "must be DEBUG, INFO, WARNING or ERROR",
}
"""What each of our patterns requires. A test finds patterns that are missing here."""

_BY_KIND: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not a field that is known here",
    "none_required": "must be null",
    "string_type": "must be a string",
    "string_sub_type": "must be a string",
    "string_unicode": "must be text in UTF-8",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "iterable_type": "must be a list",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dataclass_type": "must be an object",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "path_type": "must be the path of a file",
    "json_invalid": "must be JSON",
    "json_type": "must be JSON",
    "datetime_type": "must be a time such as 2031-02-03T04:05:06Z",
    "datetime_parsing": "must be a time such as 2031-02-03T04:05:06Z",
    "datetime_from_date_parsing": "must be a time such as 2031-02-03T04:05:06Z",
    "timezone_aware": "must be a time with its zone, such as 2031-02-03T04:05:06Z",
    "time_delta_type": "must be a duration",
    "time_delta_parsing": "must be a duration",
}

_BY_BOUND: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "string_too_short": lambda bound: f"must have at least {_counted(bound['min_length'], 'character')}",
    "string_too_long": lambda bound: f"must have at most {_counted(bound['max_length'], 'character')}",
    "too_short": lambda bound: f"must have at least {_counted(bound['min_length'], 'item')}",
    "too_long": lambda bound: f"must have at most {_counted(bound['max_length'], 'item')}",
    "greater_than": lambda bound: f"must be more than {_number(bound['gt'])}",
    "greater_than_equal": lambda bound: f"must be at least {_number(bound['ge'])}",
    "less_than": lambda bound: f"must be less than {_number(bound['lt'])}",
    "less_than_equal": lambda bound: f"must be at most {_number(bound['le'])}",
    "multiple_of": lambda bound: f"must be a multiple of {bound['multiple_of']}",
    "literal_error": lambda bound: f"must be {_alternatives(bound['expected'])}",
    "enum": lambda bound: f"must be {_alternatives(bound['expected'])}",
    "string_pattern_mismatch": lambda bound: form_of(bound["pattern"]),
    "value_error": lambda bound: str(bound["error"]),
}


def reason_of(problem: Mapping[str, Any]) -> str:
    """Says why a part of a document or a setting is not accepted, as the end of a sentence, without its value.

    Args:
        problem: an error from pydantic, with its ``type`` and ``ctx``.
    """
    kind, bound = str(problem["type"]), problem.get("ctx") or {}
    words = _BY_BOUND.get(kind)
    if words is not None and bound:
        return words(bound)
    return _BY_KIND.get(kind, "has a value that cannot be used here")


def form_of(pattern: str) -> str:
    """Says what a pattern requires, as the end of a sentence; for unknown patterns, only that there is a rule."""
    return FORMS.get(pattern, "does not have the form that its schema asks for")


def _number(bound: Any) -> Any:
    """Returns a bound as people write it: 0 instead of 0.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _alternatives(expected: str) -> str:
    """Returns pydantic's list of alternatives, ``'a', 'b' or 'c'``, without quotation marks."""
    return expected.replace("'", "")
