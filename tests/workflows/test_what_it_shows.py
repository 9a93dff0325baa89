"""What a person reads in Temporal's Web UI: the current details, the summaries of timers, the step that hangs."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from temporalio.api.enums.v1 import EventType
from temporalio.contrib.pydantic import pydantic_data_converter

from edgewright.domain.cluster import Lease, LeaseState, Wanted
from edgewright.domain.conditions import conditions_of
from edgewright.domain.projection import Projection
from edgewright.errors import Waiting
from workflows import policies
from workflows.publication import describe

AT = "2026-03-01T12:30:15Z"


def test_the_details_say_that_an_edge_is_silent_and_what_it_has_applied() -> None:
    wanted = Wanted.model_validate(
        {
            "uuid": str(uuid4()),
            "name": "quiet",
            "namespace": "edgewright",
            "generation": 1,
            "change": 1,
            "commissioning": 1,
            "desired": "present",
            "edge_reported_at": AT,
            "lease": Lease.model_validate({"state": LeaseState.EXPIRED, "last_heard": AT}),
        }
    )
    conditions = conditions_of(
        wanted,
        commissioned=True,
        waiting_for="",
        obstacle=None,
        desired_revision="c0ffee",
        now=wanted.edge_reported_at or wanted.lease.last_heard,  # type: ignore[arg-type] # it is set above
        before=(),
    )
    projection = Projection.model_validate({"sequence": 1, "phase": "Active", "ready": True})
    shown = describe(projection.model_copy(update={"conditions": conditions}), wanted)
    assert "- Available: Unknown (LeaseExpired): No heartbeat since 2026-03-01T12:30:15Z." in shown
    assert "- Synced: Unknown (NotReported): The edge has not reported an applied revision." in shown


class Hanging:
    """Git storage that does not come back from creating a repository until it is let go."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.go_on = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_repository(self, *args: Any, **more: Any) -> Any:
        self.go_on.wait(60)
        return self._real.create_repository(*args, **more)


async def test_a_first_attempt_that_hangs_says_since_when(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    patchable.setattr(policies, "LONG_ATTEMPT", timedelta(seconds=0.3))
    git, cluster = Hanging(idle_centre.git), uuid4()
    async with working(idle_centre, git=git):
        await idle_centre.write(cluster, "hangs")

        async def says_so() -> bool:
            await idle_centre.fleet.nudge(cluster)  # as the sweep does
            row = await idle_centre.row(cluster)
            return bool(row.projection and ", attempt 1, running since 20" in row.projection.waiting_for)

        try:
            await eventually(says_so, seconds=25)
        finally:
            git.go_on.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))


class Away:
    """A directory that is away."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def ensure(self, *_: Any) -> None:
        raise Waiting("The directory is away.", code="directory_away", retry_after=5)


async def test_a_timer_says_what_it_is_for(idle_centre: WorkflowCentre) -> None:
    cluster = uuid4()
    async with working(idle_centre, accounts=Away(idle_centre.ports.accounts)):
        await idle_centre.write(cluster, "timed")
        await eventually(lambda: has_timer(idle_centre, cluster, "next attempt at create_accounts"))


async def has_timer(centre: WorkflowCentre, cluster: UUID, summary: str) -> bool:
    return summary in [
        pydantic_data_converter.payload_converter.from_payload(event.user_metadata.summary)
        async for event in centre.handle(cluster).fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED and event.user_metadata.HasField("summary")
    ]
