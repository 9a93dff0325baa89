"""The programs of an embedded Edgewright: how each is called, what it is told, and how it shows that it serves."""

import os
import socket
import ssl
import sys
from collections.abc import Callable, Mapping

import httpx

from edgewright.cli.local import listening_url, temporal_binary
from edgewright.cli.ports import hidden_address
from edgewright.cli.supervisor import Part
from edgewright.messages.names import SEARCH_ATTRIBUTES
from edgewright.settings import Settings

TEMPORAL_FILE = "temporal.db"

# The server has one history shard here and would look for work only 20 times a second: 50 ms at each hop.
_POLLS_PER_SECOND = 1000
_POLLERS = ("transferProcessor", "timerProcessor", "visibilityProcessor")

# The server writes what it has acknowledged before a crash of its process; both are needed for speed.
_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL")

# The server opens an HTTP API on a port of its own and cannot be told not to. It asks for no password, and takes what
# any web page sends: so it is told to answer to a name that nobody can have (RFC 6761), which leaves gRPC.
_NO_HTTP_API = 'frontend.httpAllowedHosts=["disabled.invalid"]'

_PROBE_SECONDS = 3.0
"""For an answer to whether a part serves. The question carries no secret, and no answer is trusted."""


def temporal_parts(settings: Settings) -> list[Part]:
    """The Temporal server with its Web UI, file-backed, and the guard before the UI; to be started in this order."""
    address, port = hidden_address()
    return [_temporal(settings, address, port), _web_ui(settings, f"{address}:{port}")]


def _temporal(settings: Settings, ui_address: str, ui_port: int) -> Part:
    arguments = [
        str(temporal_binary(settings)),
        "server",
        "start-dev",
        "--db-filename",
        TEMPORAL_FILE,  # relative: the server reads it as a URL, in which a path may hold no '%' and the like
        "--ip",
        "127.0.0.1",
        "--port",
        str(settings.temporal_port),
        "--ui-ip",
        ui_address,
        "--ui-port",
        str(ui_port),
        "--ui-disable-news-fetch",
        "--log-level",
        "warn",
        "--color",
        "never",
    ]
    if settings.temporal_namespace != "default":
        arguments += ["--namespace", settings.temporal_namespace]
    for pragma in _PRAGMAS:
        arguments += ["--sqlite-pragma", pragma]
    for poller in _POLLERS:
        arguments += ["--dynamic-config-value", f"history.{poller}MaxPollRPS={_POLLS_PER_SECOND}"]
    arguments += ["--dynamic-config-value", _NO_HTTP_API]
    for name, kind in SEARCH_ATTRIBUTES.items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    ui = f"http://{ui_address}:{ui_port}"
    return Part(
        name="temporal",
        command=arguments,
        # Nothing of ours concerns it (a database URL may hold a password), and no profile of the user must.
        environment=_surroundings(without=("EDGEWRIGHT_", "TEMPORAL_")),
        folder=settings.home,
        log=settings.home / "logs" / "temporal.log",
        # Through the Web UI's proxy, so that the UI, the front end and the namespace are all proven to serve.
        ready=_all_of(
            lambda: connects(f"127.0.0.1:{settings.temporal_port}"),
            lambda: answers(f"{ui}/api/v1/namespaces/{settings.temporal_namespace}"),
        ),
        advice=(
            f"If it cannot read its file: move {settings.home / TEMPORAL_FILE}* away; "
            "`up` rebuilds the workflows from the database."
        ),
        yields=True,
    )


def _web_ui(settings: Settings, upstream: str) -> Part:
    listen = f"127.0.0.1:{settings.temporal_ui_port}"
    options = ["--listen", listen, "--upstream", upstream, "--url", settings.temporal_ui_url or ""]
    options += ["--namespace", settings.temporal_namespace]
    return Part(
        name="web-ui",
        command=[*_python_module("edgewright.cli.web_ui"), *options],
        environment=_surroundings(without=("EDGEWRIGHT_", "TEMPORAL_")),
        folder=settings.home,
        log=settings.home / "logs" / "web-ui.log",
        ready=lambda: answers(f"http://{listen}/healthz"),
    )


def worker_part(settings: Settings) -> Part:
    """The worker; it makes its ready file when it polls."""
    ready_file = settings.home / "worker.ready"
    return Part(
        name="worker",
        command=_python_module("worker"),
        environment={**_surroundings(), **told(settings), "EDGEWRIGHT_READY_FILE": str(ready_file)},
        log=settings.home / "logs" / "worker.log",
        ready=ready_file.exists,
        ready_file=ready_file,
        yields=True,
    )


def gateway_part(settings: Settings) -> Part:
    """The gateway."""
    return Part(
        name="gateway",
        command=_python_module("api"),
        environment={**_surroundings(), **told(settings)},
        log=settings.home / "logs" / "gateway.log",
        ready=lambda: answers(f"{listening_url(settings)}/readyz"),
    )


def told(settings: Settings) -> dict[str, str]:
    """The variables that tell a child what was decided here; everything else it reads from its own environment."""
    decided: Mapping[str, object | None] = {
        "EDGEWRIGHT_HOME": settings.home,
        "EDGEWRIGHT_GATEWAY_PORT": settings.gateway_port,
        "EDGEWRIGHT_METRICS_PORT": settings.metrics_port,
        "EDGEWRIGHT_WORKER_METRICS_PORT": settings.worker_metrics_port,
        "EDGEWRIGHT_TEMPORAL_ADDRESS": settings.temporal_address,
        "EDGEWRIGHT_TEMPORAL_UI_URL": settings.temporal_ui_url,
        "EDGEWRIGHT_EXTERNAL_URL": settings.external_url,
        "EDGEWRIGHT_BIND": settings.bind,
        "EDGEWRIGHT_TLS_CERT": settings.tls_cert,
        "EDGEWRIGHT_TLS_KEY": settings.tls_key,
        "EDGEWRIGHT_CA_BUNDLE": settings.ca_bundle,
    }
    return {name: str(value) for name, value in decided.items() if value is not None}


def _surroundings(without: tuple[str, ...] = ()) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not (without and name.startswith(without))}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def _python_module(name: str) -> list[str]:
    # -P: a file of the same name in the folder where `up` was typed must not be run instead.
    return [sys.executable, "-P", "-m", name]


def answers(url: str) -> bool:
    """Whether a GET of a URL is answered with success within three seconds."""
    try:
        return httpx.get(url, timeout=_PROBE_SECONDS, trust_env=False, verify=_any_certificate()).is_success
    except (httpx.HTTPError, ssl.SSLError):
        return False


def connects(address: str) -> bool:
    """Whether somebody accepts connections on ``host:port`` within three seconds."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _all_of(*questions: Callable[[], bool]) -> Callable[[], bool]:
    """One question that is answered with yes when all are."""
    return lambda: all(question() for question in questions)


def _any_certificate() -> ssl.SSLContext:
    # Our own child on this machine, by its address: the certificate bears another name. Nothing is verified, so no
    # authorities are read: that takes ten times as long as the question.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
