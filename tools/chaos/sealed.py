"""What the edges would make of the sealed Secrets: opened with the private keys of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import yaml
from cryptography.exceptions import InvalidTag
from sealing_keys import open_envelope

from tools.chaos.edge_keys import EdgeKey


@dataclass(frozen=True)
class Opened:
    """A value, and the number of the key that opens it; ``value`` None: none of the run's keys does."""

    value: str | None
    key: int | None


@dataclass
class Opener:
    """Opens each ciphertext once."""

    keys: Sequence[EdgeKey]
    _known: dict[tuple[str, str], Opened] = field(default_factory=dict)

    def values(self, document: str) -> Mapping[str, Opened]:
        """``namespace/name/key`` -> its value, of one file."""
        return {place: self.open(text, label) for place, (text, label) in ciphertexts(document).items()}

    def open(self, ciphertext: str, label: str) -> Opened:
        known = self._known.get((ciphertext, label))
        if known is None:
            known = self._known[(ciphertext, label)] = self._try(ciphertext, label)
        return known

    def _try(self, ciphertext: str, label: str) -> Opened:
        for number, key in enumerate(self.keys):
            try:
                return Opened(open_envelope(ciphertext, _private(key), label.encode()).decode(), number)
            except (ValueError, InvalidTag):
                continue
        return Opened(None, None)


@cache
def ciphertexts(document: str) -> Mapping[str, tuple[str, str]]:
    """``namespace/name/key`` -> ciphertext and label, of one file."""
    content = yaml.load(document, Loader=yaml.CSafeLoader)
    label = f"{content['metadata']['namespace']}/{content['metadata']['name']}"
    return {f"{label}/{key}": (text, label) for key, text in content["spec"]["encryptedData"].items()}


_private = cache(EdgeKey.opened)
