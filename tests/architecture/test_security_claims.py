"""Security pages name tests that exist, for each claim that is not what a right means."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
HEADING = re.compile(r"\|.* shown by \|")
RIGHTS_ALONE = ("can |", "access to the database, ")
"""How claims begin that no test has to show: they follow from what the rights are."""
PAGES = {"security.md": 130, "crypto.md": 20, "edge.md": 10}
"""How many claims each page makes at least."""
OPENERS = {"decrypt", "load_pem_private_key", "load_der_private_key"}


def _claims(page: Path) -> Iterator[tuple[str, str]]:
    """Claims and what shows them, from every table whose last column is ``shown by``."""
    within = False
    for line in page.read_text("utf-8").splitlines():
        within = HEADING.fullmatch(line) is not None or (within and line.startswith("|"))
        if within and HEADING.fullmatch(line) is None and not line.startswith("|---"):
            claim, shown = line.strip("|").rsplit("|", 1)
            yield claim.strip(), shown


@pytest.mark.parametrize("page", PAGES)
def test_each_claim_names_tests_that_exist(root: Path, page: str) -> None:
    claims = list(_claims(root / "docs" / page))
    assert len(claims) > PAGES[page]
    for claim, shown in claims:
        tests = [(match["file"], match["name"]) for match in TEST.finditer(shown)]
        assert tests or claim.startswith(RIGHTS_ALONE), claim
        missing = [
            (file, name)
            for file, name in tests
            if not (root / file).exists() or f"def {name}(" not in (root / file).read_text("utf-8")
        ]
        assert missing == []


def test_each_table_of_the_security_page_says_what_shows_it(root: Path) -> None:
    lines = (root / "docs" / "security.md").read_text("utf-8").splitlines()
    headings = [heading for heading, line in pairwise(lines) if line.startswith("|---")]
    assert [heading for heading in headings if HEADING.fullmatch(heading) is None] == []


def test_the_product_decrypts_nothing(root: Path, product_modules: list[Path]) -> None:
    # `secret tls` reads a key of its user's, to see that it belongs to the certificate beside it. The authority of a
    # home reads its own.
    readers = ("edgewright/cli/commands/secret_types.py", "edgewright/cli/share/authority.py")
    keys = {(root / reader, "load_pem_private_key") for reader in readers}
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in product_modules
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in OPENERS and (path, node.attr) not in keys)
        or (isinstance(node, ast.Name) and node.id in OPENERS)
    ]
    assert found == []
