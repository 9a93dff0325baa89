"""The certificate that the sealed-secrets controller hands out to everybody."""

import asyncio

import httpx2

from edgewright.agent.urls import USER_AGENT, trusted_by
from edgewright.errors import Waiting

DEADLINE = 10.0
"""Seconds, with the answer."""
LARGEST = 64 * 1024
"""Bytes."""


class SealingCertificateSource:
    """Asks one controller for its certificate, within the cluster: not through the proxies of the environment.

    Args:
        url: of the controller, without a slash at its end.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/cert.pem"
        self._http = httpx2.AsyncClient(
            verify=trusted_by(url),
            timeout=DEADLINE,
            trust_env=False,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            limits=httpx2.Limits(max_connections=1),
        )

    async def __call__(self) -> str:
        """PEM; the centre judges it.

        Raises:
            Waiting: ``no_sealing_certificate``: the controller does not answer with one.
        """
        content = bytearray()
        try:
            async with asyncio.timeout(DEADLINE), self._http.stream("GET", self._url) as answer:
                async for chunk in answer.aiter_raw():
                    content += chunk
                    if len(content) > LARGEST:
                        break
        except (httpx2.RequestError, TimeoutError) as error:
            raise _none(type(error).__name__) from None
        if not answer.is_success:
            raise _none(f"HTTP {answer.status_code}")
        if not content.lstrip().startswith(b"-----BEGIN CERTIFICATE-----") or len(content) > LARGEST:
            raise _none("no certificate")
        return content.decode(errors="replace")

    async def close(self) -> None:
        """Closes its connection."""
        await self._http.aclose()


def _none(why: str) -> Waiting:
    return Waiting(f"The sealed-secrets controller gives no certificate ({why}).", code="no_sealing_certificate")
