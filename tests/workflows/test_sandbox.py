"""The sandbox of the tests watches every module of the workflows: what is not deterministic is refused there."""

import pkgutil
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest
from sandbox import PASSED_THROUGH, loaded_inside, sandboxed
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

import workflows
from workflows.causes import WorkflowCauseInterceptor
from workflows.plugin import WORKFLOWS

MODULES = sorted(name for _, name, _ in pkgutil.walk_packages(workflows.__path__, "workflows."))
REACHED = ("workflows.plugin", "workflows.causes")
"""Loaded first, for what passes through there is not loaded any more."""
HISTORIES = Path(__file__).parents[1] / "replay" / "histories"
MISDEEDS = f"""
import datetime, os, random, secrets, socket, time, uuid
from datetime import datetime as moment
from pathlib import Path

MISDEEDS = [
    lambda: moment.now(),
    lambda: moment.utcnow(),
    lambda: datetime.date.today(),
    lambda: time.time(),
    lambda: time.monotonic(),
    lambda: random.random(),
    lambda: uuid.uuid4(),
    lambda: secrets.token_hex(),
    lambda: open({__file__!r}),
    lambda: Path({__file__!r}).read_text(),
    lambda: os.environ["PATH"],
    lambda: socket.socket(),
]
"""
Taint = Callable[[str, str], None]


@pytest.fixture
def taint(monkeypatch: pytest.MonkeyPatch) -> Taint:
    """Adds code to a module, for whoever loads it from now on."""
    load = SourceFileLoader.get_code

    def add(module: str, code: str) -> None:
        def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
            if fullname != module:
                return load(self, fullname)
            return compile(f"{Path(self.path).read_text('utf-8')}\n{code}\n", self.path, "exec")

        monkeypatch.setattr(SourceFileLoader, "get_code", get_code)

    return add


@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_deterministic_is_refused_in_each_module(module: str, taint: Taint) -> None:
    taint(module, MISDEEDS)
    with loaded_inside(*REACHED, module) as inside:
        assert len(inside.MISDEEDS) == MISDEEDS.count("lambda:")
        for misdeed in inside.MISDEEDS:
            with pytest.raises(RestrictedWorkflowAccessError):
                misdeed()


def test_all_modules_are_looked_at() -> None:
    files = {path.stem for path in Path(workflows.__path__[0]).rglob("*.py")} - {"__init__"}
    assert {module.rpartition(".")[2] for module in MODULES} == files


BREACHES = {
    "workflows.step_lane": "from datetime import date\ndef _clock(*_): return date.today()\nStepLane.take = _clock",
    "workflows.policies": "import random\ndef _chance(_): return random.random()\nstep_policy = _chance",
    "workflows.causes": "import time\ndef _clock(*_): return time.time()\n_Newest.take = _clock",
}


@pytest.mark.parametrize("module", BREACHES)
async def test_a_run_that_does_so_does_not_replay(module: str, taint: Taint) -> None:
    taint(module, BREACHES[module])
    history = HISTORIES / "0.1.0" / "commissioning.json"
    replayer = Replayer(
        workflows=WORKFLOWS,
        interceptors=[WorkflowCauseInterceptor()],
        workflow_runner=sandboxed(),
        data_converter=pydantic_data_converter,
        build_id="replay",
    )
    with pytest.raises(Exception, match="Cannot access"):
        await replayer.replay_workflow(WorkflowHistory.from_json(history.stem, history.read_text()))


@pytest.mark.parametrize("module", PASSED_THROUGH)
def test_what_passes_through_is_the_same_inside(module: str) -> None:
    outside = __import__(module, fromlist=["*"])
    with loaded_inside(module) as inside:
        assert inside is outside
