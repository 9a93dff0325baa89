"""The table of what happens to an edge names tests that exist."""

import re
from pathlib import Path

TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")
FAULT = re.compile(r"\| (?P<fault>[^`]+) \| (?P<shown>`.+`) \|")


def test_each_fault_names_tests_that_exist(root: Path) -> None:
    lines = (root / "tests" / "real" / "edge" / "README.md").read_text("utf-8").splitlines()
    faults = [match for match in map(FAULT.fullmatch, lines) if match]
    assert len(faults) > 15
    missing = [
        f"{test['file']}::{test['name']}"
        for fault in faults
        for test in TEST.finditer(fault["shown"])
        if f"def {test['name']}(" not in _text(root / "tests" / test["file"])
    ]
    assert missing == []


def _text(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""
