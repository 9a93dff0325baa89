"""What one caller may ask for in a while. Whoever asks for more waits; nobody else does.

In process and bounded: each gateway counts for itself, and forgets the caller that was quiet the longest.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from edgewright.errors import TooMany

PAYER_LIMIT = 20_000
"""Callers remembered at once. Whoever is forgotten has all of the allowance again."""


class Allowance:
    """A token bucket for each payer.

    Args:
        burst: what a payer that was quiet for long may spend at once.
        per_second: what comes back.
        code, sentence: of the refusal.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        *,
        burst: float,
        per_second: float,
        code: str,
        sentence: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._code = code
        self._sentence = sentence
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def spend(self, payer: Hashable, amount: float) -> None:
        """Takes an amount from what the payer has left.

        Raises:
            TooMany: there is less; nothing is taken, and the refusal says when there will be enough.
        """
        now = self._clock()
        left, at = self._left.get(payer, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        wanted = min(amount, self._burst)
        if wanted > left:
            raise TooMany(self._sentence, code=self._code, retry_after=(wanted - left) / self._per_second)
        self._left[payer] = (left - wanted, now)
        self._left.move_to_end(payer)
        if len(self._left) > PAYER_LIMIT:
            self._left.popitem(last=False)
