"""Asks a gateway for each operation of its OpenAPI document, and holds each answer against the document."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from live_gateway import LiveGateway

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
OPERATIONS = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method in {"get", "put", "post", "patch", "delete"}
]


EVERYWHERE = {
    "access-control-allow-origin", "access-control-expose-headers", "cache-control", "connection", "content-length",
    "content-security-policy", "content-type", "date", "expires", "keep-alive", "pragma", "referrer-policy", "server",
    "transfer-encoding", "vary", "x-accel-buffering", "x-content-type-options", "x-frame-options",
}  # fmt: skip
"""Headers that say nothing of what was asked for."""


def undeclared_headers(method: str, template: str, status: int, headers: Iterable[str]) -> set[str]:
    """What an answer bears and the document does not tell of."""
    answers = DOCUMENT["paths"][template][method.lower()]["responses"]
    declared = answers.get(str(status), answers["default"]).get("headers", {})
    return {name.lower() for name in headers} - {name.lower() for name in declared} - EVERYWHERE


class Tour:
    """Counts which operations were answered with 2xx."""

    def __init__(self, live: LiveGateway, headers: Mapping[str, str]) -> None:
        self._schema = schemathesis.openapi.from_dict(DOCUMENT)
        self._client = live.client(dict(headers))
        self.reached: set[tuple[str, str]] = set()

    def visit(self, operation: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Response:
        """One request. ``operation``: ``METHOD /path/{of}/the/document``; ``fill``: what its parameters become."""
        method, template = operation.split()
        path = template.format(**options.pop("fill", {}))
        # Its own client: credentials are replaced, not added to.
        request = self._client.build_request(method, path, headers=dict(headers or {}), **options)
        with_stream = self._client.send(request, stream=True)
        try:
            if "text/event-stream" in with_stream.headers.get("content-type", ""):
                next(with_stream.iter_raw())  # it never ends
            else:
                with_stream.read()
                self.check(method, template, with_stream)
        finally:
            with_stream.close()
        if with_stream.is_success:
            self.reached.add((method, template))
        return with_stream

    def check(self, method: str, template: str, answer: httpx.Response) -> None:
        """Fails unless the document allows this answer."""
        assert answer.status_code < 500 or answer.status_code == 503, f"{method} {template}: {answer.text}"
        documented = DOCUMENT["paths"][template][method.lower()]["responses"]
        assert not answer.is_success or str(answer.status_code) in documented, f"{method} {template}: {answer}"
        undeclared = undeclared_headers(method, template, answer.status_code, answer.headers)
        assert not undeclared, f"{method} {template} answered {answer.status_code} with {undeclared}"
        if answer.headers.get("content-type", "").startswith(("application/json", "application/problem+json")):
            self._schema[template][method].validate_response(answer)
