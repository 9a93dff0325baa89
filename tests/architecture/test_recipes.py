"""The recipes of CONTRIBUTING.md name the files that a change really touches, and at most five for each commit."""

import ast
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import pytest

MOST_FILES = 5
TITLES = {
    "A step of a cluster's life",
    "A field of an edge's status",
    "A route with its command",
    "A column",
    "A secret's way",
}
PACKAGES = ("activities/", "api/", "edgewright/", "workflows/", "worker.py")
_CHAPTER = re.compile(r"^## Recipes of at most five files\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^### (.+)\n", re.MULTILINE)
_WORDS = re.compile(r"\bWords: (`\w+`(?:, `\w+`)*)\.")
_ITEM = re.compile(r"^\d+\. `([^`\n]+)`", re.MULTILINE)
_EDGES = re.compile(r"^Also there: (.+?)\n\n", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class RecipeCommit:
    """One commit of a recipe.

    Args:
        words: identifiers of the change that is its example.
        files: those of the product that the commit changes.
        edges: files that have the words, too, each for a reason that the recipe gives.
    """

    words: tuple[str, ...]
    files: tuple[str, ...]
    edges: tuple[str, ...] = ()


def _commits(recipe: str) -> Iterator[RecipeCommit]:
    starts = [*_WORDS.finditer(recipe)]
    ends = [*(start.start() for start in starts[1:]), len(recipe)]
    for start, end in zip(starts, ends, strict=True):
        text = recipe[start.end() : end] + "\n\n"
        edges = [path for told in _EDGES.findall(text) for path in _CODE.findall(told)]
        yield RecipeCommit(tuple(_CODE.findall(start[1])), tuple(_ITEM.findall(text)), tuple(edges))


def _recipes(document: str) -> dict[str, list[RecipeCommit]]:
    """Title -> its commits."""
    chapter = _CHAPTER.search(document)
    assert chapter is not None
    parts = _TITLE.split(chapter[1])
    return {title: [*_commits(text)] for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def _vocabulary(source: str) -> frozenset[str]:
    """The names of a module, and the strings that are one word; not what stands in comments and sentences."""
    nodes = ast.walk(ast.parse(source))
    return frozenset(value for node in nodes for _, value in ast.iter_fields(node) if isinstance(value, str))


def _faults(commits: list[RecipeCommit], product: Mapping[str, AbstractSet[str]]) -> list[str]:
    """What is wrong with a recipe. ``product``: the files that there are, and the words of each."""
    faults = [] if commits else ["it has no example"]
    for commit in commits:
        if not 0 < len(commit.files) <= MOST_FILES:
            faults.append(f"{len(commit.files)} files for {commit.words}")
        if len(set(commit.files)) < len(commit.files):
            faults.append(f"a file twice for {commit.words}")
        faults += [f"no file {path}" for path in (*commit.files, *commit.edges) if path not in product]
    for words in {commit.words for commit in commits}:
        of_these = [commit for commit in commits if commit.words == words]
        named = {path for commit in of_these for path in (*commit.files, *commit.edges)}
        found = {path for path, vocabulary in product.items() if vocabulary & set(words)}
        faults += [f"{path} has {words}, and the recipe does not say so" for path in sorted(found - named)]
        faults += [f"{path} has none of {words}" for path in sorted(named - found)]
    return faults


@pytest.fixture(scope="module")
def recipes(root: Path) -> dict[str, list[RecipeCommit]]:
    return _recipes((root / "CONTRIBUTING.md").read_text("utf-8"))


@pytest.fixture(scope="module")
def product(root: Path, product_modules: list[Path]) -> dict[str, frozenset[str]]:
    return {path.relative_to(root).as_posix(): _vocabulary(path.read_text("utf-8")) for path in product_modules}


def test_there_is_a_recipe_for_each_kind_of_change(recipes: dict[str, list[RecipeCommit]]) -> None:
    assert set(recipes) == TITLES


@pytest.mark.parametrize("title", sorted(TITLES))
def test_a_recipe_names_at_most_five_files_and_all_that_its_example_is_in(
    title: str, recipes: dict[str, list[RecipeCommit]], product: dict[str, frozenset[str]]
) -> None:
    assert _faults(recipes[title], product) == []


def test_no_file_of_the_product_hides_in_the_line_of_tests_and_documents(root: Path) -> None:
    lines = re.findall(
        r"^With it: (.+?)\n\n", (root / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(lines) >= len(TITLES)
    assert [path for line in lines for path in _CODE.findall(line) if path.startswith(PACKAGES)] == []


PRODUCT = {
    "one.py": {"nonce"},
    "two.py": {"nonce", "other"},
    "three.py": {"other"},
    **{f"more{number}.py": {"many"} for number in range(6)},
}


@pytest.mark.parametrize(
    ("commits", "fault"),
    [
        ([], "it has no example"),
        ([RecipeCommit(("nonce",), ())], "0 files for ('nonce',)"),
        ([RecipeCommit(("many",), tuple(f"more{n}.py" for n in range(6)))], "6 files for ('many',)"),
        ([RecipeCommit(("nonce",), ("one.py", "one.py", "two.py"))], "a file twice for ('nonce',)"),
        ([RecipeCommit(("nonce",), ("one.py", "two.py", "gone.py"))], "no file gone.py"),
        ([RecipeCommit(("nonce",), ("one.py",))], "two.py has ('nonce',), and the recipe does not say so"),
        ([RecipeCommit(("nonce",), ("one.py", "two.py", "three.py"))], "three.py has none of ('nonce',)"),
        ([RecipeCommit(("nonce",), ("one.py", "two.py"), ("three.py",))], "three.py has none of ('nonce',)"),
    ],
)
def test_a_recipe_that_is_out_of_date_would_be_found(commits: list[RecipeCommit], fault: str) -> None:
    assert fault in _faults(commits, PRODUCT)


def test_commits_of_one_example_share_its_files() -> None:
    halves = [RecipeCommit(("nonce",), ("one.py",)), RecipeCommit(("nonce",), ("two.py",))]
    assert _faults(halves, PRODUCT) == []
    assert _faults([RecipeCommit(("nonce",), ("one.py",), ("two.py",))], PRODUCT) == []


def test_a_recipe_is_read_as_people_read_it() -> None:
    text = """## Recipes of at most five files

### A column

First the one. Words: `nonce`, `NONCE`.

1. `one.py`, or `none.py`: a reason,
   that names `two.py`.
2. `two.py`: another.

Also there: `three.py` and
`four.py`, which are old.

With it: `tests/x.py`.

Then the other. Words: `other`.

1. `three.py`.

## Other recipes
"""
    first = RecipeCommit(("nonce", "NONCE"), ("one.py", "two.py"), ("three.py", "four.py"))
    assert _recipes(text) == {"A column": [first, RecipeCommit(("other",), ("three.py",))]}


def test_sentences_and_comments_are_no_words() -> None:
    source = '"""Of undelete."""\nhint = "use undelete"  # undelete\nverbs = ["recreate"]\ndef pause() -> None: ...\n'
    words = _vocabulary(source)
    assert "undelete" not in words
    assert {"recreate", "pause", "hint"} <= words
