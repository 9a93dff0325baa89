"""A small file that only one other imports is a part of that other."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SMALL = 60
"""Lines. A file with fewer joins its only importer."""
APART = {
    "api/connections/large_blocks.py": "The benchmark needs it without what `api/__main__.py` does when loaded.",
    "api/connections/proxied.py": "It brings FastAPI, without which the guard of the web UI reads `callers.py`.",
    "api/connections/tls.py": "`protocol.py` would be longer than a file may be.",
    "workflows/plugin.py": "Tests load it inside the sandbox, which `worker.py` cannot enter.",
    "workflows/sweep.py": "It is a workflow of its own; `plugin.py` only lists workflows.",
}
"""Small files that stay, each with its reason."""


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(path: str, tree: ast.Module) -> Iterator[str]:
    """Names of what a file imports, which are modules or are in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: an import from a relative place"
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _misplaced(sources: Mapping[str, str]) -> dict[str, str]:
    """Each small file with its only importer. Packages, programs and migrations are imported otherwise."""
    paths = {_name(path): path for path in sources}
    importers = defaultdict(set)
    for path, source in sources.items():
        for name in _imported(path, ast.parse(source)):
            module = name if name in paths else name.rpartition(".")[0]
            if module in paths:
                importers[paths[module]].add(path)
    return {
        path: next(iter(importers[path]))
        for path, source in sources.items()
        if len(source.splitlines()) < SMALL
        and len(importers[path]) == 1
        and "/migrations/" not in path
        and not path.endswith(("__init__.py", "__main__.py"))
    }


def test_a_small_file_has_more_than_one_importer_or_a_reason(root: Path, product_modules: list[Path]) -> None:
    sources = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in product_modules}
    found = _misplaced(sources)
    assert {path: importer for path, importer in found.items() if path not in APART} == {}
    assert set(APART) - set(found) == set(), "nobody would ask why these stay apart: take them off the list"


def test_a_small_file_with_one_importer_would_be_found() -> None:
    long = "x = 1\n" * SMALL
    sources = {
        "api/app.py": "from api import lone\nfrom api.shared import x\nfrom api import long, parts\n",
        "api/other.py": "import api.shared\n",
        **{f"api/{name}.py": "x = 1\n" for name in ("lone", "shared", "unused", "parts/__init__")},
        "api/long.py": long,
    }
    assert _misplaced(sources) == {"api/lone.py": "api/app.py"}
