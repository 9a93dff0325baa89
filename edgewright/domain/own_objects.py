"""Edgewright's own objects on an edge, which nobody else may manage. Standard library only: the push rules use it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

ANCHOR = "edgewright-anchor"
"""ClusterRole that owns everything that bootstrap installed."""
FLUX_SECRET = "flux-secrets"  # noqa: S105 - the name of an object
"""Secret that Flux uses to read the driving repository."""
AGENT_SECRET = "edgewright-agent"  # noqa: S105 - the name of an object
"""Secret that the agent uses to authenticate to the centre."""

EDGEWRIGHT, FLUX, KUBERNETES = "Edgewright", "Flux", "Kubernetes"
"""The owner of an object that is not the operator's."""

PRUNE_ANNOTATION = "kustomize.toolkit.fluxcd.io/prune"
UNPRUNED: Mapping[str, str] = {PRUNE_ANNOTATION: "disabled"}
"""Annotation that keeps an object of Flux when its file is removed."""


class ObjectKey(NamedTuple):
    """A Kubernetes object. ``group``: empty for the core group; ``namespace``: empty for cluster-scoped objects."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}{'/' if self.namespace else ''}{self.name}"


class OwnObjects:
    """A set of objects with their owners."""

    def __init__(self, owners: Mapping[ObjectKey, str]) -> None:
        self._owners = owners
        self._places: defaultdict[tuple[str, str, str], list[ObjectKey]] = defaultdict(list)
        for key in owners:
            self._places[key.group, key.kind, key.name].append(key)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._owners)

    @property
    def names(self) -> frozenset[str]:
        """All their names."""
        return frozenset(key.name for key in self._owners)

    def find(self, stated: ObjectKey) -> ObjectKey | None:
        """Finds the object that a manifest refers to, if it is one of these.

        A manifest may state a namespace for a cluster-scoped object. If a manifest states none for a namespaced
        object, kustomize may set it elsewhere, so any object of that kind and name may be meant.
        """
        for key in self._places.get((stated.group, stated.kind, stated.name), ()):
            if not stated.namespace or key.namespace in {"", stated.namespace}:
                return key
        return None

    def owner(self, key: ObjectKey) -> str:
        """Returns the owner of one of the objects."""
        return self._owners[key]

    def with_more(self, keys: Iterable[ObjectKey], owner: str) -> "OwnObjects":
        """Returns a set with additional objects."""
        return OwnObjects({**dict.fromkeys(keys, owner), **self._owners})

    def to_text(self) -> str:
        """Serialises the set for another process, which reads it with ``from_text``."""
        return json.dumps([[*key, owner] for key, owner in self._owners.items()], separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "OwnObjects":
        """See ``to_text``."""
        return cls({ObjectKey(*key): owner for *key, owner in json.loads(text)})


NOTHING = OwnObjects({})
