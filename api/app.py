"""The gateway, wired: ``build`` opens what the settings name, ``create_app`` makes routes of it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api.access import Access
from api.connections.limits import descriptor_limit, limits_for
from api.connections.proxied import ProxiedCallers
from api.dependencies import EdgeOffer
from api.document import document
from api.gateway import Gateway
from api.held_answers import HeldAnswers
from api.kept_answers import KeptAnswers
from api.lifespan import running
from api.live import Live, live_of
from api.methods import HeadFromGet
from api.metrics import Metrics
from api.middleware import Envelope
from api.operator_turns import OperatorTurns
from api.problems import install_problems
from api.rooms import access_to, furnish
from api.routes import (
    agent,
    bootstrap,
    charts,
    classes,
    clusters,
    config_store,
    entry_search,
    events,
    flux,
    front_page,
    git,
    health,
    image_registry,
    installation,
    progress,
    registration,
    repositories,
    resealing,
    secrets,
    tokens,
    upgrades,
    verbs,
    webhook,
)
from edgewright import __version__
from edgewright.adapters.agent_image.layout import ImageLayout
from edgewright.adapters.database.engine.sole_gateway import sole_gateway
from edgewright.adapters.database.engine.sqlite_engine import change_stamp
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.temporal.client import connect
from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.adapters.temporal.runtime import open_runtime
from edgewright.adapters.tracing import open_tracer
from edgewright.application.installation import installation_id
from edgewright.bootstrap import AgentPod
from edgewright.settings import Settings
from edgewright.wiring import open_ports

ROUTERS = tuple(
    part.router
    for part in (
        front_page,
        health,
        clusters,
        verbs,
        progress,
        events,
        registration,
        bootstrap,
        installation,
        image_registry,
        flux,
        upgrades,
        agent,
        secrets,
        resealing,
        charts,
        git,
        repositories,
        config_store,
        classes,
        entry_search,
        tokens,
        webhook,
    )
)
"""In the order of the document."""
ASKED_MOST = (git.router, agent.router)
"""What every edge asks all the time; matched first, as routes are tried one after the other."""

EXPOSED = ("ETag", "Edgewright-Commit", "Edgewright-Warning", "Location", "Retry-After", "X-Request-Id")
"""Headers of answers that pages of other origins may read."""
DOCUMENTATION_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # Swagger UI sets styles of single elements
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""What the page ``/docs`` may load."""


@cache
def described() -> dict[str, Any]:
    """The OpenAPI document; made when it is asked for the first time."""
    return document(ROUTERS)


class GatewayApplication(FastAPI):
    """Answers with our completed OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        return described()


def serve_documentation(app: FastAPI) -> None:
    """Adds ``/docs``, Swagger UI from this package. A token is typed there, so no script comes from anywhere else."""
    folder = Path(str(files("api") / "swagger_ui"))

    async def page(_request: Request) -> Response:
        return FileResponse(
            folder / "index.html", media_type="text/html", headers={"Content-Security-Policy": DOCUMENTATION_POLICY}
        )

    app.add_route("/docs", page, methods=["GET"], include_in_schema=False)
    app.mount("/docs", StaticFiles(directory=folder))


def create_app(gateway: Gateway) -> FastAPI:
    """The application of a gateway. Its lifespan runs the background tasks."""
    live = live_of(gateway)
    access = access_to(gateway, live)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with running(gateway, live):
            yield

    return _application(gateway, live, access, lifespan)


def _application(gateway: Gateway, live: Live, access: Access, lifespan: Any) -> FastAPI:
    app = GatewayApplication(
        title="Edgewright",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        # FastAPI's own spans hold query strings, and with them registration tokens.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    furnish(app, gateway, live, access)
    for router in sorted(ROUTERS, key=lambda each: each not in ASKED_MOST):
        # Not include_router: it would analyse every route once more, with the first request to any of a router's.
        app.router.routes.extend(router.routes)
    serve_documentation(app)
    install_problems(app, [*app.routes, *(route for router in ROUTERS for route in router.routes)])
    app.add_middleware(KeptAnswers, stamp=gateway.change_stamp)
    app.add_middleware(HeadFromGet)
    if gateway.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=gateway.cors_origins,
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("*",),
            expose_headers=EXPOSED,
        )
    app.add_middleware(OperatorTurns, access=access)
    app.add_middleware(HeldAnswers)
    app.add_middleware(ProxiedCallers, places=live.places)
    app.add_middleware(Envelope, metrics=gateway.metrics, tracer=gateway.tracer)
    if gateway.connections.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(gateway.connections.trusted_proxies))
    return app


@asynccontextmanager
async def build(settings: Settings) -> AsyncIterator[FastAPI]:
    """A gateway on what the settings name; closed at the end.

    Temporal may be away: the gateway starts, answers and takes writes all the same.

    Raises:
        Stalled: code ``second_gateway``: another one serves from the same SQLite file.
    """
    async with AsyncExitStack() as opened:
        stored = await opened.enter_async_context(open_ports(settings))
        alone = opened.enter_context(sole_gateway(settings.effective_database_url))
        await stored.database.migrate()
        if alone:
            await stored.idempotency.orphan()
        stamp = opened.enter_context(change_stamp(settings.effective_database_url))
        tracer = opened.enter_context(open_tracer(settings.otlp_endpoint, "edgewright-gateway"))
        metrics = Metrics()
        ports = stored.measured(metrics)
        address = settings.temporal_address or f"127.0.0.1:{settings.temporal_port}"
        client = await connect(address, settings.temporal_namespace, lazy=True, runtime=open_runtime())
        yield create_app(
            Gateway(
                ports=ports,
                git_http=GitHttp(ports.repositories, on_memory_limit=metrics.git_memory_limit),
                fleet=TemporalFleet(client, name_of=ports.directory.name_of),
                offer=EdgeOffer(
                    external_url=settings.effective_external_url,
                    external_url_is_loopback=settings.external_url_is_loopback,
                    ca_bundle=settings.ca_bundle.read_text(encoding="utf-8") if settings.ca_bundle else None,
                    door=settings.read_door(),
                    registry_mirror=settings.registry_mirror,
                    agent=_agent_pod(settings),
                    images=ImageLayout(settings.agent_image_folder),
                    agent_priority_class=settings.agent_priority_class,
                    credential_age=settings.credential_age,
                ),
                cors_origins=settings.allowed_origins,
                temporal_ui_url=_temporal_ui(settings),
                temporal_namespace=settings.temporal_namespace,
                installation=await installation_id(ports.config),
                allow_plain_http=settings.allow_plain_http,
                demand_schema=ports.database.demand_schema,
                sweep_every=timedelta(seconds=settings.sweep_seconds),
                connections=limits_for(
                    descriptor_limit(),
                    overall=settings.connections,
                    per_address=settings.connections_per_address,
                    trusted_proxies=settings.trusted_proxies,
                ),
                change_stamp=stamp,
                metrics=metrics,
                tracer=tracer,
            )
        )


def _agent_pod(settings: Settings) -> AgentPod | None:
    if settings.agent_image is None:
        return None
    return AgentPod(settings.agent_image, settings.agent_pull_secret, settings.agent_priority_class)


def _temporal_ui(settings: Settings) -> str | None:
    """Where Temporal's Web UI is; of a foreign server only if the settings say so."""
    if settings.temporal_ui_url or settings.temporal_address:
        return settings.temporal_ui_url
    return f"http://127.0.0.1:{settings.temporal_ui_port}"
