"""Which values a chart has that brings no schema: what its ``values.yaml`` and its templates name.

Such a schema says of no value what it has to be: it refuses names that nothing in the chart reads.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edgewright.domain.json import Json, JsonObject

_REFERENCE = re.compile(r"\.Values((?:\.[A-Za-z_][A-Za-z0-9_]*)+)")
_ASKS_ONLY = ("{{ if ", "{{- if ", "{{ else if ", "{{- else if ")
"""What a line begins with that only asks whether there is something."""
Path = tuple[str, ...]


def properties_of(values: JsonObject, templates: Iterable[str]) -> dict[str, Any]:
    """``properties`` of a schema that takes every name in the values of a chart, or in its templates, and no other.

    Objects that are empty by default take anything, and so do those that a template hands on as a whole: a resource
    of Kubernetes decides what may stand in them.
    """
    references = [reference for template in templates for reference in _references(template)]
    handed_on = {path for path, whole in references if whole}
    properties = _properties(values, (), handed_on)
    for path, _whole in references:
        _add(properties, path)
    return dict(sorted(properties.items()))


def _properties(values: JsonObject, at: Path, handed_on: set[Path]) -> dict[str, Any]:
    return {name: _schema_of(default, (*at, name), handed_on) for name, default in values.items()}


def _schema_of(default: Json, path: Path, handed_on: set[Path]) -> dict[str, Any]:
    if not isinstance(default, Mapping) or not default or path in handed_on:
        return {}
    return _closed(_properties(default, path, handed_on))


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


def _add(properties: dict[str, Any], path: Path) -> None:
    """What only a template names; nothing below what takes anything."""
    for step in path[:-1]:
        if "properties" not in properties.setdefault(step, {}):
            return
        properties = properties[step]["properties"]
    properties.setdefault(path[-1], {})


def _references(template: str) -> Iterator[tuple[Path, bool]]:
    """The values that a template reads, and whether it may hand on what it reads as a whole."""
    for line in _without_comments(template).splitlines():
        asks = line.strip().startswith(_ASKS_ONLY)
        for reference in _REFERENCE.finditer(line):
            yield tuple(reference[1].split(".")[1:]), not asks


def _without_comments(template: str) -> str:
    first, *others = template.split("/*")
    return first + "".join(other.partition("*/")[2] for other in others)
