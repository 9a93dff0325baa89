"""What the gateway counts, for Prometheus. One registry per application: nothing is global."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The series of one gateway. Paths are labelled by their template, never by what was filled in."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "edgewright_http_requests_total",
            "HTTP requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.duration = Histogram(
            "edgewright_http_request_seconds",
            "From the request's first byte to the answer's last.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.wrong_credentials = Counter(
            "edgewright_wrong_credentials_total", "Requests with wrong credentials.", registry=self.registry
        )
        self.heartbeats_waiting = Gauge(
            "edgewright_heartbeats_waiting", "Heartbeats that are not written yet.", registry=self.registry
        )

    def exposition(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self.registry)
