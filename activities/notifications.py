"""Finding what is to be told, and telling it."""

import asyncio
import hmac
import time
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256

import structlog
from temporalio import activity

from edgewright.errors import Stalled
from edgewright.messages.notifications import NotificationRound
from edgewright.messages.sweep import SweepResult
from edgewright.ports.fleet import Fleet
from edgewright.ports.notifications import Batch, Due, Notifications, Outcome
from edgewright.ports.webhook_delivery import SigningSecret, SigningSecrets, WebhookSender

log = structlog.get_logger("edgewright.notifications")

AT_ONCE = 16
"""Notifications on their way at the same time, of as many clusters."""
ROUND = timedelta(seconds=20)
"""After this a round ends although there is more to send: its activity has a time limit."""
Counted = Callable[[str, int], None]
"""Takes an outcome (``delivered``, ``failed``, ``given_up``) and how often it came about."""


class NotificationActivities:
    """Everything here is safe to repeat. What was sent and not recorded is sent again, with the same ID."""

    def __init__(
        self,
        notifications: Notifications,
        signing: SigningSecrets,
        sender: WebhookSender,
        fleet: Fleet,
        *,
        counted: Counted = lambda _outcome, _number: None,
    ) -> None:
        self._notifications = notifications
        self._signing = signing
        self._sender = sender
        self._fleet = fleet
        self._counted = counted

    @activity.defn(name="sweep_notify")
    async def notify(self) -> SweepResult:
        """Finds what happened since the last sweep, and sees to it that somebody delivers what waits."""
        found = await self._notifications.collect()
        if found.given_up:
            self._counted("given_up", found.given_up)
            log.warning("notifications_given_up", count=found.given_up)
        if found.waiting:
            await self._fleet.deliver_notifications(news=found.new > 0)
        return SweepResult()

    @activity.defn(name="send_notifications")
    async def send(self) -> NotificationRound:
        """Sends what is due until nothing is, nothing is taken any more, or the round is over."""
        until = time.monotonic() + ROUND.total_seconds()
        total = NotificationRound(next_in=0.0)
        while time.monotonic() < until and not activity.is_worker_shutdown():
            batch = await self._notifications.due(AT_ONCE)
            if batch is None or not batch.due:
                return total.model_copy(update={"next_in": batch.next_in if batch else None})
            total = await self._send_batch(batch, total)
            if total.away:
                break
        return total

    async def _send_batch(self, batch: Batch, total: NotificationRound) -> NotificationRound:
        try:
            secret = self._secret_of(batch)
        except Stalled as trouble:
            outcomes = [Outcome(due.position, None, trouble.detail) for due in batch.due]
        else:
            outcomes = await asyncio.gather(*(self._send_one(batch.url, secret, due) for due in batch.due))
        given_up = await self._notifications.settle(batch.webhook, outcomes)
        failed = [outcome for outcome in outcomes if outcome.problem]
        counts = {"delivered": len(outcomes) - len(failed), "failed": len(failed), "given_up": given_up}
        for outcome, number in counts.items():
            self._counted(outcome, number)
        if failed:
            log.warning("notifications_not_delivered", problem=failed[-1].problem, **counts)
        return NotificationRound(
            **{name: getattr(total, name) + number for name, number in counts.items()},
            away=len(failed) == len(outcomes),
            next_in=0.0,
            problem=failed[-1].problem if failed else total.problem,
        )

    def _secret_of(self, batch: Batch) -> SigningSecret:
        """The secret that the webhook was made with.

        Raises:
            Stalled: its key is not there, or is another one; a receiver would take no signature made with it.
        """
        secret = self._signing.secret_of(batch.webhook)
        if not hmac.compare_digest(sha256(secret.reveal()).digest(), batch.secret_sha256):
            raise Stalled(
                "The key that webhooks are signed with is not the one that this webhook was made with. "
                "Put the file back, or set the webhook anew.",
                code="webhook_key_changed",
            )
        return secret

    async def _send_one(self, url: str, secret: SigningSecret, due: Due) -> Outcome:
        answer = await self._sender.send(url, secret, due.event, due.body)
        return Outcome(due.position, answer.status, answer.problem, answer.rest)
