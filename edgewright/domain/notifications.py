"""Notifications to the operator's own system: for which events, with which content, and how often to try."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AwareDatetime, Field

from edgewright.domain.bounds import WordOf
from edgewright.domain.cluster import Frozen, LeaseState
from edgewright.domain.events import EventKind
from edgewright.domain.hosts import is_host, is_loopback
from edgewright.errors import Invalid

Fact = str | int | float | bool | None

GIVE_UP_AFTER = timedelta(days=3)
"""Counts from the first try of a notification: the first failure after this time is the last one. For notifications
that wait behind one that is given up, it counts from when they began to wait."""
GONE = 410
"""The HTTP status with which a receiver answers that it wants no more notifications."""
FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=5)
LONGEST_REST = timedelta(hours=1)
"""The longest `Retry-After` that is honoured; older news would be of little use."""
LONGEST_URL = 2000
LONGEST_MESSAGE = 2000
"""Most characters of a message. Standard Webhooks wants bodies below 20 kB; texts from templates have no limit."""


class NotificationType(StrEnum):
    JOINED = "cluster.joined"
    UNAVAILABLE = "cluster.unavailable"
    RECOVERED = "cluster.recovered"
    BLOCKED = "cluster.blocked"
    CERTIFICATE_CHANGED = "cluster.certificate_changed"
    DELETED = "cluster.deleted"


_TYPES: Mapping[EventKind, NotificationType] = {
    EventKind.EDGE_JOINED: NotificationType.JOINED,
    EventKind.LEASE_EXPIRED: NotificationType.UNAVAILABLE,
    EventKind.LEASE_RENEWED: NotificationType.RECOVERED,
    EventKind.CLUSTER_BLOCKED: NotificationType.BLOCKED,
    EventKind.CERTIFICATE_CHANGED: NotificationType.CERTIFICATE_CHANGED,
    EventKind.CLUSTER_DELETED: NotificationType.DELETED,
}
KINDS = tuple(_TYPES)
"""Kinds of events that can cause a notification."""
_FACTS: Mapping[NotificationType, tuple[str, ...]] = {
    NotificationType.BLOCKED: ("reason",),
    NotificationType.CERTIFICATE_CHANGED: ("fingerprint", "before", "not_after"),
}
"""The facts in a notification besides its message; other facts of an event stay internal."""


class NotifiedCluster(Frozen):
    """The cluster that a notification is about."""

    uuid: UUID
    name: str


class NotificationFacts(Frozen):
    """What happened.

    Args:
        message: one sentence for people, as in the timeline; cut off after 2,000 characters.
        detail: a few facts for machines, which depend on the type. ``coalesced``: how many earlier notifications of
            the same type and cluster this one replaces; absent: none.
    """

    cluster: NotifiedCluster
    message: str
    detail: dict[str, Fact] = Field(default_factory=dict)


class Notification(Frozen):
    """The body of a delivery, as Standard Webhooks recommends it.

    Args:
        timestamp: when the event happened. `webhook-timestamp` says when the notification was sent.
    """

    type: NotificationType
    timestamp: AwareDatetime
    data: NotificationFacts

    def octets(self) -> bytes:
        """The body as it is signed and sent."""
        return self.model_dump_json().encode()


def type_of(kind: WordOf[EventKind], detail: Mapping[str, Fact]) -> NotificationType | None:
    """Returns the type of notification for an event; None: the event causes none."""
    found = _TYPES.get(kind) if isinstance(kind, EventKind) else None
    if found is NotificationType.RECOVERED and detail.get("before") != LeaseState.EXPIRED:
        return None  # the first sign of life: that has joined, and was never unavailable
    return found


def message_of(sentence: str) -> str:
    """Returns an event's message, cut to the length of a notification."""
    return sentence if len(sentence) <= LONGEST_MESSAGE else sentence[: LONGEST_MESSAGE - 1] + "…"


def facts_of(kind: NotificationType, detail: Mapping[str, Fact]) -> dict[str, Fact]:
    """Returns the facts of an event that belong into a notification."""
    return {name: detail.get(name) for name in _FACTS.get(kind, ())}


def pause_after(attempts: int) -> timedelta:
    """Returns the pause after a number of failed tries: 5 s, doubled each time, at most 5 min."""
    return min(FIRST_BACKOFF * float(2 ** min(attempts - 1, 20)), LONGEST_BACKOFF)


def checked_url(url: str, *, allow_plain_http: bool) -> str:
    """Returns the URL if notifications may be sent there. Private addresses are allowed: the operator chooses them.

    Raises:
        Invalid: code ``url_invalid``; the sentence does not repeat the URL, which may hold a secret.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _refused("It is not a URL.") from None
    if parts.scheme not in {"http", "https"} or not host or len(url) > LONGEST_URL:
        raise _refused("It must be an https URL, such as https://alerts.example.com/edgewright.")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise _refused("It may hold printable ASCII letters only; encode the others.")
    if "@" in parts.netloc or parts.fragment:
        raise _refused("It must have neither user name nor fragment: the signature says who sends, not a password.")
    if not is_host(host) or (":" in host) is not ("[" in parts.netloc):
        raise _refused("What stands for its host is neither an address nor a name.")
    if parts.scheme == "http" and not is_loopback(host) and not allow_plain_http:
        raise _refused(
            "Plain http is for loopback only: use https, or set EDGEWRIGHT_ALLOW_PLAIN_HTTP=1 on the gateways."
        )
    return url


def origin_of(url: str) -> str:
    """Returns scheme, host and port of a URL, which everybody may see."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _refused(sentence: str) -> Invalid:
    return Invalid(f"The URL of the webhook cannot be used. {sentence}", code="url_invalid", where="/url")
