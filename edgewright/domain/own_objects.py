"""What Edgewright has on an edge, and nobody else may drive there. Standard library only: the push rules use it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

ANCHOR = "edgewright-anchor"
"""ClusterRole that owns what bootstrap has installed."""
FLUX_SECRET = "flux-secrets"  # noqa: S105 - the name of an object
"""Secret with which Flux reads the driving repository."""
AGENT_SECRET = "edgewright-agent"  # noqa: S105 - the name of an object
"""Secret with which the agent speaks to the centre."""

EDGEWRIGHT, FLUX, KUBERNETES = "Edgewright", "Flux", "Kubernetes"
"""Whose an object is, if it is not the operator's."""

PRUNE_ANNOTATION = "kustomize.toolkit.fluxcd.io/prune"
UNPRUNED: Mapping[str, str] = {PRUNE_ANNOTATION: "disabled"}
"""Annotation with which an object that Flux has taken over outlives the file that it was in."""


class ObjectKey(NamedTuple):
    """One object of Kubernetes. ``group``: empty for its core; ``namespace``: empty for one that lives in none."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}{'/' if self.namespace else ''}{self.name}"


class OwnObjects:
    """A set of objects, and whose each is."""

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
        """The object that a manifest means, if it is one of these.

        A manifest of Kubernetes' own kinds may state a namespace for what lives in none. One that states none for
        what lives in one means whatever kustomize says elsewhere, so each of its kind and name may be meant.
        """
        for key in self._places.get((stated.group, stated.kind, stated.name), ()):
            if not stated.namespace or key.namespace in {"", stated.namespace}:
                return key
        return None

    def owner(self, key: ObjectKey) -> str:
        """Whose one of them is."""
        return self._owners[key]

    def with_more(self, keys: Iterable[ObjectKey], owner: str) -> "OwnObjects":
        """These, and more."""
        return OwnObjects({**dict.fromkeys(keys, owner), **self._owners})

    def to_text(self) -> str:
        """For another process, which reads it with ``from_text``."""
        return json.dumps([[*key, owner] for key, owner in self._owners.items()], separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "OwnObjects":
        """See ``to_text``."""
        return cls({ObjectKey(*key): owner for *key, owner in json.loads(text)})


NOTHING = OwnObjects({})
