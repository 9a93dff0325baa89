"""Signing notifications and sending them."""

from dataclasses import dataclass
from typing import NoReturn, Protocol, final
from uuid import UUID

from edgewright.domain.notifications import Notification


@final
class SigningSecret:
    """The key of one webhook. A plain class on purpose: attempts to store or print it fail, or show nothing."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets = bytes(octets)

    def reveal(self) -> bytes:
        """Returns the bytes. Only call this to sign, or to show the secret once."""
        return self._octets

    def __repr__(self) -> str:
        return "<signing secret>"

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a signing secret cannot be serialised or copied")


class SigningSecrets(Protocol):
    def secret_of(self, webhook: UUID) -> SigningSecret:
        """Derives the signing secret of a webhook: always the same, and stored nowhere.

        Raises:
            edgewright.errors.Stalled: code ``webhook_key_missing``.
        """


@dataclass(frozen=True)
class WebhookAnswer:
    """The result of sending one notification.

    Args:
        status: HTTP status; None: there was no answer.
        problem: why the delivery failed, as a sentence without the URL; empty: it succeeded.
        rest: seconds that the receiver asked to wait before the next try.
    """

    status: int | None
    problem: str = ""
    rest: float = 0.0


class WebhookSender(Protocol):
    async def send(self, url: str, secret: SigningSecret, event: UUID, body: Notification) -> WebhookAnswer:
        """Signs and sends one notification once, within a bounded time; never raises."""
