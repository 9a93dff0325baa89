"""Divides a gateway into rooms: each route is handed the one that it works in, and reaches nothing beyond."""

from fastapi import FastAPI

from api.access import Access
from api.admission import AdmissionRoom
from api.agent_room import AgentRoom
from api.arrivals import Arrivals
from api.bodies import edge_bodies
from api.cluster_room import ClusterRoom
from api.config_writes import StoreRoom
from api.gateway import Gateway
from api.git_callers import GitRoom
from api.git_guests import GitGuests
from api.image_downloads import ImageDownloads
from api.live import Live
from api.operator_time import OperatorTime
from api.presentation import LinkBases
from api.routes.charts import ChartRoom
from api.routes.front_page import FrontRoom
from api.routes.health import HealthRoom
from api.routes.image_registry import RegistryRoom
from api.routes.progress import ProgressRoom
from api.routes.repositories import RepositoryRoom
from api.routes.tokens import TokenRoom
from api.routes.upgrades import UpgradeRoom
from api.routes.webhook import WebhookRoom
from api.secret_lane import SecretLanes
from api.secret_room import SecretRoom
from api.stored_flux import FluxNamespace
from api.synced import SyncedNow
from api.wanted_revisions import WantedRevisions
from api.wrong_credentials import WrongCredentials
from edgewright.adapters.charts.own_charts import GitChartShelf
from edgewright.application.chart_templates import ChartTemplates
from edgewright.application.configurations import ClusterConfigurations
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.application.own_charts import ChartFolders, OwnCharts
from edgewright.application.secret_commits import SecretCommits
from edgewright.application.secret_wishes import SecretWishes
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.application.upgrades import UpgradeDoor


def access_to(gateway: Gateway, live: Live) -> Access:
    """The access to a gateway that starts: nobody has called yet."""
    return Access(
        edge_access=gateway.ports.edge_access,
        operators=gateway.ports.operators,
        cors_origins=gateway.cors_origins,
        places=live.places,
        edge_bodies=edge_bodies(),
        metrics=gateway.metrics,
        arrivals=Arrivals(),
        operator_time=OperatorTime(),
        wrong_credentials=WrongCredentials(),
    )


def furnish(app: FastAPI, gateway: Gateway, live: Live, access: Access) -> None:
    """Puts what its routes work with where they find it; ``live`` is for the process that serves the application."""
    app.state.live = live
    app.state.access = access
    app.state.config = gateway.ports.config
    app.state.directory = gateway.directory
    app.state.offer = gateway.offer
    app.state.registry_room = RegistryRoom(gateway.offer.images, ImageDownloads())
    statuses = EdgeStatusDoor(gateway.directory, gateway.ports.edge_reports, gateway.ports.config)
    app.state.agent_room = AgentRoom(
        access=access,
        directory=gateway.directory,
        config=gateway.ports.config,
        edge_access=gateway.ports.edge_access,
        edge_reports=gateway.ports.edge_reports,
        resealings=gateway.ports.resealings,
        git=gateway.ports.git,
        statuses=statuses,
        heartbeats=live.heartbeats,
        held_beats=live.held_beats,
        wanted_revisions=live.wanted_revisions,
        nudges=live.nudges,
        edge_statuses=live.edge_statuses,
        edge_secrets=live.edge_secrets,
        external_url=gateway.offer.external_url,
        door=gateway.offer.door,
        credential_age=gateway.offer.credential_age,
    )
    flux_namespace = FluxNamespace(gateway.ports.config)  # what it has read serves both rooms
    secret_commits = SecretCommits(gateway.directory, gateway.ports.staging, gateway.ports.git)
    app.state.secret_room = SecretRoom(
        directory=gateway.directory,
        git=gateway.ports.git,
        staging=gateway.ports.staging,
        resealings=gateway.ports.resealings,
        secret_wishes=SecretWishes(
            gateway.ports.git,
            gateway.ports.staging,
            flux_namespace=flux_namespace.read,
            timer=gateway.metrics.seal.time,
        ),
        secret_commits=secret_commits,
        secret_lane=SecretLanes(secret_commits, gateway.fleet, live.nudges, tracer=gateway.tracer),
        nudges=live.nudges,
    )
    repositories = SharedRepositories.on(gateway.ports)
    app.state.repository_room = RepositoryRoom(repositories, gateway.ports.git, gateway.offer.external_url)
    app.state.git_room = GitRoom(
        access=access,
        directory=gateway.directory,
        audit=gateway.ports.audit,
        git_http=gateway.git_http,
        git_guests=GitGuests(),
        flux_namespace=flux_namespace,
        repositories=repositories,
        nudges=live.nudges,
    )
    configurations = ClusterConfigurations(gateway.directory, gateway.wishes, gateway.ports.config, live.chart_values)
    app.state.cluster_room = ClusterRoom(
        directory=gateway.directory,
        wishes=gateway.wishes,
        config=gateway.ports.config,
        edge_access=gateway.ports.edge_access,
        edge_reports=gateway.ports.edge_reports,
        idempotency=gateway.ports.idempotency,
        fleet=gateway.fleet,
        statuses=statuses,
        configurations=configurations,
        nudges=live.nudges,
        synced=SyncedNow(
            WantedRevisions(gateway.ports.git),  # not that of edges, which wait for no operator
            gateway.ports.config,
            gateway.offer.external_url,
        ),
        link_bases=LinkBases(gateway.offer.external_url, gateway.temporal_ui_url, gateway.temporal_namespace),
    )
    app.state.store_room = StoreRoom(
        directory=gateway.directory,
        wishes=gateway.wishes,
        config=gateway.ports.config,
        statuses=statuses,
        configurations=configurations,
        repositories=repositories,
        chart_values=live.chart_values,
        nudges=live.nudges,
        searches=live.searches,
        edge_statuses=live.edge_statuses,
    )
    shelf = GitChartShelf(gateway.ports.git)
    templates = ChartTemplates(
        gateway.ports.config, gateway.directory, live.chart_values, ChartFolders(gateway.ports.git, shelf)
    )
    charts = OwnCharts(gateway.ports.git, gateway.ports.audit, shelf, templates, gateway.offer.external_url)
    app.state.chart_room = ChartRoom(charts, templates, live.nudges)
    app.state.admission_room = AdmissionRoom(
        directory=gateway.directory,
        config=gateway.ports.config,
        edge_access=gateway.ports.edge_access,
        git=gateway.ports.git,
        offer=gateway.offer,
        edge_secrets=live.edge_secrets,
        nudges=live.nudges,
    )
    app.state.upgrade_room = UpgradeRoom(
        directory=gateway.directory,
        upgrades=gateway.ports.upgrades,
        door=UpgradeDoor(gateway.ports.upgrades, gateway.ports.config),
        nudges=live.nudges,
    )
    app.state.token_room = TokenRoom(gateway.ports.operators, live.sessions)
    app.state.progress_room = ProgressRoom(
        directory=gateway.directory,
        config=gateway.ports.config,
        audit=gateway.ports.audit,
        fleet=gateway.fleet,
        event_streams=live.event_streams,
        closing=live.closing,
    )
    app.state.front_room = FrontRoom(gateway.offer.external_url, gateway.temporal_ui_url)
    app.state.health_room = HealthRoom(
        edge_reports=gateway.ports.edge_reports,
        git=gateway.ports.git,
        fleet=gateway.fleet,
        service=gateway.service,
        installation=gateway.installation,
        sweep_every=gateway.sweep_every,
        broken=live.broken,
        unwritable=live.unwritable,
        scrape=live.scrape,
    )
    app.state.webhook_room = WebhookRoom(
        webhooks=gateway.ports.webhooks,
        signing=gateway.ports.signing,
        nudges=live.nudges,
        allow_plain_http=gateway.allow_plain_http,
    )
