"""The files of a chart that decide which values fit it, read within bounds: whoever may push charts wrote them."""

import json
from collections.abc import Mapping
from typing import Any

import yaml
from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)

from edgewright.adapters.charts.folders import Unusable
from edgewright.adapters.json_schema import OURS, UNUSABLE, Draft, TooCostly, schema_violation_of
from edgewright.domain.json import JsonObject, is_within

SCHEMA_FILE, VALUES_FILE = "values.schema.json", "values.yaml"
LARGEST_FILE = 256 * 1024
"""Bytes; the schemas and values of large public charts have about 100,000."""
DEEPEST, MOST_NODES = 64, 20_000
DRAFTS: Mapping[str, Draft] = {
    "http://json-schema.org/draft-04/schema": Draft4Validator,
    "http://json-schema.org/draft-06/schema": Draft6Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "http://json-schema.org/schema": OURS,
}
"""By what ``$schema`` says, without ``#``."""
_TAGGED_AS_TEXT = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:binary")


def schema_of(content: bytes, file: str) -> tuple[Any, Draft]:
    """A schema and its draft.

    Args:
        file: what it is called in what is said of it.

    Raises:
        Unusable: it is broken, written in a draft unknown here, or too large.
    """
    schema = _json(content, file)
    draft = _draft_of(schema, file)
    _check_schema(schema, draft, file)
    return schema, draft


def yaml_object(content: bytes, file: str) -> JsonObject:
    """An object in YAML as JSON; of an empty file: an empty one.

    Raises:
        Unusable: it is something else, or too large.
    """
    _check_size(content, file)
    try:
        text = content.decode("utf-8-sig")
        _check_events(text, file)
        value = yaml.load(text, Loader=_ValuesLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise Unusable(f"{file} is not YAML") from None
    _check_extent(value, file)
    value = {} if value is None else _as_json(value)
    if not isinstance(value, dict):
        raise Unusable(f"{file} is not an object")
    return value


def _json(content: bytes, file: str) -> Any:
    _check_size(content, file)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise Unusable(f"{file} is not JSON") from None
    _check_extent(value, file)
    return value


def _draft_of(schema: Any, file: str) -> Draft:
    named = schema.get("$schema") if isinstance(schema, Mapping) else None
    if named is None:
        return OURS
    draft = DRAFTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if draft is None:
        raise Unusable(f"{file} is written in a draft of JSON Schema that is unknown here")
    return draft


def _check_schema(schema: Any, draft: Draft, file: str) -> None:
    try:
        violation = schema_violation_of(schema, draft=draft)
    except TooCostly:
        raise Unusable(f"{file} takes too many steps") from None
    except UNUSABLE as error:
        raise Unusable(f"{file} cannot be used: {error}") from None
    if violation is not None:
        raise Unusable(f"{file} is no JSON Schema: {violation.message}")


class _ValuesLoader(yaml.CSafeLoader):
    """PyYAML's safe loader, for values that become JSON."""


for _tag in _TAGGED_AS_TEXT:
    _ValuesLoader.add_constructor(_tag, lambda _loader, node: str(node.value))


def _check_events(text: str, file: str) -> None:
    """Depth first: PyYAML's loader in C does not survive what is nested too deep."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or number > 4 * MOST_NODES:
            raise Unusable(f"{file} is nested too deep, or too large")


def _check_size(content: bytes, file: str) -> None:
    if len(content) > LARGEST_FILE:
        raise Unusable(f"{file} has more than {LARGEST_FILE} bytes")


def _check_extent(value: Any, file: str) -> None:
    """Aliases in YAML make much of little; each counts as often as it is used."""
    if not is_within(value, levels=DEEPEST, nodes=MOST_NODES):
        raise Unusable(f"{file} is nested too deep, or too large")


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
