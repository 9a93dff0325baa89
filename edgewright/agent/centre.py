"""The agent's calls to its centre, with the library that the Kubernetes client brings: a second costs memory."""

import asyncio
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2

from edgewright.agent.attachment import Attachment
from edgewright.agent.detach_order import ReceivedDetachOrder, read_order
from edgewright.agent.messages import (
    ReceivedHeartbeatAnswer,
    SentHeartbeat,
    not_the_centre,
    read_answer,
    read_secrets,
)
from edgewright.agent.purging import Purged
from edgewright.agent.urls import USER_AGENT, trusted_by
from edgewright.errors import (
    Conflict,
    EdgewrightError,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    Stalled,
    TooLarge,
    Unauthenticated,
    Waiting,
)
from edgewright.retry_after import seconds_asked_for

STATUS_DIGEST = "Edgewright-Status-Digest"
DEADLINE = 60.0
"""Seconds for one request with its answer, however slowly that drips."""
SILENCE, CONNECTING = 30.0, 20.0
"""Seconds without a byte, and until there is a connection."""
LARGEST_ANSWER = 256 * 1024
"""Bytes; the centre's answers are far smaller."""
_CODE = re.compile(r"[a-z0-9_]{1,64}")
_REFUSALS = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 410: NotFound, 413: TooLarge, 422: Invalid}


class Centre:
    """One centre, as one cluster. Proxies are those of the environment (``HTTPS_PROXY``, ``NO_PROXY``).

    Redirections are not followed: the credential goes to the URL in the Secret, and to no other.

    Raises:
        Stalled: ``attachment_malformed``: the certificates in the Secret cannot be read; ``proxy_unusable``.
    """

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        verify = _trust(attachment)
        try:
            self._http = httpx2.AsyncClient(
                auth=httpx2.BasicAuth(attachment.username, attachment.password),
                verify=verify,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
                limits=httpx2.Limits(max_connections=2),  # while an answer is held back, a status is reported
            )
        except (ValueError, ImportError, httpx2.InvalidURL):
            raise Stalled(
                "A proxy that the environment names cannot be used.",
                code="proxy_unusable",
                hint="HTTPS_PROXY, HTTP_PROXY and ALL_PROXY take http:// and https:// URLs.",
            ) from None

    async def heartbeat(self, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer:
        """A sign of life; returns what the centre wants.

        Raises:
            Waiting: the centre is away, has no time, or something else answers in its place.
            Refused: it does not want to hear us; that is no order to do anything.
        """
        answer = await self._send("POST", "/v1/agent/heartbeat", beat.to_json(), held=beat.wait)
        return read_answer(_json(answer.content), to=beat)

    async def put_status(self, status: Mapping[str, Any]) -> str | None:
        """Hands in a status; returns the digest that later heartbeats repeat, None if the centre gives none.

        Raises:
            Waiting, Refused: as ``heartbeat``.
        """
        answer = await self._send("PUT", "/v1/agent/status", status)
        if answer.status_code != httpx2.codes.NO_CONTENT:
            raise not_the_centre()
        digest: str | None = answer.headers.get(STATUS_DIGEST)
        return digest

    async def register_credential(self, role: str, secret: str) -> None:
        """Registers the successor of a credential; again, if it is not sure.

        Raises:
            Conflict: ``credential_revoked``, ``nothing_to_rotate``.
            Waiting, Refused: as ``heartbeat``.
        """
        answer = await self._send("POST", "/v1/agent/credential", {"role": role, "secret": secret})
        body = _json(answer.content)
        if not isinstance(body, Mapping) or body.get("role") != role:
            raise not_the_centre()

    async def resealed(self, fingerprint: str, secrets: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """Hands in re-encrypted values; returns the Secrets that are wanted next, ``namespace/name``.

        Args:
            fingerprint: SHA-256 of the certificate (DER) that they are sealed with.

        Raises:
            Waiting, Refused: as ``heartbeat``.
        """
        body = {"fingerprint": fingerprint, "secrets": list(secrets)}
        told = _json((await self._send("POST", "/v1/agent/resealed", body)).content)
        if not isinstance(told, Mapping):
            raise not_the_centre()
        return read_secrets(told.get("reseal"))

    async def detach_order(self) -> ReceivedDetachOrder:
        """The order to detach.

        Raises:
            Conflict: ``not_detaching``: there is none.
            Waiting, Refused: as ``heartbeat``.
        """
        order = read_order(_json((await self._send("GET", "/v1/agent/detach-order")).content))
        if order is None:
            raise not_the_centre()
        return order

    async def goodbye(self, purged: Purged | None = None) -> None:
        """Says that everything is removed; returns once the centre has taken note.

        Args:
            purged: what has become of the kind SealedSecret and of the sealing keys; None: that was not asked for.

        Raises:
            Waiting, Refused: as ``heartbeat``.
        """
        said = None if purged is None else {"purged": not purged.problem, "purge_problem": purged.problem or None}
        answer = await self._send("POST", "/v1/agent/detached", said)
        if answer.status_code != httpx2.codes.NO_CONTENT:
            raise not_the_centre()

    async def close(self) -> None:
        """Closes its connection."""
        await self._http.aclose()

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, held: float = 0.0
    ) -> httpx2.Response:
        """The answer. ``held``: seconds for which the centre may keep it back."""
        if self._http.is_closed:
            raise Waiting("The agent has turned to another centre.", code="centre_away", retry_after=0)
        try:
            async with (
                asyncio.timeout(DEADLINE + held),
                self._http.stream(
                    method,
                    f"{self.attachment.url}{path}",
                    json=None if body is None else dict(body),
                    timeout=httpx2.Timeout(SILENCE + held, connect=CONNECTING),
                ) as answer,
            ):
                content = await _bounded(answer)
        except (httpx2.RequestError, TimeoutError) as error:
            raise _unreached(error) from None
        if not answer.is_success:
            raise _failure(answer.status_code, answer.headers.get("Retry-After"), content)
        return httpx2.Response(answer.status_code, headers=answer.headers, content=content)


async def _bounded(answer: httpx2.Response) -> bytes:
    """As it came: what somebody has packed all the same could unpack to more than there is memory."""
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > LARGEST_ANSWER:
            raise not_the_centre()
    return bytes(content)


def _unreached(error: Exception) -> Waiting:
    """Why no answer came. The text of an error may hold a proxy's URL with its password; that of TLS does not."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Waiting(
                f"The centre's certificate is not trusted ({cause.verify_message}).",
                code="centre_untrusted",
                retry_after=0,
            )
        cause = cause.__cause__ or cause.__context__
    return Waiting(f"The centre cannot be reached ({type(error).__name__}).", code="centre_away", retry_after=0)


def _failure(status: int, retry_after: str | None, content: bytes) -> EdgewrightError:
    """What an answer without success means."""
    body = _json(content)
    code = body.get("code") if isinstance(body, Mapping) else None
    known = isinstance(code, str) and _CODE.fullmatch(code)
    said = f"HTTP {status}, {code}" if known else f"HTTP {status}"
    if status == httpx2.codes.TOO_MANY_REQUESTS or status >= httpx2.codes.INTERNAL_SERVER_ERROR:
        wanted = seconds_asked_for(retry_after, now=datetime.now(UTC))
        return Waiting(f"The centre cannot answer now ({said}).", code="centre_busy", retry_after=wanted)
    if status == httpx2.codes.CONFLICT:
        return Conflict(f"The centre refuses this agent ({said}).", code=code if known else "refused_by_centre")
    if httpx2.codes.is_client_error(status):
        return _REFUSALS.get(status, Refused)(f"The centre refuses this agent ({said}).", code="refused_by_centre")
    return not_the_centre()


def _json(content: bytes) -> object:
    """None for what is no JSON."""
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value


def _trust(attachment: Attachment) -> ssl.SSLContext | bool:
    """What signs the centre's certificate; as curl's ``--cacert``, a bundle of ours is all that counts."""
    if attachment.authority is None:
        return trusted_by(attachment.url)
    try:
        return ssl.create_default_context(cadata=attachment.authority)
    except (ssl.SSLError, ValueError, TypeError) as error:
        raise Stalled(
            "The certificates in the Secret, ca.crt, cannot be read.", code="attachment_malformed", where="ca.crt"
        ) from error
