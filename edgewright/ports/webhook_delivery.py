"""Signing notifications and sending them."""

from dataclasses import dataclass
from typing import NoReturn, Protocol, final
from uuid import UUID

from edgewright.domain.notifications import Notification


@final
class SigningSecret:
    """The key of one webhook. A plain class on purpose: what would store or show it fails, or shows nothing."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets = bytes(octets)

    def reveal(self) -> bytes:
        """The bytes themselves; call it where they sign, or where they are shown this once."""
        return self._octets

    def __repr__(self) -> str:
        return "<signing secret>"

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __getstate__(self) -> NoReturn:
        raise TypeError("a signing secret cannot be serialised or copied")


class SigningSecrets(Protocol):
    def secret_of(self, webhook: UUID) -> SigningSecret:
        """The signing secret of a webhook: always the same, and stored nowhere.

        Raises:
            edgewright.errors.Stalled: code ``webhook_key_missing``.
        """


@dataclass(frozen=True)
class WebhookAnswer:
    """What came of sending one notification.

    Args:
        status: the HTTP status; None: there was no answer.
        problem: why it was not taken, as a sentence without the URL; empty: it was taken.
        rest: seconds for which the receiver asked not to be tried again.
    """

    status: int | None
    problem: str = ""
    rest: float = 0.0


class WebhookSender(Protocol):
    async def send(self, url: str, secret: SigningSecret, event: UUID, body: Notification) -> WebhookAnswer:
        """Signs and sends one notification, once, within a bounded time; raises nothing."""
