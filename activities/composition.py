"""Every activity, built from ports."""

from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.trace import NoOpTracer, Tracer

from activities.clusters import ClusterActivities, EdgeActivities
from activities.commissioning import CommissioningActivities
from activities.notifications import Counted, NotificationActivities
from activities.repository import RepositoryActivities, SecretActivities
from activities.step_chain import StepChainActivities
from activities.upkeep import UpkeepActivities
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.application.rendering import RenderInputs
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.domain.cluster import StepName
from edgewright.ports.fleet import Fleet
from edgewright.ports.stored import StoredPorts
from edgewright.ports.webhook_delivery import WebhookSender

NO_TRACES = NoOpTracer()


def build_activities(
    ports: StoredPorts,
    fleet: Fleet,
    sender: WebhookSender,
    *,
    organisation: str,
    external_url: str,
    commissioned: Callable[[float], None] = lambda _seconds: None,
    notified: Counted = lambda _outcome, _number: None,
    tracer: Tracer = NO_TRACES,
) -> Sequence[Callable[..., Any]]:
    """The activities of a worker. ``commissioned``: see ``ClusterActivities``; ``notified``: how notifications
    ended."""
    inputs = RenderInputs(ports.config, external_url)
    cluster = ClusterActivities(
        ports.wishes, ports.directory, ports.steps, ports.git, inputs, commissioned=commissioned
    )
    steps = CommissioningActivities(
        ports.directory, ports.steps, ports.edge_access, ports.accounts, ports.git, organisation=organisation
    )
    repository = RepositoryActivities(ports.directory, ports.steps, ports.git, inputs)
    edge = EdgeActivities(EdgeStatusDoor(ports.directory, ports.edge_reports, ports.config))
    secrets = SecretActivities(ports.directory, ports.staging, ports.git)
    chain = StepChainActivities(
        {
            StepName.ALLOCATE_ADDRESS: steps.allocate_address,
            StepName.CREATE_ACCOUNTS: steps.create_accounts,
            StepName.CREATE_REPOSITORY: repository.create_repository,
            StepName.POPULATE_REPOSITORY: repository.populate_repository,
            StepName.PUBLISH_STATUS: steps.publish_status,
        },
        cluster.read_wanted,
        tracer,
    )
    notifying = NotificationActivities(ports.notifications, ports.signing, sender, fleet, counted=notified)
    upkeep = upkeep_of(ports, fleet)
    return (
        cluster.read_wanted,
        cluster.publish,
        cluster.record_deletion,
        cluster.record_pause,
        edge.record_edge_status,
        secrets.commit_secrets,
        chain.run_steps,
        chain.read_and_commission,
        steps.allocate_address,
        steps.create_accounts,
        steps.publish_status,
        steps.withdraw_status,
        steps.suspend_credentials,
        steps.begin_deletion,
        steps.revoke_credentials,
        steps.remove_accounts,
        steps.remove_address,
        steps.remove_edge_status,
        steps.remove_setup_status,
        repository.create_repository,
        repository.populate_repository,
        repository.withdraw_secrets,
        repository.remove_workloads,
        repository.archive_repository,
        repository.raise_fence,
        upkeep.expire,
        upkeep.nudge,
        upkeep.upkeep,
        notifying.notify,
        notifying.send,
    )


def upkeep_of(ports: StoredPorts, fleet: Fleet) -> UpkeepActivities:
    """The activities of the sweep."""
    return UpkeepActivities(
        ports.directory,
        ports.steps,
        ports.edge_access,
        ports.edge_reports,
        ports.git,
        repositories=SharedRepositories.on(ports),
        fleet=fleet,
        ended_requests=ports.ended_requests,
        resealings=ports.resealings,
        upgrades=ports.upgrades,
    )
