"""What the operator's own system is told of: which events, in which words, and how often it is tried."""

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
"""From the first try of a notification; a failure after that is its last. For what waits behind one that is given up:
from when it began to wait."""
GONE = 410
"""The HTTP status with which a receiver says that it wants no more."""
FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=5)
LONGEST_REST = timedelta(hours=1)
"""What a receiver may ask for with `Retry-After`; news that is older by more is of little use."""
LONGEST_URL = 2000
LONGEST_MESSAGE = 2000
"""Characters of a notification. Standard Webhooks wants bodies below 20 kB; what a template says has no limit."""


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
"""Kinds of events among which notifications are found."""
_FACTS: Mapping[NotificationType, tuple[str, ...]] = {
    NotificationType.BLOCKED: ("reason",),
    NotificationType.CERTIFICATE_CHANGED: ("fingerprint", "before", "not_after"),
}
"""What a notification says beside its sentence; the other facts of an event are the centre's own business."""


class NotifiedCluster(Frozen):
    """The cluster that a notification is about."""

    uuid: UUID
    name: str


class NotificationFacts(Frozen):
    """What happened.

    Args:
        message: one sentence for people, as the timeline has it; cut off after 2,000 characters.
        detail: a few facts for machines; which ones depends on the type. ``coalesced``: how many earlier ones of the
            same type and cluster this one stands for; absent: none.
    """

    cluster: NotifiedCluster
    message: str
    detail: dict[str, Fact] = Field(default_factory=dict)


class Notification(Frozen):
    """The body of a delivery, as Standard Webhooks recommends it.

    Args:
        timestamp: when it happened, not when it is sent: `webhook-timestamp` says that.
    """

    type: NotificationType
    timestamp: AwareDatetime
    data: NotificationFacts

    def octets(self) -> bytes:
        """The body as it is signed and sent."""
        return self.model_dump_json().encode()


def type_of(kind: WordOf[EventKind], detail: Mapping[str, Fact]) -> NotificationType | None:
    """What the event of a kind is told as; None: it is not told."""
    found = _TYPES.get(kind) if isinstance(kind, EventKind) else None
    if found is NotificationType.RECOVERED and detail.get("before") != LeaseState.EXPIRED:
        return None  # the first sign of life: that has joined, and was never unavailable
    return found


def message_of(sentence: str) -> str:
    """An event's sentence, as long as a notification may be."""
    return sentence if len(sentence) <= LONGEST_MESSAGE else sentence[: LONGEST_MESSAGE - 1] + "…"


def facts_of(kind: NotificationType, detail: Mapping[str, Fact]) -> dict[str, Fact]:
    """What is told of an event's own facts."""
    return {name: detail.get(name) for name in _FACTS.get(kind, ())}


def pause_after(attempts: int) -> timedelta:
    """How long a notification rests after so many failed tries: 5 s, doubled each time, at most 5 min."""
    return min(FIRST_BACKOFF * float(2 ** min(attempts - 1, 20)), LONGEST_BACKOFF)


def checked_url(url: str, *, allow_plain_http: bool) -> str:
    """The URL, if notifications may be sent there. A private address may be: the operator chooses it.

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
    """Scheme, host and port of a URL: what may be shown to everybody."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _refused(sentence: str) -> Invalid:
    return Invalid(f"The URL of the webhook cannot be used. {sentence}", code="url_invalid", where="/url")
