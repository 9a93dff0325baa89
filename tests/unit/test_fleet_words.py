"""What Temporal's server says of an update is not taken for the workflow's own refusal."""

from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.errors import Conflict, EdgewrightError
from edgewright.messages.cluster import ChangeSecretsResult


class Handle:
    """A workflow whose first answer to an update is an error of this type."""

    def __init__(self, kind: str, said: str = "the server's words") -> None:
        self.asked: list[str] = []
        self._kind = kind
        self._said = said

    async def execute_update(self, *_: Any, id: str, **__: Any) -> ChangeSecretsResult:  # noqa: A002 - the SDK's name
        self.asked.append(id)
        if len(self.asked) == 1:
            raise WorkflowUpdateFailedError(ApplicationError(self._said, type=self._kind))
        return ChangeSecretsResult(settled=True)


def fleet_with(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> TemporalFleet:
    fleet = TemporalFleet(AsyncMock())
    monkeypatch.setattr(fleet, "_handle", lambda _: handle)
    return fleet


@pytest.mark.parametrize("kind", ["UnprocessedUpdate", "AcceptedUpdateCompletedWorkflow", "draining", "busy"])
async def test_an_update_that_no_run_has_answered_is_sent_again_under_its_id(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = Handle(kind)
    await fleet_with(handle, monkeypatch).change_secrets(uuid4(), [uuid4()])
    assert len(handle.asked) == 2
    assert len(set(handle.asked)) == 1


async def test_a_refusal_of_the_workflow_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Handle("step_not_waiting")
    with pytest.raises(Conflict):
        await fleet_with(handle, monkeypatch).change_secrets(uuid4(), [uuid4()])
    assert len(handle.asked) == 1


@pytest.mark.parametrize("kind", ["step_not_waiting", "reason_required", "not_applied_yet"])
@pytest.mark.parametrize("said", ["It does not wait.", "it does not wait"], ids=["this version", "up to 0.3.0"])
async def test_what_a_workflow_says_is_told_as_a_sentence(
    said: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EdgewrightError) as refusal:
        await fleet_with(Handle(kind, said), monkeypatch).change_secrets(uuid4(), [uuid4()])
    assert refusal.value.detail == "It does not wait."
