"""The webhook of an installation, and the notifications that wait for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from edgewright.domain.notifications import Notification, NotificationType


@dataclass(frozen=True)
class LastDelivery:
    """The latest delivery.

    Args:
        cluster: name of the cluster.
        status: HTTP status of the answer; None: there was none.
        attempts: tries of this notification, including this one.
        problem: why the delivery failed, as a sentence; empty: it succeeded.
    """

    at: datetime
    type: NotificationType
    cluster: str
    status: int | None
    attempts: int
    problem: str


@dataclass(frozen=True)
class Backlog:
    """The notifications that wait for delivery.

    Args:
        since: when the oldest one began to wait.
        problem: why the last try of the oldest one failed; empty: it was not tried yet.
    """

    count: int
    since: datetime
    problem: str


@dataclass(frozen=True)
class Webhook:
    """Where notifications go.

    Args:
        secret_sha256: SHA-256 of the signing secret, which is stored nowhere.
        stopped_at: when the receiver answered that it wants no more notifications; None: it has not.
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
        """Sets the webhook. It replaces the previous one, and gets the notifications that wait for it.

        If the receiver had stopped the webhook, deliveries resume. The first webhook gets notifications of events
        from now on.
        """

    async def get(self) -> Webhook | None:
        """Returns the webhook, or None."""

    async def remove(self, *, actor: str) -> bool:
        """Removes the webhook and drops waiting notifications; False if there is none."""


@dataclass(frozen=True)
class Due:
    """A notification to be sent now.

    Args:
        position: position of its event.
        event: ID of its event, by which the receiver recognises duplicates.
        attempts: earlier tries.
    """

    position: int
    event: UUID
    attempts: int
    body: Notification


@dataclass(frozen=True)
class Batch:
    """What to send now, and where.

    Args:
        due: the oldest waiting notification of each cluster; empty: nothing is due now.
        next_in: seconds until something is due, if nothing is due now; None: nothing waits, or nothing may be sent.
    """

    webhook: UUID
    url: str
    secret_sha256: bytes
    due: tuple[Due, ...]
    next_in: float | None


@dataclass(frozen=True)
class Outcome:
    """The result of one try. ``status`` and ``problem``: see ``LastDelivery``; ``rest``: seconds to wait at least."""

    position: int
    status: int | None
    problem: str = ""
    rest: float = 0.0


@dataclass(frozen=True)
class Collected:
    """The result of looking for new events.

    Args:
        new: how many notifications were found.
        given_up: how many were given up without another try.
        waiting: how many wait for delivery now.
    """

    new: int = 0
    given_up: int = 0
    waiting: int = 0


class Notifications(Protocol):
    """Reads notifications from the audit log with a cursor, and keeps them until they are delivered or given up."""

    async def collect(self) -> Collected:
        """Looks through the events since the last call. Does nothing without a webhook.

        If the receiver has accepted nothing for three days, gives up notifications that have waited that long.
        """

    async def due(self, limit: int) -> Batch | None:
        """Returns what to send now, least tried first; None without a webhook.

        A batch never holds two notifications of one cluster: the later one waits until the earlier one is settled.
        """

    async def settle(self, webhook: UUID, outcomes: Sequence[Outcome]) -> int:
        """Records the results of tries, in order; returns how many notifications were given up, each with an event.

        If the receiver wants no more, nothing is sent until the webhook is set again. Does nothing if the webhook was
        replaced or removed meanwhile: its successor gets what was not delivered.
        """
