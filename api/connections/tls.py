"""TLS that begins on a connection which has got its place."""

import asyncio
import ssl
from typing import cast


async def begin_tls(
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    tls: ssl.SSLContext,
    early: bytearray,
    *,
    patience: float,
) -> asyncio.Transport | None:
    """Shakes hands with a client; returns the transport of what is said from then on, None: it has gone away.

    Args:
        early: what has arrived and nobody has read; taken out.
        patience: seconds.

    Raises:
        OSError: the client speaks no TLS, or not this one.
    """
    loop = asyncio.get_running_loop()
    beginning = loop.create_task(
        loop.start_tls(transport, protocol, tls, server_side=True, ssl_handshake_timeout=patience)
    )
    try:
        await asyncio.sleep(0)
        # What came before that has no reader yet: uvloop does not pause a transport that is just being made.
        secure = cast(asyncio.BufferedProtocol, transport.get_protocol())  # uvloop's has its methods only
        loop.call_soon(_feed, secure, bytes(early))
        early.clear()
        return await beginning
    except BaseException:
        beginning.cancel()
        raise


def _feed(protocol: asyncio.BufferedProtocol, received: bytes) -> None:
    """Hands over what another protocol has received."""
    while received:
        room = memoryview(protocol.get_buffer(len(received)))
        size = min(len(room), len(received))
        room[:size] = received[:size]
        protocol.buffer_updated(size)
        received = received[size:]
