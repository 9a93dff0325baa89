"""What the gateway counts, for Prometheus. One registry per application: nothing is global."""

from collections.abc import Iterable, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from edgewright.domain.cluster import LeaseState, Phase, StepState
from edgewright.ports.census import LEASE_AGES, Counted

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SEAL_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1)


class Metrics:
    """The series of one gateway. Paths are labelled by their template, never by what was filled in, and nothing is
    labelled by a cluster: the number of series does not grow with the fleet."""

    def __init__(self) -> None:
        # As many series again, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library has not annotated it
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "edgewright_http_requests_total",
            "HTTP requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.duration = Histogram(
            "edgewright_http_request_seconds",
            "From the request's first byte to the answer's last, less what an edge has offered to wait.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.wrong_credentials = Counter(
            "edgewright_wrong_credentials_total", "Requests with wrong credentials.", registry=self.registry
        )
        self.limited = Counter(
            "edgewright_limited_total",
            "Requests refused because a limit was reached.",
            ("code",),
            registry=self.registry,
        )
        self.connections = Gauge(
            "edgewright_connections",
            "Open connections by who has authenticated on them.",
            ("caller",),
            registry=self.registry,
        )
        self.connections_limit = Gauge(
            "edgewright_connections_limit", "How many connections may be open at once.", registry=self.registry
        )
        self.connections_refused = Counter(
            "edgewright_connections_refused_total",
            "Connections refused or closed early, by the limit or deadline that was reached.",
            ("reason",),
            registry=self.registry,
        )
        self.heartbeats_waiting = Gauge(
            "edgewright_heartbeats_waiting", "Heartbeats that are not written yet.", registry=self.registry
        )
        self.heartbeats_held = Gauge(
            "edgewright_heartbeats_held", "Heartbeats whose answer waits for news.", registry=self.registry
        )
        self.heartbeats_behind = Gauge(
            "edgewright_heartbeats_behind_seconds", "Since all heartbeats were written.", registry=self.registry
        )
        self.seal = Histogram(
            "edgewright_seal_seconds", "Sealing one value.", buckets=_SEAL_SECONDS, registry=self.registry
        )
        self._git = Histogram(
            "edgewright_git_seconds",
            "Operations on driving repositories.",
            ("operation",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._git_memory_limit = Counter(
            "edgewright_git_memory_limit_total",
            "Exchanges with git that ended because git got no more memory.",
            ("operation",),
            registry=self.registry,
        )
        self.loop_lag = Histogram(
            "edgewright_event_loop_lag_seconds",
            "How late the event loop is.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._reachable = Gauge(
            "edgewright_reachable", "1 if this gateway reaches the part, 0 if not.", ("part",), registry=self.registry
        )
        self._fleet = _FleetCollector()
        self.registry.register(self._fleet)
        ProcessCollector(registry=self.registry)

    def git(self, operation: str, seconds: float) -> None:
        """An operation on a repository has ended; called from threads."""
        self._git.labels(operation).observe(seconds)

    def git_memory_limit(self, operation: str) -> None:
        """Git got no more memory for a ``fetch`` or a ``push``."""
        self._git_memory_limit.labels(operation).inc()

    def exposition(self, counted: Counted | None, reached: Mapping[str, bool]) -> bytes:
        """All series in Prometheus' text format.

        Args:
            counted: the newest census; None: the database is out of reach, and its series are left out.
            reached: whether each part was reached just now.
        """
        for part, there in reached.items():
            self._reachable.labels(part).set(there)
        self._fleet.counted = counted
        return generate_latest(self.registry)


class _FleetCollector(Collector):
    """Series of a census. Every gateway tells the same of the same database: take the largest, do not add them up."""

    def __init__(self) -> None:
        self.counted: Counted | None = None

    def describe(self) -> Iterable[Metric]:
        return _families(Counted())

    def collect(self) -> Iterable[Metric]:
        return _families(self.counted) if self.counted else ()


def _families(counted: Counted) -> Iterable[Metric]:
    yield _by(
        "edgewright_clusters",
        "Clusters by phase, but for deleted ones.",
        ("phase",),
        {(phase.value,): counted.phases.get(phase, 0) for phase in Phase if phase is not Phase.DELETED},
    )
    failing: dict[tuple[str, ...], int] = {(StepState.WAITING.value, ""): 0, (StepState.BLOCKED.value, ""): 0}
    failing |= {
        (state.value, step.value if step else ""): number for (state, step), number in counted.failing.items()
    }
    yield _by(
        "edgewright_steps_failing",
        "Clusters in which a step waits for its next attempt, or is blocked until somebody acts.",
        ("state", "step"),
        failing,
    )
    yield _by(
        "edgewright_leases",
        "Clusters by the state of their lease.",
        ("state",),
        {(state.value,): counted.leases.get(state, 0) for state in LeaseState},
    )
    yield _lease_ages(counted)
    for name, text, value in (
        (
            "edgewright_commissioning_oldest_seconds",
            "Age of the oldest cluster never ready.",
            counted.oldest_commissioning,
        ),
        ("edgewright_secrets_staged", "Sealed values that no commit holds yet.", counted.staged),
        ("edgewright_secrets_staged_oldest_seconds", "Age of the oldest of them.", counted.oldest_staged),
        (
            "edgewright_notifications_waiting",
            "Notifications that the webhook has not taken.",
            counted.notifications,
        ),
        (
            "edgewright_notifications_waiting_oldest_seconds",
            "How long the oldest of them waits.",
            counted.oldest_notification,
        ),
        ("edgewright_resealing_clusters", "Clusters whose secrets are being re-sealed.", counted.resealings),
        ("edgewright_resealing_oldest_seconds", "How long the first of them is at it.", counted.oldest_resealing),
        ("edgewright_clusters_drifted", "Clusters whose repository or database was put back.", counted.drifted),
        ("edgewright_sweep_age_seconds", "Since the last round of the sweep.", counted.sweep_age),
    ):
        yield GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for filled, value in values.items():
        family.add_metric(filled, value)
    return family


def _lease_ages(counted: Counted) -> Metric:
    """A histogram of how things are now, not of what has happened: its buckets go down, too."""
    family = Metric(
        "edgewright_lease_age_seconds", "Seconds since each edge was heard that ever was.", "gaugehistogram"
    )
    for bound, within in zip(LEASE_AGES, counted.lease_ages, strict=True):
        family.add_sample("edgewright_lease_age_seconds_bucket", {"le": str(bound)}, within)
    family.add_sample("edgewright_lease_age_seconds_bucket", {"le": "+Inf"}, counted.heard)
    return family
