"""The repository as the tests of this folder see it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("activities", "api", "edgewright", "workflows")
NOT_OURS = {"__pycache__", "node_modules"}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name in NOT_OURS:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def product_modules() -> list[Path]:
    """Every Python file that the wheel ships."""
    modules = [path for package in PACKAGES for path in _files(ROOT / package) if path.suffix == ".py"]
    return [*modules, ROOT / "worker.py"]


@pytest.fixture(scope="session")
def all_modules(product_modules: list[Path]) -> list[Path]:
    """Every Python file of the project."""
    folders = ("bench", "tests", "tools")
    others = [path for folder in folders for path in _files(ROOT / folder) if path.suffix == ".py"]
    return product_modules + others


@pytest.fixture(scope="session")
def documents() -> list[Path]:
    """Every Markdown file that people read, without the tests' own material."""
    return [*sorted(ROOT.glob("*.md")), *(path for path in _files(ROOT / "docs") if path.suffix == ".md")]


@pytest.fixture(scope="session")
def authored_files(all_modules: list[Path], documents: list[Path]) -> list[Path]:
    """Every text that somebody wrote: code, scripts, documents, configuration."""
    scripts = [path for folder in ("bin", "charts", ".ci") for path in _files(ROOT / folder)]
    resources = [
        path
        for package in PACKAGES
        for path in _files(ROOT / package)
        if path.suffix in {".sh", ".yaml", ".json", ".ini"}
    ]
    top = [ROOT / name for name in ("Makefile", "Dockerfile", "docker-compose.yml", "pyproject.toml")]
    return [*all_modules, *documents, *scripts, *resources, *top]
