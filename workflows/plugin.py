"""What a worker needs to run the workflows: the classes, and a sandbox that lets our pure modules through."""

from collections.abc import Sequence

from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from workflows.managed_cluster import ManagedCluster
from workflows.sweep import Sweep

WORKFLOWS: Sequence[type] = (ManagedCluster, Sweep)

PASSED_THROUGH = (
    "edgewright",  # frozen types and pure decisions; reloading them costs 700 KB and 30 ms per workflow
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
)


def workflow_runner() -> WorkflowRunner:
    """The sandboxed runner."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
