"""The protocol class that uvicorn is told of, with the places of one listening port."""

import asyncio
import ssl
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from api.connections.places import Places
from api.connections.protocol import BoundedProtocol, HolderKnownBy


def nobody(_: str) -> None:
    """Knows no credentials."""


def bounded_http(
    places: Places, tls: ssl.SSLContext | None = None, *, holder_known_by: HolderKnownBy = nobody
) -> type[asyncio.Protocol]:
    """The protocol class for ``uvicorn.Config(http=...)``. uvicorn itself must not be told of certificates.

    Args:
        holder_known_by: whom a request counts for, by its ``Authorization``, if that has been right before.
    """

    class Bounded(BoundedProtocol):
        def __init__(
            self,
            config: Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self._places, self._limits, self._tls = places, places.limits, tls
            self._holder_known_by = holder_known_by

    return Bounded
