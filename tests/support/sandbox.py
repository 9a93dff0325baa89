"""The SDK's sandbox, in which what is not deterministic fails: no clock, no chance, no file within a workflow.

Tests run workflows in it; the worker does not, because it loads every module of a workflow anew for each run (ADR 8).
"""

from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH = (
    "edgewright",  # frozen types and pure decisions; reloading them costs 700 KB and 30 ms per workflow
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
)


def sandboxed() -> WorkflowRunner:
    """A runner with the sandbox."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
