"""The files of a chart that decide which values fit it, read within bounds: whoever may push charts wrote them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)

from edgewright.adapters.json_schema import OURS, UNUSABLE, Draft, TooCostly, schema_violation_of
from edgewright.domain.json import JsonObject, is_within
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitId, GitServer

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


class Unusable(Exception):
    """A file of a chart that nothing can be checked with; the text completes "the chart's "."""


@dataclass(frozen=True)
class ChartFiles:
    """What values are held against.

    Args:
        schema: None: the chart has none, and everything fits.
        defaults: the chart's own values.
        draft: of the schema.
    """

    schema: Any = None
    defaults: JsonObject = field(default_factory=dict)
    draft: Draft = OURS


def read_chart(git: GitServer, chart: str, *, at: CommitId) -> ChartFiles:
    """The files of the chart in a folder of the centre's charts; of one that is not there: a chart without a schema.

    Raises:
        Unusable: its schema is broken, written in a draft unknown here, or too large; or so are its values.
    """
    content = git.read(REPOSITORY_HELM_CHARTS, f"{chart}/{SCHEMA_FILE}", at=at)
    if content is None:
        return ChartFiles()
    schema = _json(content)
    draft = _draft_of(schema)
    _check_schema(schema, draft)
    values = git.read(REPOSITORY_HELM_CHARTS, f"{chart}/{VALUES_FILE}", at=at)
    return ChartFiles(schema, {} if values is None else _yaml_object(values), draft)


def _json(content: bytes) -> Any:
    _check_size(content, SCHEMA_FILE)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise Unusable(f"{SCHEMA_FILE} is not JSON") from None
    _check_extent(value, SCHEMA_FILE)
    return value


def _draft_of(schema: Any) -> Draft:
    named = schema.get("$schema") if isinstance(schema, Mapping) else None
    if named is None:
        return OURS
    draft = DRAFTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if draft is None:
        raise Unusable(f"{SCHEMA_FILE} is written in a draft of JSON Schema that is unknown here")
    return draft


def _check_schema(schema: Any, draft: Draft) -> None:
    try:
        violation = schema_violation_of(schema, draft=draft)
    except TooCostly:
        raise Unusable(f"{SCHEMA_FILE} takes too many steps") from None
    except UNUSABLE as error:
        raise Unusable(f"{SCHEMA_FILE} cannot be used: {error}") from None
    if violation is not None:
        raise Unusable(f"{SCHEMA_FILE} is no JSON Schema: {violation.message}")


def _yaml_object(content: bytes) -> JsonObject:
    _check_size(content, VALUES_FILE)
    try:
        text = content.decode("utf-8-sig")
        _check_events(text)
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise Unusable(f"{VALUES_FILE} is not YAML") from None
    _check_extent(value, VALUES_FILE)
    value = {} if value is None else _as_json(value)
    if not isinstance(value, dict):
        raise Unusable(f"{VALUES_FILE} is not an object")
    return value


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader, for values that become JSON."""


for _tag in _TAGGED_AS_TEXT:
    _Loader.add_constructor(_tag, lambda _loader, node: str(node.value))


def _check_events(text: str) -> None:
    """Depth first: PyYAML's loader in C does not survive what is nested too deep."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or number > 4 * MOST_NODES:
            raise Unusable(f"{VALUES_FILE} is nested too deep, or too large")


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
