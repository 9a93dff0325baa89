"""What Temporal keeps of a cluster: its runs, one after the other."""

from dataclasses import dataclass
from uuid import UUID

from temporalio.client import Client, WorkflowHistoryEventFilterType

from edgewright.messages.names import workflow_id


@dataclass(frozen=True)
class ContinuedRun:
    """One run that has continued as new.

    Args:
        events: in its history.
        size: of its history, bytes.
        handover: bytes of what it gave to the next one.
    """

    run_id: str
    events: int
    size: int
    handover: int


class Histories:
    """The runs of one cluster; each is looked at once, for a run that has ended never changes."""

    def __init__(self, client: Client, cluster: UUID) -> None:
        self._client = client
        self._workflow = workflow_id(cluster)
        self.ended: list[ContinuedRun] = []
        self.present_events = 0

    @property
    def events(self) -> int:
        """Counts the events of all runs, the present one too."""
        return sum(run.events for run in self.ended) + self.present_events

    async def read(self) -> None:
        """Takes note of the runs that have ended since."""
        known = self.ended[-1].run_id if self.ended else ""
        present = await self._client.get_workflow_handle(self._workflow).describe()
        self.present_events = present.history_length
        new: list[ContinuedRun] = []
        run_id = await self._before(str(present.run_id))
        while run_id and run_id != known:
            new.append(await self._run(run_id))
            run_id = await self._before(run_id)
        assert run_id == known, "the chain of runs is broken"
        self.ended += reversed(new)

    async def _before(self, run_id: str) -> str:
        """The run that has continued as this one; empty for the first."""
        handle = self._client.get_workflow_handle(self._workflow, run_id=run_id)
        async for event in handle.fetch_history_events(page_size=1):
            return event.workflow_execution_started_event_attributes.continued_execution_run_id
        raise AssertionError(f"run {run_id} has no history")

    async def _run(self, run_id: str) -> ContinuedRun:
        handle = self._client.get_workflow_handle(self._workflow, run_id=run_id)
        info = (await handle.describe()).raw_description.workflow_execution_info
        last = WorkflowHistoryEventFilterType.CLOSE_EVENT
        handover = 0
        async for event in handle.fetch_history_events(event_filter_type=last):
            assert event.HasField("workflow_execution_continued_as_new_event_attributes"), event
            given = event.workflow_execution_continued_as_new_event_attributes.input.payloads
            handover = sum(len(payload.data) for payload in given)
        return ContinuedRun(run_id, info.history_length, info.history_size_bytes, handover)
