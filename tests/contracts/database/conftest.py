"""A store that every test gets for itself, and as many databases on it as there are processes.

SQLite, or with ``--store postgresql`` a real PostgreSQL of this session, which ``make test-real`` does.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from database_stores import DatabaseClock, Store
from postgresql_server import PostgreSQL, postgresql_server
from shared_statements import open_database

from edgewright.adapters.database.config_store.config_store import SqlConfigStore
from edgewright.adapters.database.engine.engine import Database
from edgewright.domain.default_entries import default_entries
from edgewright.ports.config_store import NewEntry

TEMPLATE = "edgewright_template"


async def first_start(url: str) -> None:
    """The schema, and the entries of a first start."""
    async with open_database(url) as database:
        await database.migrate()
        entries = [NewEntry(one.app, one.object, one.klass, one.body) for one in default_entries("Edgewright")]
        await SqlConfigStore(database).install(entries)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file as the first start leaves it, to copy for each test."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    asyncio.run(first_start(f"sqlite+aiosqlite:///{path}"))
    return path


@pytest.fixture
def sqlite_store(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "edgewright.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A server with a database as the first start leaves it, to copy for each test."""
    with postgresql_server() as server:
        server.copy_database("template1", TEMPLATE)
        asyncio.run(first_start(server.socket_url(TEMPLATE)))
        yield server


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture
def empty_postgresql(postgresql: PostgreSQL) -> Iterator[str]:
    yield from _copy(postgresql, "template1")


@pytest.fixture
def postgresql_store(postgresql: PostgreSQL) -> Iterator[str]:
    yield from _copy(postgresql, TEMPLATE)


def _copy(server: PostgreSQL, template: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    server.copy_database(template, name)
    yield server.socket_url(name)
    server.drop_database(name)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh store: migrated, with the entries of a first start."""
    url: str = request.getfixturevalue(f"{request.config.getoption('--store')}_store")
    return url


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database without a schema."""
    url: str = request.getfixturevalue(f"empty_{request.config.getoption('--store')}")
    return url


@pytest_asyncio.fixture
async def open_store(database_url: str) -> AsyncIterator[Callable[..., Store]]:
    """Opens one more process's worth of ports on the same store; ``clock`` None: the database's own."""
    opened: list[Database] = []

    def open_one(clock: DatabaseClock | None = None) -> Store:
        database = open_database(database_url, clock=clock)
        opened.append(database)
        return Store.on(database, clock)

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
    return open_store(DatabaseClock())
