"""The SDK's runtime: its log goes into ours, and its metrics, with those of our activities, to one port."""

import logging
from collections.abc import Mapping, Sequence

from temporalio.common import MetricCounter, MetricHistogramFloat
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from edgewright.errors import Stalled

LAG_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Classes of everything that waits or runs in a queue: a bulk queue may hold a step for half an hour."""
COMMISSIONING_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
GIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

COMMISSIONING = "edgewright_commissioning_seconds"
GIT = "edgewright_git_seconds"
GIT_MEMORY_LIMIT = "edgewright_git_memory_limit"
LOOP_HELD = "edgewright_event_loop_held_seconds"
LOOP_LAG = "edgewright_event_loop_lag_seconds"
NOTIFICATIONS = "edgewright_notifications"
OUTCOMES = ("delivered", "failed", "given_up")
_BUCKETS: Mapping[str, Sequence[float]] = {
    COMMISSIONING: COMMISSIONING_SECONDS,
    GIT: GIT_SECONDS,
    LOOP_HELD: GIT_SECONDS,
    LOOP_LAG: GIT_SECONDS,
    **dict.fromkeys(
        (
            "temporal_activity_schedule_to_start_latency",
            "temporal_activity_execution_latency",
            "temporal_activity_succeed_endtoend_latency",
            "temporal_workflow_task_schedule_to_start_latency",
            "temporal_workflow_task_execution_latency",
            "temporal_workflow_task_replay_latency",
            "temporal_request_latency",
        ),
        LAG_SECONDS,
    ),
}


def open_runtime(metrics_address: str | None = None) -> Runtime:
    """A runtime; one for each process, because each has threads of its own.

    Args:
        metrics_address: ``host:port`` of an HTTP server that it starts for Prometheus; None: nothing is measured.

    Raises:
        Stalled: code ``metrics_port_taken``.
    """
    logs = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio.core"), append_target_to_name=False),
    )
    metrics = None
    if metrics_address is not None:
        metrics = PrometheusConfig(
            bind_address=metrics_address,
            counters_total_suffix=True,
            unit_suffix=True,
            durations_as_seconds=True,
            histogram_bucket_overrides=_BUCKETS,
        )
    try:
        return Runtime(telemetry=TelemetryConfig(logging=logs, metrics=metrics, attach_service_name=False))
    except (RuntimeError, ValueError) as error:
        raise Stalled(
            f"Metrics cannot be served at {metrics_address}.",
            code="metrics_port_taken",
            hint="Set EDGEWRIGHT_WORKER_METRICS_PORT to a free port, or unset it.",
        ) from error


class WorkerMetrics:
    """What the worker measures itself; does nothing in a runtime without metrics."""

    def __init__(self, runtime: Runtime) -> None:
        meter = runtime.metric_meter
        self._commissioning: MetricHistogramFloat = meter.create_histogram_float(
            COMMISSIONING, "From a cluster's creation to the first time that it was ready."
        )
        self._git: MetricHistogramFloat = meter.create_histogram_float(GIT, "Operations on driving repositories.")
        self._git_memory_limit: MetricCounter = meter.create_counter(
            GIT_MEMORY_LIMIT, "Operations that ended because git got no more memory."
        )
        self._loop_held: MetricHistogramFloat = meter.create_histogram_float(
            LOOP_HELD, "Processor time for which one task held the event loop."
        )
        self._loop_lag: MetricHistogramFloat = meter.create_histogram_float(LOOP_LAG, "How late the event loop is.")
        self._notifications: MetricCounter = meter.create_counter(NOTIFICATIONS, "Tries to deliver a notification.")
        for outcome in OUTCOMES:  # a series that begins with its first failure cannot be compared with before
            self.notified(outcome, 0)

    def notified(self, outcome: str, number: int) -> None:
        """Notifications were ``delivered``, have ``failed``, or were ``given_up``."""
        self._notifications.add(number, {"outcome": outcome})

    def commissioned(self, seconds: float) -> None:
        """A cluster became ready for the first time."""
        self._commissioning.record(max(0.0, seconds))

    def git(self, operation: str, seconds: float) -> None:
        """An operation on a repository has ended."""
        self._git.record(seconds, {"operation": operation})

    def git_memory_limit(self, operation: str) -> None:
        """Git got no more memory for an operation on a repository."""
        self._git_memory_limit.add(1, {"operation": operation})

    def loop_lag(self, seconds: float) -> None:
        """The event loop was so late."""
        self._loop_lag.record(seconds)

    def loop_held(self, seconds: float) -> None:
        """The task that held the event loop longest, lately, did so for so long."""
        self._loop_held.record(seconds)
