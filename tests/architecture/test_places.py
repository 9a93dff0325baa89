"""Which Secret or value a text means is read in one place, ``secret_place``; inside, places are passed and no texts
(``test_types``)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SPLIT = {"partition", "rpartition", "rsplit", "split"}
MEANT = {"place", "places", "secret", "secrets"}
ELSEWHERE = {
    "edgewright/agent/resealing.py": "the agent is small, and knows no domain",
    "edgewright/cli/commands/secret_sending.py": "what somebody types is refused with the form that it has to have",
}
"""File → why it splits a text itself."""


def _words(node: ast.expr) -> set[str]:
    """The words of all names in an expression but those of constants."""
    names = [
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    ]
    return {word for name in names if not name.isupper() for word in name.split("_")}


def _splits(tree: ast.Module) -> Iterator[int]:
    """Lines that take the text of a place apart."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr=how), args=[ast.Constant(value="/"), *_]) if (
                how in SPLIT and _words(text) & MEANT
            ):
                yield node.lineno


def test_the_text_of_a_place_is_taken_apart_in_one_function(root: Path, product_modules: list[Path]) -> None:
    found = {
        path.relative_to(root).as_posix(): lines
        for path in product_modules
        if (lines := [*_splits(ast.parse(path.read_text("utf-8")))])
    }
    assert found.keys() == ELSEWHERE.keys()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('secrets = {"/".join(place.split("/")[:2]) for place in listed}', True),
        ('namespace, _, name = said.secret.partition("/")', True),
        ('reserved(SecretReference(*lost_place.rsplit("/", 1)))', True),
        ('namespace, _, file = path.removeprefix(SECRETS_FOLDER).partition("/")', False),
        ('group, _, version = api_version.partition("/")', False),
        ('name = secret.partition("=")', False),
    ],
)
def test_a_line_that_takes_one_apart_would_be_found(line: str, found: bool) -> None:
    assert bool([*_splits(ast.parse(line))]) is found
