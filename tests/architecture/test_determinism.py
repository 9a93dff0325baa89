"""What a workflow reaches is pure: neither the sandbox of the tests nor the worker watches what passes through it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sandbox
from sandbox import PASSED_THROUGH

PURE = {
    "collections",
    "contextlib",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "itertools",
    "json",
    "pydantic",
    "pydantic_core",
    "re",
    "typing",
}
"""Modules of which everything gives the same answer each time."""
PURE_PARTS = {
    "asyncio": {"CancelledError", "Task", "create_task", "gather"},
    "datetime": {"UTC", "datetime", "time", "timedelta", "tzinfo"},
    "temporalio": {"workflow"},
    "uuid": {"UUID", "uuid5"},
}
"""What may be used of other modules; members of classes are judged by name."""
OF_THE_SDK = "temporalio."
"""Its modules are made for workflows."""
CLOCKS = {"now", "today", "utcnow", "uuid1", "uuid4"}
"""Members that read a clock or chance, whosever they are."""
ZONED = {"astimezone": 1, "fromtimestamp": 2}
"""Methods that take the zone of the machine unless they are given one: with that many arguments."""
OF_THE_RUN = {"workflow.now", "workflow.uuid4", "workflow.random"}
"""The same in a form that replays."""
BUILTINS = {"__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"}
UNSAFE = {"imports_passed_through", "sandbox_unrestricted", "sandbox_import_notification_policy"}
"""Ways around the sandbox; what passes through is listed in one place."""


def _path(root: Path, name: str) -> Path | None:
    plain = root.joinpath(*name.split("."))
    return next((path for path in (plain / "__init__.py", plain.with_suffix(".py")) if path.is_file()), None)


def _named(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported, and what may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "relative imports are not followed"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[: length + 1]) for length in range(len(parts)))


def _reached(root: Path) -> dict[str, ast.Module]:
    """The modules of the workflows and all of ours that they import, directly or not."""
    found: dict[str, ast.Module] = {}
    paths = (root / "workflows").rglob("*.py")
    waiting = [".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    while waiting:
        name = waiting.pop()
        path = _path(root, name)
        if name in found or path is None:
            continue
        found[name] = ast.parse(path.read_text("utf-8"))
        waiting += [parent for each in _named(found[name]) for parent in _parents(each)]
    return found


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in {"edgewright", "workflows"}


def _imports(tree: ast.Module) -> Iterator[str]:
    """What is imported that may not be pure."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (name for name in names if not _is_ours(name) and name not in PURE | {"asyncio"})
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if not (_is_ours(module) or module.partition(".")[0] in PURE or module.startswith(OF_THE_SDK)):
                parts = PURE_PARTS.get(module, set())
                yield from (f"{module}.{alias.name}" for alias in node.names if alias.name not in parts)


def _uses(tree: ast.Module) -> Iterator[str]:
    """What is named that may not be pure."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            given = len(node.args) + len(node.keywords)
            if (isinstance(node.func, ast.Name) and called in BUILTINS) or given < ZONED.get(called, 0):
                yield ast.unparse(node.func)
        elif isinstance(node, ast.Attribute):
            whole = ast.unparse(node)
            of_asyncio = whole.startswith("asyncio.") and node.attr not in PURE_PARTS["asyncio"]
            if of_asyncio or node.attr in UNSAFE or (node.attr in CLOCKS and whole not in OF_THE_RUN):
                yield whole
        elif isinstance(node, ast.keyword) and node.arg == "sandboxed":
            yield node.arg


def _impurities(tree: ast.Module) -> list[str]:
    return sorted([*_imports(tree), *_uses(tree)])


def test_all_that_workflows_reach_is_pure(root: Path) -> None:
    found = {name: impurities for name, tree in _reached(root).items() if (impurities := _impurities(tree))}
    assert found == {}


def test_what_is_not_of_the_workflows_passes_through_and_is_reached(root: Path) -> None:
    """Anything else would be loaded anew for each workflow, or is passed through for nothing."""
    others = {name for name in _reached(root) if name.partition(".")[0] != "workflows"} - {"edgewright"}
    used = {passed for name in others for passed in _parents(name) if passed in PASSED_THROUGH}
    assert {name for name in others if not set(_parents(name)) & set(PASSED_THROUGH)} == set()
    assert set(PASSED_THROUGH) - used == set()


def test_each_part_that_passes_through_has_its_reason_on_its_line() -> None:
    lines = Path(sandbox.__file__ or "").read_text("utf-8").splitlines()
    for passed in PASSED_THROUGH:
        [line] = [line for line in lines if line.strip().startswith(f'"{passed}"')]
        assert len(line.partition("# ")[2]) > len("some reason"), passed


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "import random",
        "import os",
        "import datetime",
        "import uuid",
        "import logging",
        "from pathlib import Path",
        "from importlib import resources",
        "from time import monotonic",
        "from uuid import uuid4",
        "def f(): import secrets",
        "f = datetime.now()",
        "f = datetime.now",
        "f = step_lane.datetime.now(UTC)",
        "f = date.today()",
        "f = datetime.utcnow()",
        "f = uuid.uuid4()",
        "f = moment.astimezone()",
        "f = datetime.fromtimestamp(0)",
        "f = open('x')",
        "f = hash('x')",
        "f = asyncio.to_thread(g)",
        "f = asyncio.sleep(1)",
        "with workflow.unsafe.imports_passed_through(): from workflows import verbs",
        "with workflow.unsafe.sandbox_unrestricted(): g()",
        "@workflow.defn(sandboxed=False)\nclass F: ...",
    ],
)
def test_what_is_not_pure_would_be_found(code: str) -> None:
    assert len(_impurities(ast.parse(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "from datetime import UTC, datetime",
        "from edgewright.domain import cluster",
        "from temporalio.exceptions import ActivityError",
        "f = workflow.now()",
        "f = workflow.uuid4()",
        "f = asyncio.create_task(g())",
        "f = self.opened.open()",
        "f = moment.astimezone(UTC)",
    ],
)
def test_what_is_pure_is_not_found(code: str) -> None:
    assert _impurities(ast.parse(code)) == []


def test_what_is_imported_of_imported_modules_is_reached(root: Path) -> None:
    reached = set(_reached(root))
    assert {
        "workflows.causes",
        "workflows.signals",
        "workflows.verbs",
        "edgewright.domain.check_in",
        "edgewright.messages.steps",
    } <= reached
    assert "edgewright.domain.default_entries" not in reached, "it reads files, so no workflow may reach it"
