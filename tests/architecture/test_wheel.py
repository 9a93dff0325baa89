"""The wheel ships everything that a checkout has for running, and nothing else."""

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

PACKAGES = ("activities", "api", "edgewright", "workflows")
PROGRAMS = {
    "api.__main__",
    "api.openapi",
    "edgewright.agent.__main__",
    "edgewright.agent.detacher",
    "edgewright.cli.entry",
    "edgewright.cli.web_ui",
    "worker",
}
"""What people, containers and other programs of ours start."""
MIGRATIONS = "edgewright.adapters.database.migrations."
"""Alembic finds and runs what is below."""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the pinned build backend of the environment; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=root,
        check=True,
        capture_output=True,
        timeout=100,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def shipped(wheel: Path) -> set[str]:
    """The paths inside the wheel, without its own metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as an installation would lay it out."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_the_wheel_ships_each_file_of_the_packages_the_charts_and_the_worker(root: Path, shipped: set[str]) -> None:
    expected = {"worker.py"}
    for package in PACKAGES:
        expected |= {path.relative_to(root).as_posix() for path in _files_below(root / package)}
    expected |= {f"edgewright/{path.relative_to(root).as_posix()}" for path in _files_below(root / "charts")}
    assert shipped == expected
    assert any(name.startswith("edgewright/charts/edge-cluster/") for name in shipped)
    assert any(name.startswith("edgewright/bootstrap/") and name.endswith(".sh") for name in shipped)


def test_the_wheel_carries_licence_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "Apache License" in texts["LICENSE"]
    assert "edgewright = edgewright.cli.entry:main" in texts["entry_points.txt"]
    assert Parser().parsestr(texts["METADATA"])["Requires-Python"] == ">=3.11"


def test_an_installed_wheel_runs_from_its_own_files(root: Path, unpacked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import activities, api, edgewright.cli.main as cli, workflows; print(cli.__file__)"],
        cwd=unpacked,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(unpacked)
    assert (unpacked / "edgewright" / "charts").is_dir()
    assert not (unpacked / "edgewright" / "charts").is_symlink()


def _modules(folder: Path) -> dict[str, ast.Module]:
    """Modules of a folder that have code; a package that only marks a folder has none."""
    paths = [path.relative_to(folder) for path in _files_below(folder) if path.suffix == ".py"]
    parsed = {path: ast.parse((folder / path).read_text("utf-8")) for path in paths}
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): tree
        for path, tree in parsed.items()
        if any(not isinstance(statement, ast.Expr) for statement in tree.body)
    }


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules that are imported, what may be one, and the packages they are in."""
    for node in ast.walk(tree):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "relative imports are not followed"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: length + 1]) for length in range(len(parts)))


def _left_over(folder: Path) -> set[str]:
    """Modules that no program imports, directly or not."""
    modules = _modules(folder)
    waiting = [name for name in modules if name in PROGRAMS or name.startswith(MIGRATIONS)]
    reached = set[str]()
    while waiting:
        name = waiting.pop()
        if name in modules and name not in reached:
            reached.add(name)
            waiting += _imported(modules[name])
    return set(modules) - reached


def test_the_wheel_has_no_fake_and_nothing_else_that_only_tests_use(unpacked: Path) -> None:
    assert _modules(unpacked).keys() >= PROGRAMS
    assert _left_over(unpacked) == set()


def test_a_fake_would_be_found_in_the_wheel(tmp_path: Path) -> None:
    adapters = tmp_path / "edgewright" / "adapters"
    adapters.mkdir(parents=True)
    (tmp_path / "worker.py").write_text("from edgewright.adapters import bare\n")
    (adapters / "__init__.py").write_text('"""What keeps the ports."""\n')
    (adapters / "bare.py").write_text("class BareGitServer: ...\n")
    (adapters / "memory.py").write_text("from edgewright.adapters import bare\n\nclass MemoryGitServer: ...\n")
    assert _left_over(tmp_path) == {"edgewright.adapters.memory"}
