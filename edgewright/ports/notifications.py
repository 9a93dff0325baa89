"""The webhook of an installation, and the notifications that wait for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from edgewright.domain.notifications import Notification, NotificationType


@dataclass(frozen=True)
class LastDelivery:
    """The newest try.

    Args:
        cluster: its name.
        status: the HTTP status of the answer; None: there was none.
        attempts: how often this notification was tried, this time included.
        problem: why it was not taken, as a sentence; empty: it was taken.
    """

    at: datetime
    type: NotificationType
    cluster: str
    status: int | None
    attempts: int
    problem: str


@dataclass(frozen=True)
class Backlog:
    """What waits to be taken.

    Args:
        since: when the oldest began to wait.
        problem: why the oldest was not taken when it was tried last; empty: it was not tried yet.
    """

    count: int
    since: datetime
    problem: str


@dataclass(frozen=True)
class Webhook:
    """Where notifications go.

    Args:
        secret_sha256: of the signing secret, which is stored nowhere.
        stopped_at: when the receiver said that it wants no more; None: it has not.
    """

    id: UUID
    url: str
    secret_sha256: bytes
    created_at: datetime
    stopped_at: datetime | None = None
    last: LastDelivery | None = None
    waiting: Backlog | None = None


class Webhooks(Protocol):
    """At most one per installation."""

    async def put(self, webhook: UUID, url: str, secret_sha256: bytes, *, actor: str) -> Webhook:
        """Makes it, or puts it in the place of the one before: what waits for that goes to the new one.

        One that was stopped goes on.
        The first one is told of what happens from now on.
        """

    async def get(self) -> Webhook | None:
        """The webhook, or None."""

    async def remove(self, *, actor: str) -> bool:
        """Ends it, and drops what waits; False if there is none."""


@dataclass(frozen=True)
class Due:
    """A notification to be sent now.

    Args:
        position: of its event.
        event: ID of its event; the receiver recognises doubles by it.
        attempts: how often it was tried before.
    """

    position: int
    event: UUID
    attempts: int
    body: Notification


@dataclass(frozen=True)
class Batch:
    """What to send now, and where.

    Args:
        due: of each cluster the oldest that waits; empty: nothing is due now.
        next_in: seconds until something is due, if nothing is now; None: nothing waits, or may be sent.
    """

    webhook: UUID
    url: str
    secret_sha256: bytes
    due: tuple[Due, ...]
    next_in: float | None


@dataclass(frozen=True)
class Outcome:
    """How one try ended. ``status`` and ``problem``: see ``LastDelivery``; ``rest``: least seconds until the next."""

    position: int
    status: int | None
    problem: str = ""
    rest: float = 0.0


@dataclass(frozen=True)
class Collected:
    """What a look at the events came to.

    Args:
        new: notifications that were found.
        given_up: those that were given up without another try.
        waiting: all that wait now to be sent.
    """

    new: int = 0
    given_up: int = 0
    waiting: int = 0


class Notifications(Protocol):
    """Taken from the audit log by a cursor, kept until they are taken or given up."""

    async def collect(self) -> Collected:
        """Looks through the events that were written since the last time. Nothing without a webhook.

        Of a receiver that takes nothing for three days, it gives up what waits for as long.
        """

    async def due(self, limit: int) -> Batch | None:
        """What is to be sent now, those that were tried least first; None without a webhook.

        Two notifications of one cluster are never in one batch: the later waits until the earlier is settled.
        """

    async def settle(self, webhook: UUID, outcomes: Sequence[Outcome]) -> int:
        """Notes how tries ended, in order; returns how many notifications were given up, each with an event.

        A receiver that wants no more is sent nothing until the webhook is set anew.
        Does nothing if the webhook is another one by now, or is gone: what it has not taken goes to its successor.
        """
