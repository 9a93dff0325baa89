"""Doors translate: what a wish may be and what comes of it is decided by the use cases, or below them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

DOORS = ("activities/", "api/", "edgewright/agent/", "edgewright/cli/", "workflows/")
DECISIONS = {
    "chart_uuid": "finds the Helm chart template that a wish names",
    "check_cluster_name": "checks the name of a cluster",
    "decide_deletion": "decides what becomes of a deletion",
    "settings_of": "gives a cluster its settings",
    "change_values": "tries and writes the file of a Secret",
    "seal": "seals a value",
    "StagedChange": "makes a change to stage",
}
"""Names that no door needs: each belongs to a use case."""


def _decides(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a module imports such a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgewright."):
            yield from ((node.lineno, each.name) for each in node.names if each.name in DECISIONS)


def test_no_door_decides_what_a_use_case_decides(root: Path, product_modules: list[Path]) -> None:
    found = []
    for path in product_modules:
        place = path.relative_to(root).as_posix()
        if place.startswith(DOORS):
            tree = ast.parse(path.read_text("utf-8"))
            found += [f"{place}:{line}: {name} {DECISIONS[name]}" for line, name in _decides(tree)]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ["from edgewright.sealing import Plaintext, seal", "from edgewright.ports.secret_staging import StagedChange"],
)
def test_a_door_that_decides_would_be_found(line: str) -> None:
    assert [*_decides(ast.parse(line))]
