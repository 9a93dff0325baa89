"""The threat model names tests that exist, for each claim that is not what a right means."""

import re
from pathlib import Path

TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
CLAIM = re.compile(r"\| (?P<kind>can|cannot|ends when) \| (?P<claim>.+) \| (?P<shown>.+) \|")


def test_each_claim_names_tests_that_exist(root: Path) -> None:
    lines = (root / "docs" / "security.md").read_text("utf-8").splitlines()
    claims = [match for match in map(CLAIM.fullmatch, lines) if match]
    assert len(claims) > 30
    for claim in claims:
        tests = [(match["file"], match["name"]) for match in TEST.finditer(claim["shown"])]
        assert tests or claim["kind"] == "can", claim["claim"]
        missing = [
            (file, name)
            for file, name in tests
            if not (root / file).exists() or f"def {name}(" not in (root / file).read_text("utf-8")
        ]
        assert missing == []
