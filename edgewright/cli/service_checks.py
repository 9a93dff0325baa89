"""What `doctor` asks the services of an installation: database, token, Temporal, worker, gateway."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
from sqlalchemy import make_url
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.migrations import known_revisions, present_revisions
from edgewright.adapters.temporal.client import connect
from edgewright.adapters.temporal.sweep_schedule import is_paused
from edgewright.application.installation import installation_id
from edgewright.cli.admin_token import holds_valid_token
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.endpoints import Endpoints
from edgewright.cli.fleet_checks import door_checks, fleet_checks
from edgewright.cli.invocation import typed
from edgewright.cli.share.outside import outside_checks
from edgewright.cli.values_checks import values_checks
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import EdgewrightError
from edgewright.messages.names import BULK_QUEUE, CLUSTERS_QUEUE
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.operators import OperatorTokens
from edgewright.settings import Settings
from edgewright.wiring import open_ports

_CLOCK_SLACK_SECONDS = 5.0
_LONG_POLL = timedelta(seconds=75)
"""A poll that finds nothing lasts a minute, so whoever polls was seen within this time."""
_QUEUES = {
    CLUSTERS_QUEUE: (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
    BULK_QUEUE: (TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,),
}
"""What a worker polls each for."""


async def service_checks(settings: Settings, endpoints: Endpoints | None = None) -> list[Check]:
    """Every finding about the services, in the order in which they depend on each other.

    Args:
        settings: those in force, ``as_running``.
        endpoints: where the services of this home are; None: no `up` runs on it.
    """
    stored = [check async for check in _stored(settings)]
    if endpoints is None and settings.temporal_address is None:
        return stored
    running = [check async for check in _temporal(settings, endpoints)]
    running += await asyncio.to_thread(_gateway, endpoints)
    return [*stored, *running, *await asyncio.to_thread(outside_checks, settings, await _centre(settings))]


async def _centre(settings: Settings) -> UUID | None:
    """The ID of this centre; None where the database does not say: another check says what is wrong with that."""
    if settings.external_url_is_loopback:
        return None
    try:
        async with open_ports(settings) as ports:
            return await installation_id(ports.config)
    except EdgewrightError:
        return None


async def _stored(settings: Settings) -> AsyncIterator[Check]:
    url = make_url(settings.effective_database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():  # noqa: ASYNC240 - one look
        yield Check("database", CheckVerdict.OK, f"{url.database} is not there yet; `{typed('up')}` makes it.")
        return
    try:
        async with open_ports(settings) as ports:
            findings = [check async for check in _database(ports.database, timedelta(seconds=settings.sweep_seconds))]
            for check in findings:
                yield check
            if findings[0].verdict is CheckVerdict.OK:  # else there is no table to look a token up in
                yield await _token(ports.operators, settings.home / "admin-token")
                yield await _flux(ports.config)
                for check in await door_checks(ports.edge_reports, settings):
                    yield check
                here = settings.effective_external_url
                async for check in values_checks(ports.database, ports.config, ports.git, here):
                    yield check
    except EdgewrightError as error:
        yield _from_error("database", error)


async def _database(database: Database, sweep_every: timedelta) -> AsyncIterator[Check]:
    async with database.read() as connection:
        present, newest = await connection.run_sync(present_revisions), known_revisions()[-1:]
        ahead = (datetime.now(UTC) - await database.now(connection)).total_seconds()
    if present == newest:
        yield Check("database", CheckVerdict.OK, f"Reachable, schema {'+'.join(present)}.")
    else:
        have, want = "+".join(present) or "none", "+".join(newest)
        fix = f"`{typed('admin init')}` upgrades an older schema. A newer one needs a newer Edgewright."
        yield Check("database", CheckVerdict.WRONG, f"The schema is {have}; this version needs {want}.", fix)
    if present == newest:
        async for check in fleet_checks(database, sweep_every):
            yield check
    if abs(ahead) > _CLOCK_SLACK_SECONDS:
        sentence = f"This machine's clock is {ahead:+.0f} s off the database's clock, which is the one that counts."
        yield Check("database clock", CheckVerdict.WRONG, sentence, "Synchronize both machines with NTP.")


async def _token(operators: OperatorTokens, file: Path) -> Check:
    new = f"`{typed('admin init')}` writes a new one."
    try:
        mode = file.stat().st_mode & 0o777  # noqa: ASYNC240 - one look
        valid = await holds_valid_token(operators, file)
    except FileNotFoundError:
        return Check("admin token", CheckVerdict.WRONG, f"{file} is not there.", new)
    except PermissionError:
        return Check("admin token", CheckVerdict.WRONG, f"{file} cannot be read.", f"Correct its owner, or: {new}")
    if not valid:
        return Check("admin token", CheckVerdict.WRONG, f"{file} does not hold a valid token for this database.", new)
    if mode & 0o077:
        sentence = f"{file} can be read by other users (mode {mode:04o})."
        return Check(
            "admin token", CheckVerdict.WRONG, sentence, f"chmod 600 {file}; then revoke the token if in doubt."
        )
    return Check("admin token", CheckVerdict.OK, f"{file} is valid.")


async def _flux(config: ConfigStore) -> Check:
    entry = await config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
    if entry is None:
        fix = f"`{typed('flux import')} install.yaml --sha256 HEX`; docs/edge.md says where that file is."
        return Check("Flux for edges", CheckVerdict.WARNING, "None imported: each edge needs its own.", fix)
    flux = ImportedFlux.model_validate(entry.body)
    return Check("Flux for edges", CheckVerdict.OK, f"{flux.named}, imported {entry.modified_at:%Y-%m-%d}.")


async def _temporal(settings: Settings, endpoints: Endpoints | None) -> AsyncIterator[Check]:
    address = endpoints.temporal if endpoints else str(settings.temporal_address)
    try:
        client = await asyncio.wait_for(connect(address, settings.temporal_namespace), timeout=5)
        idle = [queue for queue in _QUEUES if not await _polled(client, queue)]
        paused = await is_paused(client)
    except TimeoutError:
        yield Check(
            "Temporal", CheckVerdict.WRONG, f"{address} does not answer within 5 s.", _log(settings, "temporal")
        )
        return
    except RPCError as error:
        sentence = f"{address} refuses the request: {error.message}."
        yield Check("Temporal", CheckVerdict.WRONG, sentence, _log(settings, "temporal"))
        return
    except EdgewrightError as error:
        yield _from_error("Temporal", error)
        return
    yield Check("Temporal", CheckVerdict.OK, f"{address} answers, namespace {settings.temporal_namespace}.")
    if paused:
        sentence = "The schedule edgewright-sweep is paused, so leases do not expire and lost messages stay lost."
        yield Check(
            "sweep schedule", CheckVerdict.WRONG, sentence, "Resume it in Temporal's Web UI, under Schedules."
        )
    if idle:
        yield Check("worker", CheckVerdict.WRONG, f"No worker polls {', '.join(idle)}.", _log(settings, "worker"))
    else:
        yield Check("worker", CheckVerdict.OK, "Running; it polls all task queues.")
    # A client that is dropped at once may crash its process at exit (temporalio/sdk-python issue 300).
    await asyncio.sleep(0.2)


async def _polled(client: Client, queue: str) -> bool:
    """Whether somebody polls all kinds of a task queue; the server remembers those who have gone for some minutes."""
    now = datetime.now(UTC)
    for kind in _QUEUES[queue]:
        answer = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
            )
        )
        if not any(now - poller.last_access_time.ToDatetime(UTC) < _LONG_POLL for poller in answer.pollers):
            return False
    return True


def _gateway(endpoints: Endpoints | None) -> list[Check]:
    if endpoints is None:
        return []
    try:
        answer = httpx.get(
            f"{endpoints.gateway}/readyz",
            timeout=5,
            trust_env=False,
            verify=False,  # noqa: S501 - asked without a token, so it does not matter who answers
        )
        report = answer.json() if answer.content else {}
    except (httpx.HTTPError, ValueError):
        fix = f"Restart with `{typed('down')}` and `{typed('up')}`; its log is logs/gateway.log in the home."
        return [Check("gateway", CheckVerdict.WRONG, f"{endpoints.gateway} does not answer.", fix)]
    if not answer.is_success:
        detail = report.get("detail") if isinstance(report, dict) else None
        sentence = f"{endpoints.gateway} is not ready: {detail or answer.status_code}"
        return [Check("gateway", CheckVerdict.WRONG, sentence, "Read logs/gateway.log in the home.")]
    degraded = report.get("degraded") if isinstance(report, dict) else None
    if degraded:
        sentence = f"{endpoints.gateway} answers, degraded: {', '.join(degraded)}."
        return [Check("gateway", CheckVerdict.WARNING, sentence, "See the findings about that part above.")]
    return [Check("gateway", CheckVerdict.OK, f"{endpoints.gateway} is ready.")]


def _log(settings: Settings, part: str) -> str:
    if settings.temporal_address and part == "temporal":
        return "Check EDGEWRIGHT_TEMPORAL_ADDRESS and the server there."
    return f"Read {settings.home / 'logs' / part}.log."


def _from_error(name: str, error: EdgewrightError) -> Check:
    return Check(name, CheckVerdict.WRONG, error.detail, error.hint or "")
