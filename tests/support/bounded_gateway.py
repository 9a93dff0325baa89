"""A live gateway whose deadlines a test can shorten."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from live_gateway import LiveGateway

from api.connections.limits import ConnectionLimits

PATIENT = ConnectionLimits(handshake_seconds=60.0, head_seconds=60.0)
"""A slow machine exceeds none of these deadlines; a test shortens the one that it is about."""


class BoundedGateway(LiveGateway):
    """A live gateway whose deadlines can be changed."""

    @contextmanager
    def deadlines(self, **seconds: float) -> Iterator[None]:
        """Other deadlines for connections that are made meanwhile."""
        places = self.centre.app.state.live.places
        before = places.limits
        places.limits = replace(before, **seconds)
        try:
            yield
        finally:
            places.limits = before

    def refused(self, reason: str) -> float:
        """How many connections were refused or closed early for that reason."""
        return (
            self.centre.gateway.metrics.registry.get_sample_value(
                "edgewright_connections_refused_total", {"reason": reason}
            )
            or 0.0
        )
