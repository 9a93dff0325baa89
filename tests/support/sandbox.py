"""The SDK's sandbox, in which what is not deterministic fails: no clock, no chance, no file within a workflow.

Tests run and replay workflows in it. Every module of ``workflows`` is loaded inside, where each access is watched.
What passes through is loaded once and is not watched: ``tests/architecture/test_determinism.py`` shows that it is
pure. The worker runs workflows without the sandbox, which costs 16 ms and 300 kB for each of them (ADR 8).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

from temporalio.converter import SerializationContext
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.worker.workflow_sandbox._importer import Importer
from temporalio.worker.workflow_sandbox._restrictions import RestrictionContext
from temporalio.worker.workflow_sandbox._runner import _Instance
from temporalio.workflow import _Definition

PASSED_THROUGH = (
    "edgewright.domain",  # pure decisions on frozen types; 700 kB and 30 ms if each workflow loaded its own
    "edgewright.messages",  # frozen models, which are built anew, validators and all, whenever they are loaded
)
"""Beside what the SDK passes through: itself, pydantic, and the standard library, whose impure parts it guards."""
RESTRICTIONS = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
_VALIDATED: set[type] = set()


def sandboxed() -> WorkflowRunner:
    """A runner with the sandbox."""
    return _Sandbox(restrictions=RESTRICTIONS, runner_class=Inside)


@contextmanager
def loaded_inside(*names: str) -> Iterator[ModuleType]:
    """Modules as a workflow has them, in a sandbox of their own, the last one given; the block runs as the code of a
    workflow does."""
    context = RestrictionContext()
    with Importer(RESTRICTIONS, context).applied():
        loaded = [_again(name) for name in names]
        context.is_runtime = True
        yield loaded[-1]


def _again(name: str) -> ModuleType:
    return __import__(name, fromlist=["*"])


class Inside(UnsandboxedWorkflowRunner):
    """Loaded in the sandbox itself: takes the interceptors of workflows from modules that are loaded there, too."""

    def create_instance(self, det: Any) -> WorkflowInstance:
        own = [getattr(_again(each.__module__), each.__name__) for each in det.interceptor_classes]
        return super().create_instance(replace(det, interceptor_classes=own))


class _Run(_Instance):
    """All of a workflow's code runs in the sandbox, and of the SDK's all but one question, asked for each payload."""

    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:
        """The identity of a run or an activity, from what the SDK has in memory; no code of a workflow is asked."""
        held: Any = self.globals_and_locals["__temporal_in_sandbox"]
        inside: WorkflowInstance = held.instance
        return inside.get_serialization_context(command_info)


class _Sandbox(SandboxedWorkflowRunner):
    """Looks once in a process whether a workflow can be loaded: a test starts workers of its own."""

    def prepare_workflow(self, defn: _Definition) -> None:
        if defn.cls not in _VALIDATED:
            super().prepare_workflow(defn)
            _VALIDATED.add(defn.cls)

    def create_instance(self, det: Any) -> _Run:
        return _Run(det, self.runner_class, self.restrictions)
