"""One YAML document, read without surprises and written the same way every time."""

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/+=-]*")
_YAML_1_1_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_UNLIMITED_WIDTH = 2**31 - 1
_DEPTH_LIMIT = 64
"""Levels of nesting; libyaml's reader overflows the stack of the whole process at some ten thousand."""
_TEXT_TAG = "tag:yaml.org,2002:str"
_TIME_TAG = "tag:yaml.org,2002:timestamp"


class YamlMalformed(ValueError):
    """The text is not one plain mapping; the message quotes nothing of it, as it may hold a secret."""


def load_document(document: bytes) -> dict[str, Any]:
    """Reads the one document of a file; it must be a mapping.

    Aliases, tags, repeated keys and keys that are not text are refused: they mean different things to
    different readers, and an alias can make a small file explode.

    Raises:
        YamlMalformed: says what, and where there is one, the line.
    """
    try:
        _refuse_odd_syntax(document)
        return _construct(document)
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise YamlMalformed(f"its YAML is broken{line}") from None
    except yaml.YAMLError:
        raise YamlMalformed("its YAML is broken") from None


def dump_document(content: dict[str, Any]) -> bytes:
    """Writes one document: ``---`` first, keys sorted, one line per text however long, UTF-8."""
    text: str = yaml.dump(
        content,
        Dumper=_Dumper,
        explicit_start=True,
        default_flow_style=False,
        sort_keys=True,
        allow_unicode=True,
        width=_UNLIMITED_WIDTH,
    )
    return text.encode()


def _refuse_odd_syntax(document: bytes) -> None:
    depth = 0
    for event in yaml.parse(document, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise YamlMalformed("it uses an alias")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise YamlMalformed("it uses a YAML tag")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEPTH_LIMIT:
            raise YamlMalformed(f"it is nested deeper than {_DEPTH_LIMIT} levels")


def _construct(document: bytes) -> dict[str, Any]:
    loader = yaml.CSafeLoader(document)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise YamlMalformed("it is not one YAML mapping")
        _check_nodes(node)
        content: dict[str, Any] = loader.construct_document(node)
    except ValueError as error:
        if isinstance(error, YamlMalformed):
            raise
        raise YamlMalformed("it has a number that cannot be read") from None
    finally:
        loader.dispose()
    return content


def _check_nodes(node: yaml.Node) -> None:
    """Refuses odd keys, and keeps what looks like a time as the text that Kubernetes takes it for."""
    if isinstance(node, yaml.ScalarNode) and node.tag == _TIME_TAG:
        node.tag = _TEXT_TAG
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_nodes(item)
    elif isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            _check_nodes(key)
            if key.tag != _TEXT_TAG:
                raise YamlMalformed(f"it has a key that is not text at line {key.start_mark.line + 1}")
            if key.value in keys:
                raise YamlMalformed(f"it has the same key twice at line {key.start_mark.line + 1}")
            keys.add(key.value)
            _check_nodes(value)


class _Dumper(yaml.CSafeDumper):
    """Quotes every text that some YAML reader could take for another type."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _YAML_1_1_WORDS
    return dumper.represent_scalar(_TEXT_TAG, text, style=None if plain else "'")


_Dumper.add_representer(str, _represent_text)
