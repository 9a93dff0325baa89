"""The SDK's sandbox, in which what is not deterministic fails: no clock, no chance, no file within a workflow.

Tests run workflows in it; the worker does not, because it loads every module of a workflow anew for each run (ADR 8).
"""

from typing import Any

from temporalio.converter import SerializationContext
from temporalio.worker import WorkflowInstance, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.worker.workflow_sandbox._runner import _Instance
from temporalio.workflow import _Definition

PASSED_THROUGH = (
    "edgewright",  # frozen types and pure decisions; reloading them costs 700 KB and 30 ms per workflow
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
)
RESTRICTIONS = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
_VALIDATED: set[type] = set()


def sandboxed() -> WorkflowRunner:
    """A runner with the sandbox."""
    return _Sandbox(restrictions=RESTRICTIONS)


class _Run(_Instance):
    """All of a workflow's code runs in the sandbox, and of the SDK's all but one question, asked for each payload."""

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:
        """The identity of a run or an activity, from what the SDK has in memory; no code of a workflow is asked."""
        inside: WorkflowInstance = self.globals_and_locals["__temporal_in_sandbox"].instance
        return inside.get_serialization_context(command_info)


class _Sandbox(SandboxedWorkflowRunner):
    """Looks once in a process whether a workflow can be loaded: a test starts workers of its own."""

    def prepare_workflow(self, defn: _Definition) -> None:
        if defn.cls not in _VALIDATED:
            super().prepare_workflow(defn)
            _VALIDATED.add(defn.cls)

    def create_instance(self, det: Any) -> _Run:
        return _Run(det, self.runner_class, self.restrictions)
