"""Bodies of the webhook."""

from datetime import datetime
from uuid import UUID

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.domain.notifications import LONGEST_URL, NotificationType


class NewWebhook(Wish):
    """Where to send notifications: an https URL, or plain http on loopback."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"url": "https://alerts.example.com/edgewright"}]},
    )

    url: str = Field(min_length=1, max_length=LONGEST_URL)


class DeliveryBody(Answer):
    """The latest delivery.

    ``status``: HTTP status of the answer; null: there was none. ``attempts``: tries of this notification so far.
    ``message``: the same in words.
    """

    at: datetime
    type: NotificationType
    cluster: str
    delivered: bool
    status: int | None
    attempts: int
    message: str


class WaitingBody(Answer):
    """How many notifications wait for delivery, and since when the oldest one waits."""

    count: int
    since: datetime
    message: str


class WebhookBody(Answer):
    """The webhook without its secret.

    ``stopped_at``: when the receiver answered 410, which means that it wants no more notifications; nothing is sent
    until the webhook is set again. Otherwise null. ``last_delivery`` and ``waiting`` are null if there is none.
    """

    id: UUID
    url: str
    created_at: datetime
    stopped_at: datetime | None
    last_delivery: DeliveryBody | None
    waiting: WaitingBody | None


class NewWebhookBody(WebhookBody):
    """``secret`` verifies the signatures; it is shown only this once and stored nowhere."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "0b1f9c58-6f7e-4a55-9a53-0d6a3a5f3f10",
                    "url": "https://alerts.example.com/edgewright",
                    "created_at": "2026-03-01T12:00:00Z",
                    "stopped_at": None,
                    "last_delivery": None,
                    "waiting": None,
                    "secret": "whsec_…",
                }
            ]
        },
    )

    secret: str
