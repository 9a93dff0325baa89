"""The wheel ships everything that a checkout has for running, and nothing else."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

PACKAGES = ("activities", "api", "edgewright", "workflows")


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
