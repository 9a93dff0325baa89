"""A store that every test gets for itself, and as many databases on it as there are processes.

To run the same suites on another server, add the fixture that makes a fresh store there to ``STORES``.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from database_stores import Clock, Store

from edgewright.adapters.database.config_store import SqlConfigStore
from edgewright.adapters.database.engine import Database, open_database
from edgewright.domain.default_entries import default_entries
from edgewright.ports.config_store import NewEntry

STORES = ["sqlite_store"]
"""Names of fixtures that give the URL of a fresh store: migrated, with the entries of a first start."""


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema and the entries of a first start, to copy for each test."""
    path = tmp_path_factory.mktemp("template") / "template.db"

    async def prepare() -> None:
        async with open_database(f"sqlite+aiosqlite:///{path}") as database:
            await database.migrate()
            entries = [NewEntry(one.app, one.object, one.klass, one.body) for one in default_entries("Edgewright")]
            await SqlConfigStore(database).install(entries)

    asyncio.run(prepare())
    return path


@pytest.fixture
def sqlite_store(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "edgewright.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture(params=STORES)
def database_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest_asyncio.fixture
async def open_store(database_url: str) -> AsyncIterator[Callable[..., Store]]:
    """Opens one more process's worth of ports on the same store; ``clock`` None: the database's own."""
    opened: list[Database] = []

    def open_one(clock: Clock | None = None) -> Store:
        database = open_database(database_url, clock=clock)
        opened.append(database)
        return Store(database, clock or Clock())

    yield open_one
    for database in opened:
        await database.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """One process on the store, with the database's own clock."""
    return open_store()


@pytest.fixture
def two(open_store: Callable[..., Store]) -> tuple[Store, Store]:
    """Two processes on the store."""
    return open_store(), open_store()


@pytest.fixture
def timed(open_store: Callable[..., Store]) -> Store:
    """One process on the store, and a clock that only the test moves."""
    return open_store(Clock())
