"""The language of JSON templates.

A template is any JSON value. In its strings, and nowhere else (keys are names, not templates), a *mark*
``{{ path }}`` stands for a variable; spaces inside the braces do not matter:

- a string that is exactly one mark becomes the value itself: object, list, string, number, boolean or null;
- a mark inside a longer string becomes text: the value has to be a string, a number or a boolean.

``path`` is one name or several with dots between: ``url.self`` is member ``self`` of variable ``url``.
An inserted value is final. Marks inside it are not looked at again, so that no value can smuggle in a template.
There is no escape: text that needs ``{{`` comes in as a value.
"""

import json
import re
from collections.abc import Mapping

from edgewright.domain.json import Json
from edgewright.errors import Stalled

MAX_DEPTH = 64
"""Most levels of nested containers, including inserted values."""

MAX_OUTPUT_BYTES = 1024 * 1024
"""Most bytes of the expanded value as compact JSON; inserted values count each time."""

_MARK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_EXACT_MARK = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")


class TemplateError(Stalled):
    """A template that cannot be used until somebody changes it; ``where`` is ``file#/json/pointer``."""

    code = "template_invalid"

    def __init__(self, reason: str, *, where: str, hint: str | None = None) -> None:
        super().__init__(f"{where}: {reason}", where=where, hint=hint)
        self.reason = reason


def expand(template: Json, context: Mapping[str, Json], *, where: str) -> Json:
    """Replaces every mark in a template, and returns the result.

    Args:
        context: the variables by name.
        where: name of the template in errors, such as ``flux template self-link.yaml``.

    Raises:
        TemplateError: an unknown variable, a mark that is no path, an object or list inside a longer string,
            or more than the limits above.
    """
    return _Expansion(context, where).value(template, pointer="", depth=0)


def check_bounds(value: Json, *, where: str) -> None:
    """Refuses a value that no template could hold.

    Raises:
        TemplateError: deeper than ``MAX_DEPTH`` or larger than ``MAX_OUTPUT_BYTES``.
    """
    _Expansion({}, where).charge(value, pointer="", depth=0)


def merge_values(base: Json, override: Json) -> Json:
    """Merges Helm values with others that override them, and returns the result; changes neither.

    Objects are merged key by key; anything else in ``override`` replaces the value of ``base``. So does null, which
    stays in the result: for Helm, a null means "remove the chart's own default", which only Helm can do. Both must
    have passed ``check_bounds``.
    """
    if not (isinstance(base, Mapping) and isinstance(override, Mapping)):
        return override
    merged = dict(base)
    for key, value in override.items():
        merged[key] = merge_values(merged[key], value) if key in merged else value
    return merged


def child(pointer: str, step: str | int) -> str:
    """Returns the JSON pointer (RFC 6901) of a member or element."""
    return f"{pointer}/{str(step).replace('~', '~0').replace('/', '~1')}"


class _Expansion:
    """One run of ``expand``: the variables, and how many bytes the result may still have."""

    def __init__(self, context: Mapping[str, Json], where: str) -> None:
        self._context = context
        self._where = where
        self._bytes_left = MAX_OUTPUT_BYTES

    def value(self, template: Json, *, pointer: str, depth: int) -> Json:
        if isinstance(template, str):
            return self._string(template, pointer, depth)
        if isinstance(template, Mapping):
            self._enter(pointer, depth)
            expanded: dict[str, Json] = {}
            for key, member in template.items():
                self._spend(_text_size(key) + 2, pointer)
                expanded[key] = self.value(member, pointer=child(pointer, key), depth=depth + 1)
            return expanded
        if isinstance(template, list | tuple):
            self._enter(pointer, depth)
            return [
                self.value(element, pointer=child(pointer, index), depth=depth + 1)
                for index, element in enumerate(template)
            ]
        self.charge(template, pointer=pointer, depth=depth)
        return template

    def charge(self, value: Json, *, pointer: str, depth: int) -> None:
        """Counts a value that goes into the output as it is."""
        if isinstance(value, str):
            self._spend(_text_size(value), pointer)
        elif isinstance(value, Mapping):
            self._enter(pointer, depth)
            for key, member in value.items():
                self._spend(_text_size(key) + 2, pointer)
                self.charge(member, pointer=pointer, depth=depth + 1)
        elif isinstance(value, list | tuple):
            self._enter(pointer, depth)
            for element in value:
                self._spend(1, pointer)
                self.charge(element, pointer=pointer, depth=depth + 1)
        else:
            self._spend(len(json.dumps(value)), pointer)

    def _string(self, template: str, pointer: str, depth: int) -> Json:
        exact = _EXACT_MARK.fullmatch(template)
        if exact:
            value = self._look_up(exact[1], pointer)
            self.charge(value, pointer=pointer, depth=depth)
            return value
        if "{{" in _MARK.sub("", template):
            raise self._error("'{{' without '}}'", pointer)

        def text_of(mark: re.Match[str]) -> str:
            value = self._look_up(mark[1], pointer)
            if value is None or isinstance(value, Mapping | list | tuple):
                raise self._error(
                    f"variable '{mark[1].strip()}' is {_kind(value)} and cannot stand inside a longer string",
                    pointer,
                )
            text = value if isinstance(value, str) else json.dumps(value)
            self._spend(_text_size(text), pointer)
            return text

        expanded = _MARK.sub(text_of, template)
        self._spend(_text_size(_MARK.sub("", template)), pointer)
        return expanded

    def _look_up(self, inside: str, pointer: str) -> Json:
        path = inside.strip()
        if _PATH.fullmatch(path) is None:
            raise self._error(f"'{{{{{_shortened(inside)}}}}}' is not a variable name", pointer)
        value: Json = self._context
        seen = ""
        for name in path.split("."):
            if not isinstance(value, Mapping):
                raise self._error(f"unknown variable '{path}': '{seen}' is {_kind(value)}", pointer)
            if name not in value:
                known = ", ".join(sorted(value)) or "none"
                inside_of = f" in '{seen}'" if seen else ""
                raise self._error(f"unknown variable '{path}'; known{inside_of}: {known}", pointer)
            value = value[name]
            seen = f"{seen}.{name}" if seen else name
        return value

    def _enter(self, pointer: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} objects or lists inside each other", pointer)
        self._spend(2, pointer)

    def _spend(self, size: int, pointer: str) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise self._error(f"expands to more than {MAX_OUTPUT_BYTES} bytes", pointer)

    def _error(self, reason: str, pointer: str) -> TemplateError:
        return TemplateError(reason, where=f"{self._where}#{_shortened(pointer, 200)}")


def _text_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 2


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return {bool: "a boolean", str: "a string"}.get(type(value), "a number")
