"""Which values on this edge no key of its own controller opens: looked at unasked, and told with the status.

A value is tried when it was sealed with another certificate than the controller has now, or when the controller says
that it cannot do what a SealedSecret wants; and again when any of that differs. So a renewal of the key costs one
question to the edge's own controller for each Secret that is older, and the centre nothing. Nothing is changed, and
no plaintext comes here.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from edgewright.agent.lacks import Unopened
from edgewright.agent.opening import Opening
from edgewright.agent.resealing import SealedSecretReader, fingerprint_of
from edgewright.agent.sealing_controller import SealedSecret
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError

PAUSE_JITTER = 0.1


class OpeningController(Protocol):
    """See ``sealing_controller.SealingController``."""

    async def opens(self, secret: SealedSecret) -> bool: ...


class KeyCheck:
    """Finds the values that no key of one edge opens.

    Args:
        openings: what the last look at the SealedSecrets has seen; None: there was none yet.
        certificate: that sealed-secrets handed out last, PEM; None: none yet.
        pause_seconds: between two looks.
    """

    def __init__(
        self,
        edge: SealedSecretReader,
        controller: OpeningController,
        *,
        openings: Callable[[], Sequence[Opening] | None],
        certificate: Callable[[], str | None],
        pause_seconds: float,
        clock: Clock,
        chance: Random,
    ) -> None:
        self._edge = edge
        self._controller = controller
        self._openings = openings
        self._certificate = certificate
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._chance = chance
        self._matter = Transitions("sealing_keys")
        self._known: dict[str, tuple[_Mark, tuple[Unopened, ...]]] = {}
        self.unopened: tuple[Unopened, ...] | None = None
        """By name, in order; None: not everything was tried yet."""

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(self._pause_seconds * self._chance.uniform(1 - PAUSE_JITTER, 1 + PAUSE_JITTER))

    async def look(self) -> None:
        """Tries what is in doubt; what was tried already stays as it is if the rest cannot be tried now."""
        certificate, held = self._certificate(), self._openings()
        if certificate is None or held is None:
            return
        self._known = {each.secret: self._known[each.secret] for each in held if each.secret in self._known}
        try:
            fingerprint = fingerprint_of(certificate)
            for each in held:
                await self._try(each, fingerprint)
        except EdgewrightError as trouble:
            self._matter.trouble("interrupted", detail=trouble.detail, code=trouble.code)
            return
        self.unopened = tuple(each for secret in sorted(self._known) for each in self._known[secret][1])
        if self.unopened:
            self._matter.trouble("lost", values=len(self.unopened))
        else:
            self._matter.well("whole")

    async def _try(self, each: Opening, fingerprint: str) -> None:
        mark = _Mark(fingerprint, each.digest, each.sentence)
        if each.secret in self._known and self._known[each.secret][0] == mark:
            return
        lost = await self._unopened(each) if each.is_in_doubt(fingerprint) else ()
        self._known[each.secret] = mark, lost

    async def _unopened(self, each: Opening) -> tuple[Unopened, ...]:
        """One value that no key opens makes the controller refuse all of them, so they are tried one by one then."""
        secret = await self._edge.sealed_secret(each.namespace, each.name)
        if secret is None or not secret.values or await self._controller.opens(secret):
            return ()
        return tuple(
            [
                Unopened(each.secret, key, digest_of(secret.values[key]))
                for key in sorted(secret.values)
                if len(secret.values) == 1 or not await self._controller.opens(secret.only(key))
            ]
        )


@dataclass(frozen=True, slots=True)
class _Mark:
    """What has to differ before a Secret is tried again."""

    fingerprint: str
    digest: str
    sentence: str


def digest_of(ciphertext: str) -> str:
    """SHA-256 of a ciphertext as it stands in the file; hexadecimal."""
    return hashlib.sha256(ciphertext.encode()).hexdigest()
