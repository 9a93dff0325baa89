"""Everything that the gateway's routes work with: its collaborators and the values that it was set up with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from opentelemetry.trace import NoOpTracer, Tracer

from api.connections.limits import ConnectionLimits
from api.dependencies import EdgeOffer
from api.metrics import Metrics
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.domain.wellknown import SERVICE_CLUSTER_MANAGER
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.fleet import Fleet
from edgewright.ports.stored import StoredPorts


@dataclass(frozen=True)
class Gateway:
    """One gateway, ready to be wired into an application by ``api.app.create_app``.

    Args:
        git_http: Git's smart HTTP protocol, streaming.
        service: what ``/ping`` says that this is.
        installation: ID of this centre, which all its gateways share; None: it has none yet.
        cors_origins: origins whose pages may speak to the gateway; ``*`` for every one.
        temporal_ui_url: base URL of Temporal's Web UI, for links; None: no links.
        temporal_namespace: in those links.
        allow_plain_http: a webhook may be reached without TLS off loopback, too.
        connections: what a connection, an address, and all connections together may take.
        change_stamp: changes with every write to the database; None: that cannot be told, and no answer is kept.
        metrics: where this gateway counts.
        tracer: makes the spans of its requests.
        demand_schema: raises ``OtherSchema`` when the schema of the database is no longer that of this program.
        sweep_every: how often the sweep begins.
    """

    ports: StoredPorts
    git_http: GitHttp
    fleet: Fleet
    offer: EdgeOffer
    sweep_every: timedelta = timedelta(seconds=30)
    demand_schema: Callable[[], Awaitable[None]] | None = None
    service: UUID = SERVICE_CLUSTER_MANAGER
    installation: UUID | None = None
    cors_origins: tuple[str, ...] = ("*",)
    temporal_ui_url: str | None = None
    temporal_namespace: str = "default"
    allow_plain_http: bool = False
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    change_stamp: Callable[[], int | None] | None = None
    metrics: Metrics = field(default_factory=Metrics)
    tracer: Tracer = field(default_factory=NoOpTracer)

    @property
    def directory(self) -> ClusterDirectory:
        """What most routes ask."""
        return self.ports.directory

    @property
    def wishes(self) -> ClusterWishes:
        """What routes that change a cluster write."""
        return self.ports.wishes
