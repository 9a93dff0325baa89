"""The sealed-secrets controller of the edge, which alone can seal anew what its older keys sealed.

Its HTTP API is plain and open within the cluster; it allows 2 requests a second, and a burst of 2. One value that
no key opens makes it refuse the whole object.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2

from edgewright.agent.timing import Clock
from edgewright.agent.urls import USER_AGENT, trusted_by
from edgewright.errors import Refused, Waiting
from edgewright.retry_after import seconds_asked_for

DEADLINE = 30.0
"""Seconds, with the answer."""
LARGEST = 4 * 1024 * 1024
"""Bytes of an answer; Kubernetes takes no object of more than 1.5 MiB."""
APART = 0.55
"""Seconds between two requests, at least."""
MOST_TURNS = 10
"""So often the controller may say that it is asked too often."""


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """What is re-sealed of a SealedSecret.

    Args:
        scope: the annotations that say in which scope its values are sealed.
        values: key -> ciphertext, base64.
    """

    namespace: str
    name: str
    scope: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def only(self, key: str) -> "SealedSecret":
        """The same with one of its values."""
        return SealedSecret(self.namespace, self.name, self.scope, {key: self.values[key]})

    def to_json(self) -> dict[str, Any]:
        """An object for the controller. Not the whole: what else a template has would be sealed in as well."""
        return {
            "apiVersion": "bitnami.com/v1alpha1",
            "kind": "SealedSecret",
            "metadata": {"name": self.name, "namespace": self.namespace, "annotations": dict(self.scope)},
            "spec": {
                "encryptedData": dict(self.values),
                "template": {
                    "metadata": {"name": self.name, "namespace": self.namespace, "annotations": dict(self.scope)}
                },
            },
        }


class Unreadable(Refused):
    """No key of the controller opens it, or not all of it."""

    code = "sealed_secret_unreadable"


class SealingController:
    """One controller, reached within the cluster: not through the proxies of the environment.

    Args:
        url: of the controller, without a slash at its end.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._next = clock.monotonic()
        self._turn = asyncio.Lock()  # re-sealing and the check of keys share what the controller allows
        self._http = httpx2.AsyncClient(
            verify=trusted_by(url),
            timeout=DEADLINE,
            trust_env=False,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            limits=httpx2.Limits(max_connections=1),
        )

    async def reseal(self, secret: SealedSecret) -> Mapping[str, str]:
        """Every value, encrypted for the newest key: key -> ciphertext.

        Raises:
            Unreadable: at least one of them cannot be opened.
            Waiting: ``sealing_controller_away``: it does not answer, or not now.
        """
        status, content = await self._send("/v1/rotate", secret)
        if status == httpx2.codes.OK:
            return _encrypted(content, secret)
        if status == httpx2.codes.INTERNAL_SERVER_ERROR:
            # It says the same of whatever goes wrong; asked to verify, it tells what it cannot read.
            status, _ = await self._send("/v1/verify", secret)
            if status == httpx2.codes.CONFLICT:
                raise Unreadable(f"No key opens all of {secret.namespace}/{secret.name}.")
        raise _away(f"HTTP {status}")

    async def opens(self, secret: SealedSecret) -> bool:
        """Whether one of the controller's keys opens every value; nothing is changed.

        Raises:
            Waiting: ``sealing_controller_away``: it does not answer, or not now.
        """
        status, _ = await self._send("/v1/verify", secret)
        if status not in {httpx2.codes.OK, httpx2.codes.CONFLICT}:
            raise _away(f"HTTP {status}")
        return status == httpx2.codes.OK

    async def close(self) -> None:
        """Closes its connection."""
        await self._http.aclose()

    async def _send(self, path: str, secret: SealedSecret) -> tuple[int, bytes]:
        for _ in range(MOST_TURNS):
            async with self._turn:
                await self._clock.sleep(max(0.0, self._next - self._clock.monotonic()))
                status, content, pause = await self._ask(path, secret)
                self._next = self._clock.monotonic() + max(APART, pause)
            if status != httpx2.codes.TOO_MANY_REQUESTS:
                return status, content
        raise _away("asked too often")

    async def _ask(self, path: str, secret: SealedSecret) -> tuple[int, bytes, float]:
        """One request: status, content, and the seconds that the controller wants to be left alone."""
        content = bytearray()
        body = json.dumps(secret.to_json()).encode()
        try:
            async with (
                asyncio.timeout(DEADLINE),
                self._http.stream("POST", f"{self._url}{path}", content=body) as answer,
            ):
                async for chunk in answer.aiter_raw():
                    content += chunk
                    if len(content) > LARGEST:
                        raise _away("an endless answer")
        except (httpx2.RequestError, TimeoutError) as error:
            raise _away(type(error).__name__) from None
        return (
            answer.status_code,
            bytes(content),
            seconds_asked_for(answer.headers.get("Retry-After"), now=datetime.now(UTC)),
        )


def _encrypted(content: bytes, secret: SealedSecret) -> Mapping[str, str]:
    """The values of the object that it has rebuilt; nothing else of it is what we gave it."""
    try:
        found = json.loads(content)["spec"]["encryptedData"]
        return {key: str(found[key]) for key in secret.values}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _away("no SealedSecret") from None


def _away(why: str) -> Waiting:
    return Waiting(f"The sealed-secrets controller cannot re-seal now ({why}).", code="sealing_controller_away")
