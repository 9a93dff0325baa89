"""How two agents with one identity are told from one: by the chain of nonces in their heartbeats.

An agent draws a nonce, sends it until it is answered, and names it as ``previous`` when it sends the next one. So
each heartbeat follows the one before. Where a disk or a virtual machine was copied, two chains are sent in turn, and
each heartbeat *breaks* the other's chain. One break says nothing: a heartbeat that was answered and then lost with a
gateway makes one, and so does a database that was restored from a backup. After a start an agent names no previous
one, so a restart and a new version make none. A pod that replaces another makes a few, while both call for some
seconds.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FORK_BREAKS = 5
"""Two agents break each other's chain at nearly each heartbeat, so that is soon."""
SHORTEST_MEMORY, LONGEST_MEMORY = timedelta(minutes=1), timedelta(days=1)
"""A break that is two leases ago counts no more, within these limits."""


@dataclass(frozen=True)
class Link:
    """What one heartbeat says. ``previous``: nonce of the last one that was answered; None: the agent has started."""

    nonce: str
    previous: str | None = None

    def after(self, earlier: "Link") -> "Link":
        """Both heartbeats as one; what breaks between them is overlooked."""
        if self.previous is None or not self.follows(earlier.nonce):
            return self
        return replace(self, previous=earlier.previous)

    def follows(self, nonce: str | None) -> bool:
        """Whether this can be the next heartbeat after that one."""
        return self.previous is None or nonce in (None, self.previous, self.nonce)


@dataclass(frozen=True)
class Chain:
    """What is known of an edge's heartbeats.

    Args:
        nonce: of the last one; None: there was none.
        breaks: less those heartbeats that have followed since.
        broken_at: the last break.
        forked_at: since when there are two agents; None: there is one.
    """

    nonce: str | None = None
    breaks: int = 0
    broken_at: datetime | None = None
    forked_at: datetime | None = None

    def with_link(self, link: Link, at: datetime, lease: timedelta) -> "Chain":
        """This, after one more heartbeat."""
        memory = min(max(2 * lease, SHORTEST_MEMORY), LONGEST_MEMORY)
        recent = self.broken_at is not None and at - self.broken_at <= memory
        if link.follows(self.nonce):
            fewer = max(0, self.breaks - 1)
            return replace(self, nonce=link.nonce, breaks=fewer) if recent else Chain(link.nonce)
        breaks = min((self.breaks if recent else 0) + 1, FORK_BREAKS)
        forked_at = self.forked_at or (at if breaks == FORK_BREAKS else None)
        return Chain(link.nonce, breaks, at, forked_at)
