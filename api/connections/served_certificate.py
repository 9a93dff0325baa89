"""The certificate that connections are secured with, taken anew when its file changes: a renewal needs no restart."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from edgewright.errors import Stalled

LOOKED_AT_SECONDS = 10.0

_log = structlog.get_logger(__name__)


class ServedCertificate:
    """A certificate and its key, as PEM files. ``context`` is what new connections are secured with.

    Raises:
        Stalled: code ``tls_unusable``.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._seen = self._stamp()
        self.context = self._loaded()

    def refresh(self) -> bool:
        """Takes the files if they have changed; returns whether they were taken.

        Files that do not fit each other, as when one of them is replaced before the other, leave all as it is. They
        are looked at again the next time.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        try:
            self._loaded()  # elsewhere first: a context that has taken half of a pair serves nobody any more
            self.context.load_cert_chain(*self._files)
        except (Stalled, OSError):
            return False
        self._seen = stamp
        return True

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(*self._files)
        except OSError as error:
            raise Stalled(
                f"The certificate or its key cannot be used ({error.strerror or error}).",
                code="tls_unusable",
                hint="EDGEWRIGHT_TLS_CERT and EDGEWRIGHT_TLS_KEY name PEM files that belong together.",
            ) from error
        return context

    def _stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp_of(file) for file in self._files)


@asynccontextmanager
async def refreshing(served: ServedCertificate | None) -> AsyncIterator[None]:
    """Looks every few seconds, until the end of the context, whether the files have changed."""
    if served is None:
        yield
        return
    looking = asyncio.create_task(_refresh_for_good(served))
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def _refresh_for_good(served: ServedCertificate) -> None:
    while True:
        await asyncio.sleep(LOOKED_AT_SECONDS)
        if await asyncio.to_thread(served.refresh):
            _log.info("certificate renewed")


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
