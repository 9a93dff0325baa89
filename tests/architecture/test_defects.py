"""The page of defects that must not come back names tests that exist, for all fifteen."""

import re
from pathlib import Path

TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)`")


def test_each_defect_names_tests_that_exist(root: Path) -> None:
    lines = (root / "docs" / "defects.md").read_text("utf-8").splitlines()
    defects = [line for line in lines if re.match(r"\| \d+ \|", line)]
    assert [int(line.split("|")[1]) for line in defects] == list(range(1, 16))
    for line in defects:
        tests = [(match["file"], match["name"]) for match in TEST.finditer(line)]
        assert tests, line
        missing = [
            (file, name)
            for file, name in tests
            if not (root / file).exists() or f"def {name}(" not in (root / file).read_text("utf-8")
        ]
        assert missing == []


def test_an_upgrade_of_flux_is_claimed_only_with_a_test_that_shows_one(root: Path) -> None:
    lines = (root / "docs" / "defects.md").read_text("utf-8").splitlines()
    [here, shown_by] = next(line for line in lines if line.startswith("| 15 |")).split("|")[3:5]
    solved, _, open_ = here.partition("Not solved:")
    assert ("version" not in solved and "upgrade" not in solved) or "upgrade" in shown_by
    assert "upgrade" in open_ or "upgrade" in shown_by
