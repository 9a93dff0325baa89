"""Which objects the manifests in a file name, read as far as that takes and no further.

Nothing is built but what leads to names, aliases are followed and never expanded, and time is bounded: a few
kilobytes of YAML can stand for gigabytes. It is part of the ``pre-receive`` hook: standard library and PyYAML only.
"""

import re
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import yaml

from edgewright.domain.own_objects import PRUNE_ANNOTATION, UNPRUNED, ObjectKey

_BEGINNING = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_MERGE = "<<"
_LEADING = frozenset(
    {"apiVersion", "kind", "metadata", "name", "namespace", "annotations", "items", PRUNE_ANNOTATION, _MERGE}
)
"""Keys on the way to a name; what is at any other is read over."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_ROUND = 1024
"""Events between two looks at the clock."""

_Node = Any
"""A text, a list of mappings, or a mapping with keys among ``_LEADING``."""


class TooLong(Exception):
    """It takes more time or memory than there is for it."""


class Budget:
    """Seconds of computing for all that one push brings."""

    def __init__(self, seconds: float) -> None:
        self._until = time.process_time() + seconds

    def check(self) -> None:
        """Raises ``TooLong`` when they are used up."""
        if time.process_time() > self._until:
            raise TooLong


class NamedObject(NamedTuple):
    """One object that a file names. ``unpruned``: it says that Flux is to leave it when it leaves the file."""

    key: ObjectKey
    unpruned: bool


def named_objects(content: bytes, names: Collection[str], budget: Budget) -> Iterator[NamedObject]:
    """The objects in a file of YAML or JSON; of a document that is neither, none: the edge says what is wrong there.

    Args:
        names: documents that have none of these texts in them are read over.

    Raises:
        TooLong: see there.
    """
    try:
        for document in _BEGINNING.split(content.decode("utf-8-sig", errors="replace")):
            budget.check()
            if any(name in document for name in names):
                try:
                    yield from _objects(document, budget)
                except yaml.YAMLError:
                    continue
    except MemoryError:
        raise TooLong from None


def _objects(document: str, budget: Budget) -> Iterator[NamedObject]:
    if document.lstrip().startswith("{"):  # JSON, which may be indented with tabs
        document = document.replace("\t", " ")
    for root in list(_roots(document, budget)):
        seen: set[int] = set()
        pending = [(root, "", "")]
        while pending:
            node, kind, version = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            kind, version = _text(node, "kind") or kind, _text(node, "apiVersion") or version
            items = _member(node, "items")
            if kind.endswith("List") and isinstance(items, list):
                pending += [(each, kind.removesuffix("List"), version) for each in items]
                continue
            metadata = _member(node, "metadata")
            name = _text(metadata, "name")
            if kind and name:
                group, slash, _ = version.partition("/")
                key = ObjectKey(group if slash else "", kind, _text(metadata, "namespace"), name)
                note = _text(_member(metadata, "annotations"), PRUNE_ANNOTATION)
                yield NamedObject(key, note.lower() == UNPRUNED[PRUNE_ANNOTATION])


class _Opened:
    """A collection whose end is still to come."""

    def __init__(self, node: _Node, *, mapping: bool) -> None:
        self.node = node
        self.mapping = mapping
        self.key: str | None = None
        self.expects_key = True

    def take(self, node: _Node) -> None:
        """The next thing in it, which has come to its end."""
        if not self.mapping:
            if node and isinstance(node, dict):
                self.node.append(node)
        elif self.expects_key:
            self.key = node if isinstance(node, str) else None
            self.expects_key = False
        else:
            if self.key in _LEADING:
                self.node[self.key] = node
            self.expects_key = True


def _roots(text: str, budget: Budget) -> Iterator[_Node]:
    """What is at the top of each document."""
    anchors: dict[str, _Node] = {}
    opened: list[_Opened] = []
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if number % _ROUND == 0:
            budget.check()
        node: _Node
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                mapping = isinstance(event, yaml.MappingStartEvent)
                node = {} if mapping else []
                if event.anchor:
                    anchors[event.anchor] = node
                opened.append(_Opened(node, mapping=mapping))
                continue
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                node = opened.pop().node
            case yaml.ScalarEvent():
                node = event.value
                if event.anchor:
                    anchors[event.anchor] = node
            case yaml.AliasEvent():
                node = anchors.get(event.anchor or "", "")
            case yaml.DocumentStartEvent():
                anchors.clear()
                continue
            case _:
                continue
        if opened:
            opened[-1].take(node)
        else:
            yield node


def _member(node: _Node, field: str) -> _Node:
    """What a mapping has at a key, also by way of what is merged into it; None if it has nothing there."""
    pending, seen = [node], set[int]()
    while pending:
        one = pending.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        if field in one:
            return one[field]
        merged = one.get(_MERGE)
        pending += reversed(merged) if isinstance(merged, list) else [merged]
    return None


def _text(node: _Node, field: str) -> str:
    """The same, if it is a text; empty if it is none."""
    found = _member(node, field)
    return found if isinstance(found, str) and found not in _NULLS else ""
