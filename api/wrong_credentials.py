"""Counts wrong credentials by the address that they came from. Correct ones are never limited.

In process and bounded: each gateway counts for itself, and forgets the address that was quiet the longest.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

from api.problems import TooManyWrongCredentials

WRONG_LIMIT = 30
"""Wrong credentials of one address in one window before it is told to wait."""
WINDOW_SECONDS = 60.0
ADDRESS_LIMIT = 10_000
"""Addresses remembered at once."""


class WrongCredentials:
    """The counter of one gateway.

    Args:
        clock: monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempts: OrderedDict[str, deque[float]] = OrderedDict()

    def count(self, address: str) -> None:
        """Counts one wrong credential.

        Raises:
            TooManyWrongCredentials: this one is above the limit; says how long to wait.
        """
        now = self._clock()
        attempts = self._attempts.setdefault(address, deque(maxlen=WRONG_LIMIT + 1))
        self._attempts.move_to_end(address)
        attempts.append(now)
        while attempts[0] <= now - WINDOW_SECONDS:
            attempts.popleft()
        if len(self._attempts) > ADDRESS_LIMIT:
            self._attempts.popitem(last=False)
        if len(attempts) > WRONG_LIMIT:
            raise TooManyWrongCredentials(
                "Too many wrong credentials came from this address.",
                retry_after=attempts[0] + WINDOW_SECONDS - now,
                hint="Correct credentials are let in at once; wrong ones have to wait.",
            )
