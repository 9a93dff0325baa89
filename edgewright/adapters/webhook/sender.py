"""Sends notifications: one POST each, bounded in time, no redirects, nothing of the answer read but its status."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from uuid import UUID

import httpx

from edgewright import __version__
from edgewright.adapters.webhook.signature import signed_headers
from edgewright.domain.notifications import GONE, LONGEST_REST, Notification
from edgewright.ports.webhook_delivery import SigningSecret, WebhookAnswer
from edgewright.retry_after import seconds_asked_for

TIMEOUT_SECONDS = 15.0
"""For the whole of one try. A receiver that needs longer should take the notification first and work later."""
_THIS_MACHINE = ("all://localhost", "all://127.0.0.1", "all://[::1]")
"""A proxy of the company, of which the environment may tell, never leads back here."""


class HttpWebhookSender:
    """Implements ``WebhookSender``."""

    def __init__(self, client: httpx.AsyncClient, *, patience: float, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._patience = patience
        self._clock = clock

    async def send(self, url: str, secret: SigningSecret, event: UUID, body: Notification) -> WebhookAnswer:
        """See the port."""
        octets = body.octets()
        headers = {"content-type": "application/json", **signed_headers(secret, event, self._clock(), octets)}
        try:
            async with (
                asyncio.timeout(self._patience),
                self._client.stream("POST", url, content=octets, headers=headers) as answer,
            ):
                return _answered(answer, self._clock())
        except (TimeoutError, httpx.TimeoutException):
            return WebhookAnswer(None, f"The receiver did not answer within {self._patience:g} s.")
        except httpx.ConnectError as error:
            if _is_of_certificate(error):
                return WebhookAnswer(None, "The receiver's certificate is not one that this machine trusts.")
            return WebhookAnswer(None, "The receiver cannot be reached.")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # its text may hold the URL
            return WebhookAnswer(None, f"The exchange with the receiver broke off ({type(error).__name__}).")


@asynccontextmanager
async def open_sender(
    *,
    ca_bundle: Path | None = None,
    patience: float = TIMEOUT_SECONDS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[HttpWebhookSender]:
    """A sender for one process.

    Args:
        ca_bundle: PEM file of authorities that are trusted beside those of the machine.
        patience: seconds that one try may take.
        clock: what `webhook-timestamp` says.
    """
    client = httpx.AsyncClient(
        verify=_authorities() if ca_bundle is None else _authorities_and(ca_bundle),
        follow_redirects=False,
        timeout=patience,
        mounts=dict.fromkeys(_THIS_MACHINE),
        limits=httpx.Limits(max_keepalive_connections=0),  # bodies of answers are not read
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none is kept: who answers could send ever more
        headers={"user-agent": f"Edgewright/{__version__}"},
    )
    async with client:
        yield HttpWebhookSender(client, patience=patience, clock=clock)


@cache
def _authorities() -> ssl.SSLContext:
    """Those of this machine, read once."""
    return ssl.create_default_context()


def _authorities_and(bundle: Path) -> ssl.SSLContext:
    trusted = ssl.create_default_context()
    trusted.load_verify_locations(bundle)
    return trusted


def _answered(answer: httpx.Response, at: datetime) -> WebhookAnswer:
    status = answer.status_code
    if answer.is_success:
        return WebhookAnswer(status)
    more = ""
    if httpx.codes.is_redirect(status):
        more = " Redirects are not followed."
    elif status == GONE:
        more = " It wants no more: nothing is sent until the webhook is set again."
    rest = min(seconds_asked_for(answer.headers.get("retry-after"), now=at), LONGEST_REST.total_seconds())
    return WebhookAnswer(status, f"The receiver answered {status}.{more}", rest)


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
