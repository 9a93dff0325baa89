"""What Flux has applied for this cluster by its own inventory, and whether each of it is still there.

Most of it is in the lists that the agent reads anyway. The rest is asked for one by one, by its metadata alone: no
content comes here, of a Secret neither.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from edgewright.agent.lacks import Unknown
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated

LOOKS = 2
"""So often in a row something is missing, or refused, before it is told."""
AT_ONCE = 10
"""Objects that one look asks for; the next one asks for the next."""
METADATA, KINDS = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json"
"""Media types of an object without its content, and of a list of kinds."""
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?")
_LONGEST = 253


@dataclass(frozen=True, slots=True, order=True)
class AppliedObject:
    """An entry of an inventory of Flux's. ``group``, ``namespace``: empty for the core group, and for none."""

    kind: str
    name: str
    namespace: str
    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f' in {self.namespace}' if self.namespace else ''}"

    @property
    def api(self) -> str:
        """Path of the API that has its kind."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def applied_of(entry: Mapping[str, Any]) -> AppliedObject | None:
    """Reads ``{id: NAMESPACE_NAME_GROUP_KIND, v: VERSION}``; a colon in a name is written ``__`` there.

    Returns:
        None for what is no such entry.
    """
    namespace, _, rest = str(entry.get("id", "")).partition("_")
    rest, _, kind = rest.rpartition("_")
    name, _, group = rest.rpartition("_")
    found = AppliedObject(kind, name.replace("__", ":"), namespace, group, str(entry.get("v", "")))
    needed, optional = (found.kind, found.name, found.version), (found.namespace, found.group)
    fits = all(map(_is_part, needed)) and all(not each or _is_part(each) for each in optional)
    return found if fits else None


class DocumentReader(Protocol):
    """What is asked of the Kubernetes cluster; may raise an ``EdgewrightError``."""

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None: ...


class Unlisted:
    """What was applied and is in no list: asked for one by one, a few with each look."""

    def __init__(self, edge: DocumentReader) -> None:
        self._edge = edge
        self._wanted: tuple[AppliedObject, ...] = ()
        self._next = 0
        self._missed: dict[AppliedObject, int] = {}
        self._refused: dict[AppliedObject, tuple[int, Unknown]] = {}
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not there."""
        return tuple(str(each) for each, looks in self._missed.items() if looks >= LOOKS)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """What the agent may not ask for: each resource once."""
        return tuple({lacking for looks, lacking in self._refused.values() if looks >= LOOKS})

    async def look(self, wanted: Sequence[AppliedObject]) -> None:
        """Asks for the next few of them, and forgets whatever else there was."""
        ordered = tuple(sorted(wanted))
        if ordered != self._wanted:
            self._wanted, self._next = ordered, 0
            self._missed = {each: looks for each, looks in self._missed.items() if each in ordered}
            self._refused = {each: seen for each, seen in self._refused.items() if each in ordered}
        turn = (*ordered[self._next :], *ordered[: self._next])[:AT_ONCE]
        for each in turn:
            self._next = (self._next + 1) % len(ordered)
            if not await self._ask(each):
                return

    async def _ask(self, each: AppliedObject) -> bool:
        """Whether there was an answer. What cannot be looked at now stays as it was seen last, and the next look
        goes on behind it: an API server that hangs takes the time of one request."""
        try:
            resource = await self._resource(each)
            path = None if resource is None else _path(each, *resource)
            found = None if path is None else await self._edge.document(path, METADATA, where=each.kind)
        except (Forbidden, Unauthenticated):
            looks, _ = self._refused.get(each, (0, None))
            self._refused[each] = (looks + 1, self._lacking(each))
            return True
        except EdgewrightError:
            return False
        self._refused.pop(each, None)
        if found is None:
            self._missed[each] = self._missed.get(each, 0) + 1
        else:
            self._missed.pop(each, None)
        return True

    async def _resource(self, each: AppliedObject) -> tuple[str, bool] | None:
        """How the API calls its kind, and whether a namespace has it; None: there is no such kind."""
        known = self._resources.get((each.api, each.kind))
        if known is not None:
            return known
        document = await self._edge.document(each.api, KINDS, where=each.kind)
        for one in (document or {}).get("resources") or ():
            name = one.get("name") if isinstance(one, Mapping) else None
            if isinstance(name, str) and _is_part(name) and one.get("kind") == each.kind:
                self._resources[each.api, each.kind] = name, one.get("namespaced") is True
                return self._resources[each.api, each.kind]
        return None

    def _lacking(self, each: AppliedObject) -> Unknown:
        name, is_namespaced = self._resources.get((each.api, each.kind), (each.kind, bool(each.namespace)))
        resource = f"{name}.{each.group}" if each.group else name
        what = f"{resource} in {each.namespace}" if is_namespaced else resource
        return Unknown(what, f"get on {what}")


def _path(each: AppliedObject, resource: str, is_namespaced: bool) -> str:
    folder = f"/namespaces/{each.namespace}" if is_namespaced else ""
    return f"{each.api}{folder}/{resource}/{each.name}"


def _is_part(text: str) -> bool:
    """Whether it can stand in a path as it is."""
    return len(text) <= _LONGEST and _PART.fullmatch(text) is not None
