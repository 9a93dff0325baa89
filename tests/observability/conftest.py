"""One `edgewright up` with everything on that can be watched, for all tests here: they only look."""

from collections.abc import Iterator

import pytest
from embedded import EmbeddedEdgewright
from free_ports import free_port
from otlp_collector import otlp_collector
from watched import Watched


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    metrics_port = free_port()
    with otlp_collector() as collector:
        variables = {
            "EDGEWRIGHT_DEMO": "0",
            "EDGEWRIGHT_METRICS_PORT": str(metrics_port),
            "EDGEWRIGHT_SWEEP_SECONDS": "86400",  # it could nudge before the request does, and has no request ID
            # The standard variable, with which FastAPI would send spans of its own if it were let.
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        centre = EmbeddedEdgewright(tmp_path_factory.mktemp("watched") / "home", variables)
        try:
            centre.up()
            watched = Watched(centre, collector, metrics_port)
            watched.live()
            yield watched
        finally:
            centre.clear_up()
