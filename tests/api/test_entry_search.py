"""A search reads all entries of an Application, and nobody else notices."""

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest
from gateway_centre import GatewayCentre, bearer

from api.routes import entry_search
from api.searches import AT_ONCE, OF_ONE_TOKEN
from edgewright.domain.entry_query import EntryQuery
from edgewright.domain.wellknown import APP_OBJECT_INFO
from edgewright.ports.operators import Permission

EDGE_CLUSTER = "f24d354d-abc1-4e32-98e1-0667b3e40b61"
SEARCH = f"/v1/app/{APP_OBJECT_INFO}/search"


async def named(admin: httpx.AsyncClient, name: str) -> str:
    uuid: str = (await admin.post("/v1/object", json={"class": EDGE_CLUSTER})).json()["uuid"]
    answer = await admin.put(f"/v1/app/{APP_OBJECT_INFO}/object/{uuid}", json={"name": name})
    assert answer.status_code == 201
    return uuid


async def test_entries_of_several_pages_are_searched_off_the_event_loop(
    admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_search, "PAGE", 2)
    mine = sorted([await named(admin, "ü-mine") for _ in range(5)])
    await named(admin, "another")
    threads: set[int] = set()
    matches = EntryQuery.matches

    def noting(query: EntryQuery, body: Any) -> bool:
        threads.add(threading.get_ident())
        return matches(query, body)

    monkeypatch.setattr(EntryQuery, "matches", noting)
    assert (await admin.get(SEARCH, params={"name": '"ü-mine"'})).json() == mine
    of_class = f"/v1/app/{APP_OBJECT_INFO}/class/{EDGE_CLUSTER}/search"
    found = await admin.get(of_class, params={"name": '"ü-mine"', "@called": "name", "@nothing": "no.where"})
    assert found.json() == [{"uuid": each, "called": "ü-mine", "nothing": None} for each in mine]
    assert threads
    assert threading.get_ident() not in threads


async def test_a_search_that_finds_too_much_is_refused_and_counted(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await named(admin, "x" * 500)
    monkeypatch.setattr(entry_search, "MOST_FOUND", 400)
    assert (await admin.get(SEARCH, params={"name": '"nobody"'})).json() == []
    refused = await admin.get(SEARCH, params={"@called": "name"})
    assert (refused.status_code, refused.json()["code"]) == (413, "search_too_large")
    scraped = centre.gateway.metrics.exposition(None, {}).decode()
    assert 'edgewright_limited_total{code="search_too_large"} 1.0' in scraped


async def test_searches_of_one_token_are_bounded(centre: GatewayCentre) -> None:
    token = await centre.token(Permission.READ)
    greedy, other = centre.client(bearer(token.text)), await centre.operator(Permission.READ)
    searches = centre.app.state.live.searches
    nobody = {"name": f'"{uuid4()}"'}
    async with AsyncExitStack() as others_running:
        for number in range(AT_ONCE):
            await others_running.enter_async_context(searches.turn(f"token-{number}"))
        waiting = [asyncio.create_task(greedy.get(SEARCH, params=nobody)) for _ in range(OF_ONE_TOKEN)]
        while len(searches) < AT_ONCE + OF_ONE_TOKEN:
            await asyncio.sleep(0.01)
        refused = await greedy.get(SEARCH, params=nobody)
        assert (refused.status_code, refused.json()["code"]) == (429, "searches_busy")
    assert (await other.get(SEARCH, params=nobody)).json() == []
    assert [answer.json() for answer in await asyncio.gather(*waiting)] == [[]] * OF_ONE_TOKEN
    assert not len(searches)
