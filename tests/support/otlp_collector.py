"""A collector of traces: a real OTLP/HTTP receiver on a free port, that keeps what it is sent."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SeenSpan:
    """One span as it came over the wire. IDs are hexadecimal; ``parent`` is empty for the first of a trace."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """What has come so far. ``bodies``: the bytes of every export, of whatever kind."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> list[SeenSpan]:
        return [span for body in list(self.bodies) for span in _spans(body)]

    def trace_of_request(self, request_id: str) -> list[SeenSpan]:
        """Every span of the trace in which the gateway answered a request; empty while that has not come."""
        spans = self.spans()
        traces = {span.trace for span in spans if span.attributes.get("edgewright.request_id") == request_id}
        return [span for span in spans if span.trace in traces]


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    collector = Collector()

    class CollectorHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.bodies.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            collector.paths.add(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), CollectorHandler) as server:
        collector.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            server.shutdown()


def _spans(body: bytes) -> Iterator[SeenSpan]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield SeenSpan(
                    service=about.get("service.name", ""),
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes={
                        pair.key: pair.value.string_value or str(pair.value.int_value) for pair in span.attributes
                    },
                )
