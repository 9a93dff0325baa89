"""A gateway that is killed between the wish for an upgrade and the nudge to its workflow: the sweep goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from database_stores import Store
from lone_gateway import lone_gateway
from memory_fleet import MemoryFleet
from shared_statements import open_database
from upgraded_store import OLD, committed, heard

from activities.composition import upkeep_of
from edgewright.cli.home import prepare_home
from edgewright.cli.initialise import initialise_storage
from edgewright.domain.container_images import repository_of
from edgewright.domain.upgrades import Component
from edgewright.settings import Settings

DIES = """
import os, signal
import api.nudges as module
def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
module.Nudges.nudge = dies
"""
IMAGE = f"{repository_of(OLD.image)}:0.9.0"
OFFER = {"EDGEWRIGHT_AGENT_IMAGE": IMAGE}


@asynccontextmanager
async def store_of(home: Path) -> AsyncIterator[Store]:
    """The database of a home, as the worker opens it."""
    async with open_database(Settings(home=home).effective_database_url) as database:
        yield Store.on(database)


async def attached(home: Path) -> UUID:
    """A cluster of which nothing is left to do, and whose edge has reported."""
    async with store_of(home) as store:
        return await heard(store)


async def swept(home: Path, cluster: UUID) -> bool:
    """Whether the sweep tells the workflow of the cluster, which runs, that something is wanted."""

    async def commit(_cluster: UUID, _requests: object) -> None:
        raise AssertionError("nobody has sent a secret")

    async with store_of(home) as store:
        fleet = MemoryFleet(store.wishes, store.directory, store.steps, commit, nudged=[(cluster, False)])
        await upkeep_of(store, fleet).nudge()
        return (cluster, True) in fleet.nudged


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_what_a_killed_gateway_was_asked_for_is_taken_on_by_the_sweep(method: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare_home(home)
    asyncio.run(initialise_storage(Settings(home=home)))
    cluster = asyncio.run(attached(home))
    path, wish = f"/v1/cluster/{cluster}/upgrade", {"component": "agent"}
    if method == "DELETE":
        with lone_gateway(home, instead=OFFER) as gateway:
            assert gateway.api("POST", path, json=wish).status_code == 202
        asyncio.run(taken(home, cluster))
    assert asyncio.run(swept(home, cluster)) is False, "nothing is left to do"

    with lone_gateway(home, begins_with=DIES, instead=OFFER) as gateway:
        with pytest.raises(httpx.TransportError):
            gateway.api(method, path, json=wish if method == "POST" else None)
        assert gateway.process.wait(20) != 0
    row = asyncio.run(row_of(home, cluster))
    assert row == ((Component.AGENT, IMAGE) if method == "POST" else (None, OLD.image))
    assert asyncio.run(swept(home, cluster)) is True

    with lone_gateway(home, instead=OFFER) as gateway:
        again = gateway.api(method, path, json=wish if method == "POST" else None)
        assert again.status_code == (200 if method == "POST" else 409), again.text
        [upgrade] = gateway.api("GET", "/v1/upgrade").json()["items"]
        kinds = [each["kind"] for each in gateway.api("GET", f"/v1/cluster/{cluster}/timeline").json()["items"]]
    assert upgrade["state"] == ("under_way" if method == "POST" else "cancelled")
    assert kinds.count("upgrade.begun") == 1
    assert kinds.count("upgrade.cancelled") == (method == "DELETE")


async def taken(home: Path, cluster: UUID) -> None:
    """The workflow has committed what is wanted."""
    async with store_of(home) as store:
        await committed(store, cluster)


async def row_of(home: Path, cluster: UUID) -> tuple[Component | None, str | None]:
    """The component that is being upgraded, and the agent's image that is wanted."""
    async with store_of(home) as store:
        row = await store.row(cluster)
        return row.upgrading, None if row.wanted.agent is None else row.wanted.agent.image
