"""A real gateway on a loopback port, and the command line run against it as a user runs it."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from command_line import CommandLine, ServedCentre, Terminal, served_centre
from gateway_centre import make_database

from edgewright.ports.operators import Permission


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("database") / "fresh.db"
    asyncio.run(make_database(file))
    return file


@pytest.fixture(autouse=True)
def quiet_gateway() -> Iterator[None]:
    """Keeps the gateway's log, which here is of the same process, off the command line's stdout."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


@pytest.fixture
def centre(tmp_path: Path, fresh_database: Path) -> Iterator[ServedCentre]:
    file = tmp_path / "edgewright.db"
    shutil.copy(fresh_database, file)
    with served_centre(file, tmp_path / "repositories") as served:
        yield served


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str | None]:
    """Nothing of the developer's own settings; a home without a gateway."""
    home = tmp_path / "home"
    home.mkdir()
    nothing: dict[str, str | None] = {name: None for name in os.environ if name.startswith("EDGEWRIGHT_")}
    config = str(tmp_path / "config")
    return {**nothing, "EDGEWRIGHT_HOME": str(home), "EDGEWRIGHT_CONFIG": config, "COLUMNS": "200"}


@pytest.fixture
def token_file(tmp_path: Path, centre: ServedCentre) -> Callable[..., str]:
    """Makes a file with a token that holds the given permissions; returns its path."""

    def make(*permissions: Permission) -> str:
        token = centre.do(centre.centre.token(*permissions))
        file = tmp_path / f"token-{token.id}"
        file.write_text(token.text + "\n")
        return str(file)

    return make


@pytest.fixture
def edgewright(
    centre: ServedCentre, token_file: Callable[..., str], environment: dict[str, str | None]
) -> CommandLine:
    """The command line of an administrator."""
    file = token_file(Permission.ADMIN)
    return CommandLine({**environment, "EDGEWRIGHT_URL": centre.url, "EDGEWRIGHT_TOKEN_FILE": file})


@pytest.fixture
def terminal(edgewright: CommandLine) -> Terminal:
    """The same administrator at a terminal."""
    return Terminal(edgewright.environment)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for upgrades looks again at once."""
    monkeypatch.setattr("edgewright.cli.commands.upgrading.FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("edgewright.cli.commands.upgrading.LONGEST_PAUSE_SECONDS", 0.005)
