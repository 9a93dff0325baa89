"""The web application on a loopback port, and git with a configuration of its own."""

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from git_http_centre import Git, GitHttpCentre, Work, application

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_push import BY_HAND
from edgewright.domain.own_objects import NOTHING


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHttpCentre]:
    centre = GitHttpCentre(BareGitServer(tmp_path_factory.mktemp("centre")))
    server = uvicorn.Server(uvicorn.Config(application(centre), log_level="error", loop="asyncio"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    centre.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield centre
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def centre(serving: GitHttpCentre) -> GitHttpCentre:
    serving.pushes.clear()
    serving.statuses.clear()
    serving.starved.clear()
    serving.allow_push = True
    serving.folder = BY_HAND
    serving.own = NOTHING
    return serving


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Runs git as a person would, with a configuration of its own."""
    home = tmp_path / "home"
    home.mkdir()
    config = "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n"
    (home / ".gitconfig").write_text(config)
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "NO_PROXY": "*", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}

    def run(*arguments: str | Path, ok: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = ["git", *map(str, arguments)]
        done = subprocess.run(
            command, env=env, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )
        assert not ok or done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def work(centre: GitHttpCentre, git: Git, tmp_path: Path) -> Work:
    """A clone of a populated repository."""
    return Work(centre, git, tmp_path / "work")
