"""Detects two agents with one identity by the chain of nonces in their heartbeats.

An agent draws a nonce, sends it until it is answered, and sends it as ``previous`` with the next one. So each
heartbeat follows the one before. If a disk or a virtual machine was copied, two chains arrive in turn, and each
heartbeat *breaks* the other chain. A single break proves nothing: a gateway that dies after it answered causes one,
and so does a database that was restored from a backup. After a start, an agent sends no previous nonce, so restarts
and new versions cause no breaks. A pod that replaces another causes a few, while both call for some seconds.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FORK_BREAKS = 5
"""Two agents break each other's chain with nearly every heartbeat, so this number is reached soon."""
SHORTEST_MEMORY, LONGEST_MEMORY = timedelta(minutes=1), timedelta(days=1)
"""Breaks from more than two leases ago do not count, within these limits."""


@dataclass(frozen=True)
class Link:
    """The nonces of one heartbeat. ``previous``: the last one that was answered; None: the agent has just started."""

    nonce: str
    previous: str | None = None

    def after(self, earlier: "Link") -> "Link":
        """Merges both heartbeats into one, and ignores a break between them."""
        if self.previous is None or not self.follows(earlier.nonce):
            return self
        return replace(self, previous=earlier.previous)

    def follows(self, nonce: str | None) -> bool:
        """Whether this can be the next heartbeat after the one with that nonce."""
        return self.previous is None or nonce in (None, self.previous, self.nonce)


@dataclass(frozen=True)
class Chain:
    """The state of an edge's chain of heartbeats.

    Args:
        nonce: nonce of the last heartbeat; None: there was none.
        breaks: number of breaks, minus heartbeats that continued the chain since.
        broken_at: time of the last break.
        forked_at: since when there are two agents; None: there is one.
    """

    nonce: str | None = None
    breaks: int = 0
    broken_at: datetime | None = None
    forked_at: datetime | None = None

    def with_link(self, link: Link, at: datetime, lease: timedelta) -> "Chain":
        """Returns the chain after one more heartbeat."""
        memory = min(max(2 * lease, SHORTEST_MEMORY), LONGEST_MEMORY)
        recent = self.broken_at is not None and at - self.broken_at <= memory
        if link.follows(self.nonce):
            fewer = max(0, self.breaks - 1)
            return replace(self, nonce=link.nonce, breaks=fewer) if recent else Chain(link.nonce)
        breaks = min((self.breaks if recent else 0) + 1, FORK_BREAKS)
        forked_at = self.forked_at or (at if breaks == FORK_BREAKS else None)
        return Chain(link.nonce, breaks, at, forked_at)
