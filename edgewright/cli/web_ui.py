"""The guard before Temporal's Web UI: passes on what the UI's own pages send, and nothing that any other page sends.

The UI takes every name for its own (DNS rebinding), asks for no password, and bounds neither what a caller sends nor
how long that takes. ``python -m edgewright.cli.web_ui`` is the only way to it; no browser goes where the UI itself
listens (``edgewright/cli/ports.py``).
"""

import gc

if __name__ == "__main__":
    gc.disable()  # until all is loaded: none of it is garbage, and looking through it takes a third of a start

import argparse
import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api.connections.bounded_http import bounded_http
from api.connections.limits import ConnectionLimits
from api.connections.places import Places
from api.metrics import Metrics
from edgewright.cli.clusters_page import CONTENT_POLICY, PATH, clusters_page
from edgewright.event_loop import new_event_loop

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""No page of somebody else has such a name for its own, whatever its name server says."""

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_OF_ONE_CONNECTION = frozenset(
    {"connection", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)  # RFC 9110, section 7.6.1
LIMITS = ConnectionLimits(overall=1024, per_address=256)
"""Nobody is identified here: at most a quarter of them at once."""
LONGEST_BODY = 4 * 1024 * 1024
"""Bytes; what Temporal takes of one workflow's input is half of that."""
_LONGEST_ANSWER_SECONDS = 90.0  # the UI waits for new events of a workflow with requests that are held


class _BodyTooLong(Exception):
    """The request has more of a body than is passed on."""


@dataclass(frozen=True)
class Guard:
    """Decides which requests are passed on.

    Args:
        names: the host names under which people open the UI, without ports.
    """

    names: frozenset[str]

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Why a request is refused; None if it is not."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name_of(hosts[0]) not in self.names:
            return (
                f"This is Temporal's Web UI of Edgewright, known here as {', '.join(sorted(self.names))}. "
                "Open it under one of these names, or set EDGEWRIGHT_TEMPORAL_UI_URL to the one that you use.\n"
            )
        origins = headers.getlist("origin")
        if any(urlsplit(origin).netloc != hosts[0] for origin in origins):
            return "A page of another site asked for this, and only pages of the Web UI itself may.\n"
        followed = method in {"GET", "HEAD"} and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not followed:
            return "A page of another site asked for this; from there, only links to the Web UI may be followed.\n"
        return None


def guarded(upstream: str, names: frozenset[str], namespace: str = "default") -> Starlette:
    """The application.

    Args:
        upstream: ``host:port`` of the UI itself.
        namespace: whose clusters the page ``/clusters`` goes to.
    """
    guard = Guard(names)
    client = httpx.AsyncClient(
        base_url=f"http://{upstream}",
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # nothing is encrypted: no authorities have to be read
        timeout=_LONGEST_ANSWER_SECONDS,
        limits=httpx.Limits(max_connections=LIMITS.newcomers, max_keepalive_connections=16),
        trust_env=False,
    )

    page, page_headers = clusters_page(namespace), {"Content-Security-Policy": CONTENT_POLICY}

    async def judge(request: Request) -> Response:
        refusal = guard.refusal(request.method, request.headers)
        if refusal is not None:
            return PlainTextResponse(refusal, 403)
        if request.url.path == PATH:
            return HTMLResponse(page, headers=page_headers | {"Cache-Control": "no-store"})
        return await pass_on(request)

    async def pass_on(request: Request) -> Response:
        asked = client.build_request(
            request.method,
            httpx.URL(raw_path=_raw_target(request)),
            headers=[(name, value) for name, value in request.headers.raw if _passes(name)],
            content=_body(request),
        )
        try:
            answer = await client.send(asked, stream=True)
        except _BodyTooLong:
            return PlainTextResponse(f"The Web UI takes bodies of at most {LONGEST_BODY} bytes.\n", 413)
        except ClientDisconnect:
            return PlainTextResponse("The rest of the request did not arrive.\n", 400)
        except httpx.TransportError as error:
            return PlainTextResponse(f"Temporal's Web UI does not answer ({type(error).__name__}).\n", 502)
        response = StreamingResponse(answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose))
        response.raw_headers = [(name.lower(), value) for name, value in answer.headers.raw if _passes(name)]
        response.headers["x-frame-options"] = "DENY"  # a click in a frame of another page is not the reader's
        return response

    return Starlette(routes=[Route("/{path:path}", judge, methods=_METHODS)])


def listening(app: Starlette, host: str, port: int, limits: ConnectionLimits = LIMITS) -> uvicorn.Config:
    """How the guard listens: with bounds of headers, of connections and of time."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_http(Places(limits, Metrics())),
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )


def main() -> None:
    """Serves until told to end."""
    gc.freeze()
    gc.enable()
    parser = argparse.ArgumentParser(prog="python -m edgewright.cli.web_ui", description=__doc__)
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT", help="where the UI itself is")
    parser.add_argument("--url", default="", help="under which people open it, if not a loopback address")
    parser.add_argument("--namespace", default="default", help="of Temporal, whose clusters /clusters goes to")
    given = parser.parse_args()
    names = LOOPBACK_NAMES | ({_name_of(urlsplit(given.url).netloc)} if given.url else set())
    host, _, port = given.listen.rpartition(":")
    config = listening(guarded(given.upstream, frozenset(names), given.namespace), host.strip("[]"), int(port))
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(uvicorn.Server(config).serve())


def _name_of(netloc: str) -> str:
    """The host name in ``host:port``, in lower case; empty if it has none."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def _raw_target(request: Request) -> bytes:
    """Path and query as they were sent: what the UI escapes in the ID of a workflow stays escaped."""
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return path + (b"?" + query if query else b"")


def _passes(header: bytes) -> bool:
    return header.lower().decode("latin-1") not in _OF_ONE_CONNECTION


def _body(request: Request) -> AsyncIterator[bytes] | None:
    has_one = "content-length" in request.headers or "transfer-encoding" in request.headers
    return _bounded(request.stream()) if has_one else None


async def _bounded(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    read = 0
    async for piece in body:
        read += len(piece)
        if read > LONGEST_BODY:
            raise _BodyTooLong
        yield piece


if __name__ == "__main__":
    main()
