"""Each kind of event that the code tells is one that clients can know of."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from edgewright.domain.events import EVENT_KINDS

PROGRAMS = ("edgewright", "workflows", "activities", "api")


def kinds_made(file: Path, root: Path) -> Iterator[str]:
    """The kinds of the events that a file makes itself; mypy sees to those that go through a function."""
    tree = ast.parse(file.read_text("utf-8"))
    checked = {
        argument.arg
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in [*function.args.args, *function.args.kwonlyargs]
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id == "EventKind"
    }
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "NewEvent"):
            continue
        [kind] = [keyword.value for keyword in call.keywords if keyword.arg == "kind"]
        for each in [kind.body, kind.orelse] if isinstance(kind, ast.IfExp) else [kind]:
            if isinstance(each, ast.Constant):
                yield str(each.value)
            else:
                assert isinstance(each, ast.Name), f"{module}:{each.lineno}: say the kind in so many words"
                if each.id not in checked:
                    yield getattr(importlib.import_module(module), each.id)


def test_each_event_that_is_made_is_of_a_known_kind(root: Path) -> None:
    made = {
        kind for program in PROGRAMS for file in (root / program).rglob("*.py") for kind in kinds_made(file, root)
    }
    assert "git.pushed" in made
    assert made <= set(EVENT_KINDS), "add it to EventKind, and its line to the glossary"


def test_kinds_are_sorted_and_each_is_there_once() -> None:
    assert list(EVENT_KINDS) == sorted(set(EVENT_KINDS))
