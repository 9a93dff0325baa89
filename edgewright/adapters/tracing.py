"""Traces to an OpenTelemetry collector. Off unless one is named; then nothing of the SDK is even loaded."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracer, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from edgewright import __version__

EXPORT_SECONDS = 5.0
"""How long one export may take: a collector that is away holds up no stop for longer."""
TRACEPARENT = "traceparent"
"""The header of W3C Trace Context."""
_PROPAGATOR = TraceContextTextMapPropagator()


@contextmanager
def open_tracer(endpoint: str | None, service: str) -> Iterator[Tracer]:
    """A tracer that sends its spans in batches from a thread of its own; what is left is sent at the end.

    Args:
        endpoint: base URL of the collector's OTLP/HTTP receiver, such as ``http://127.0.0.1:4318``; None: a tracer
            that does nothing.
        service: ``service.name`` of the spans.
    """
    if endpoint is None:
        yield NoOpTracer()
        return
    # Half a second of loading that only those pay for who trace.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - see above
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - see above

    provider = TracerProvider(
        resource=Resource.create({"service.name": service, "service.version": __version__}), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter, export_timeout_millis=EXPORT_SECONDS * 1000))
    try:
        yield provider.get_tracer("edgewright", __version__)
    finally:
        provider.shutdown()


def span_before(traceparent: str | None) -> Context:
    """The context in which a span goes on from another process. Of what came along only this header is read: the
    others (``tracestate``, ``baggage``) hold texts that anybody may have written."""
    return _PROPAGATOR.extract({TRACEPARENT: traceparent} if traceparent else {}, context=Context())
