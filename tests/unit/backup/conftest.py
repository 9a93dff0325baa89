"""A home as the first start leaves it; nothing runs on it."""

import asyncio
import shutil
from pathlib import Path

import pytest
from stopped_home import StoppedHome


@pytest.fixture(scope="session")
def first_started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once, to copy for each test."""
    folder = tmp_path_factory.mktemp("template") / "home"
    asyncio.run(StoppedHome(folder, folder).make())
    return folder


@pytest.fixture
def home(first_started: Path, tmp_path: Path) -> StoppedHome:
    # A path as people have them, and worse: it becomes part of URLs.
    home = StoppedHome(tmp_path / "home of #1 [50% ü]", tmp_path / "backups")
    shutil.copytree(first_started, home.folder)
    return home
