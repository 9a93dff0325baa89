"""A PostgreSQL and a database for each file: what only waits for other files would slow those down."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from postgresql_server import PostgreSQL, postgresql_server


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSQL]:
    """A server without a database of ours."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(scope="module")
def database_url(postgresql: PostgreSQL) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"test_{uuid4().hex}"
    postgresql.copy_database("template1", name)
    yield postgresql.socket_url(name)
    postgresql.drop_database(name)
