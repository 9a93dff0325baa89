"""The webhook: tells the operator's own system about joined, silent, recovered, blocked and deleted clusters."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from api.auth import Administrator, actor_of
from api.bodies import JsonBody
from api.idempotency import as_json
from api.nudges import Nudges
from api.schemas.webhook import DeliveryBody, NewWebhook, NewWebhookBody, WaitingBody, WebhookBody
from edgewright.adapters.webhook.signature import shown
from edgewright.domain.notifications import checked_url
from edgewright.errors import NotFound
from edgewright.ports.notifications import Backlog, LastDelivery, Webhook, Webhooks
from edgewright.ports.webhook_delivery import SigningSecrets

NO_STORE = {"Cache-Control": "no-store"}

router = APIRouter(tags=["webhook"])


@dataclass(frozen=True)
class WebhookRoom:
    """Ports for the webhook. ``allow_plain_http``: its URL may use plain HTTP, even off loopback."""

    webhooks: Webhooks
    signing: SigningSecrets
    nudges: Nudges
    allow_plain_http: bool


async def webhook_room_of(request: Request) -> WebhookRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: WebhookRoom = request.app.state.webhook_room
    return room


TheWebhookRoom = Annotated[WebhookRoom, Depends(webhook_room_of)]


@router.get("/v1/webhook", summary="Show the webhook", responses={404: {"description": "No webhook is set."}})
async def get_webhook(*, _operator: Administrator, room: TheWebhookRoom) -> WebhookBody:
    """Returns the webhook without its secret, its latest delivery, and the waiting notifications."""
    webhook = await room.webhooks.get()
    if webhook is None:
        raise _unknown()
    return WebhookBody.model_validate(_facts(webhook))


@router.post("/v1/webhook", status_code=201, summary="Set or replace the webhook", response_model=NewWebhookBody)
async def set_webhook(
    *,
    operator: Administrator,
    wish: Annotated[NewWebhook, Depends(JsonBody(NewWebhook))],
    room: TheWebhookRoom,
) -> Response:
    """The signing secret is shown only this once. `Location` is the path of the webhook.

    The first webhook gets notifications of events from now on. A new webhook replaces the previous one, has its own
    secret, and at once gets the notifications that the previous one did not accept.
    """
    url = checked_url(wish.url, allow_plain_http=room.allow_plain_http)
    identity = uuid4()
    secret = room.signing.secret_of(identity)
    digest = sha256(secret.reveal()).digest()
    webhook = await room.webhooks.put(identity, url, digest, actor=actor_of(operator))
    if webhook.waiting:
        await room.nudges.deliver_notifications()
    body = NewWebhookBody.model_validate({**_facts(webhook), "secret": shown(secret)})
    return JSONResponse(as_json(body), 201, {**NO_STORE, "Location": "/v1/webhook"})


@router.delete(
    "/v1/webhook",
    status_code=204,
    summary="Remove the webhook",
    responses={404: {"description": "No webhook is set."}},
)
async def remove_webhook(*, operator: Administrator, room: TheWebhookRoom) -> Response:
    """Drops waiting notifications. One in transit at this moment may still arrive."""
    if not await room.webhooks.remove(actor=actor_of(operator)):
        raise _unknown()
    return Response(status_code=204)


def _unknown() -> NotFound:
    return NotFound("No webhook is set.", code="webhook_unknown", hint="edgewright webhook set URL sets one.")


def _facts(webhook: Webhook) -> dict[str, object]:
    return {
        "id": webhook.id,
        "url": webhook.url,
        "created_at": webhook.created_at,
        "stopped_at": webhook.stopped_at,
        "last_delivery": _delivery(webhook.last) if webhook.last else None,
        "waiting": _waiting(webhook.waiting) if webhook.waiting else None,
    }


def _delivery(last: LastDelivery) -> DeliveryBody:
    tries = "on the first try" if last.attempts == 1 else f"on try {last.attempts}"
    outcome = f"was not delivered {tries}. {last.problem}" if last.problem else f"was delivered {tries}."
    return DeliveryBody(
        at=last.at,
        type=last.type,
        cluster=last.cluster,
        delivered=not last.problem,
        status=last.status,
        attempts=last.attempts,
        message=f"{last.type} of {last.cluster} {outcome}",
    )


def _waiting(backlog: Backlog) -> WaitingBody:
    wait = "1 notification waits" if backlog.count == 1 else f"{backlog.count} notifications wait"
    return WaitingBody(
        count=backlog.count, since=backlog.since, message=f"{wait}. {backlog.problem}".removesuffix(" ")
    )
