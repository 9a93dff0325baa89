"""Two gateways on one PostgreSQL are one Edgewright."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from gateway_centre import EdgeCredentials, gateway_centre
from lone_gateway import LoneGateway, lone_gateway
from loopback import PLAIN
from reporting_agent import certificate
from supervised import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]  # PostgreSQL and two gateways start inside the first

LONGEST_HELD = 50.0
"""Seconds that an agent offers to wait for an answer."""
AT_ONCE = 20.0
"""Seconds until news reach a waiting edge, at most. They take less than one; a busy machine may add to that."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[tuple[LoneGateway, LoneGateway]]:
    home = tmp_path_factory.mktemp("two") / "home"
    with lone_gateway(home, database_url=database_url) as one, lone_gateway(home, database_url=database_url) as other:
        yield one, other


def asked(gateway: LoneGateway, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{gateway.url}/v1/cluster", headers=headers, **PLAIN, timeout=30).status_code


def is_refused(gateway: LoneGateway, token: str) -> bool:
    return asked(gateway, token) == 401


def test_a_revoked_token_is_refused_by_both_within_a_second(two: tuple[LoneGateway, LoneGateway]) -> None:
    one, other = two
    for place, elsewhere in ((one, other), (other, one)):
        made = place.api("POST", "/v1/token", json={"name": "short-lived", "permissions": ["read"]}).json()
        # Both know it, so that one that keeps what it knows would have to forget it.
        assert [asked(gateway, made["token"]) for gateway in two for _ in range(3)] == [200] * 6
        assert place.api("DELETE", f"/v1/token/{made['id']}").is_success
        revoked = time.monotonic()
        assert asked(place, made["token"]) == 401
        eventually(partial(is_refused, elsewhere, made["token"]), seconds=30)
        # The promise is a second on any machine; asking itself may take longer on a busy one.
        time.sleep(max(0.0, revoked + 1.0 - time.monotonic()))
        assert [asked(gateway, made["token"]) for gateway in two] == [401, 401]


def test_one_of_many_who_want_a_name_at_both_gateways_gets_it(two: tuple[LoneGateway, LoneGateway]) -> None:
    def create(number: int) -> int:
        return two[number % 2].api("POST", "/v1/cluster", json={"name": "press-shop"}).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(8)))
    assert sorted(answers) == [201] + [409] * 7
    listed = [gateway.api("GET", "/v1/cluster", params={"name": "press-shop"}).json()["items"] for gateway in two]
    assert [len(items) for items in listed] == [1, 1]


def test_what_one_writes_the_other_reads_at_once(two: tuple[LoneGateway, LoneGateway]) -> None:
    one, other = two
    for number in range(10):
        uuid = one.api("POST", "/v1/cluster", json={"name": f"line-{number}"}).json()["uuid"]
        assert other.api("GET", f"/v1/cluster/{uuid}").json()["name"] == f"line-{number}"


@pytest.fixture(scope="module")
def edges(two: tuple[LoneGateway, LoneGateway], database_url: str) -> list[EdgeCredentials]:
    """Two edges of clusters that are commissioned: no worker is there to do that."""
    home = two[0].home

    async def registered() -> list[EdgeCredentials]:
        file, root = home / "edgewright.db", home / "repositories"
        async with gateway_centre(file, root, database_url=database_url) as centre:
            uuids = [await centre.create(f"waiting-{number}") for number in range(2)]
            return [await centre.register(uuid, uid=f"uid-of-{uuid}") for uuid in uuids]

    return asyncio.run(registered())


class Held:
    """A heartbeat that a gateway holds back, because its edge knows all that is wanted."""

    def __init__(self, pool: ThreadPoolExecutor, gateway: LoneGateway, edge: EdgeCredentials) -> None:
        self._gateway, self._edge = gateway, edge
        told = self._beat(wait=LONGEST_HELD)
        before = held_by(gateway)
        self._known = {"wants_digest": told["wants_digest"], "revisions": told["revisions"]}
        self._answer = pool.submit(self._beat, wait=LONGEST_HELD, **self._known)
        eventually(lambda: held_by(gateway) == before + 1, seconds=AT_ONCE)

    def answer(self) -> dict[str, Any]:
        """What the edge is told, if that is soon."""
        return self._answer.result(AT_ONCE)

    def free(self) -> None:
        """By the next heartbeat of the same edge, which does not wait."""
        self._beat(wait=0.1, **self._known)
        self.answer()

    def _beat(self, **body: Any) -> dict[str, Any]:
        url = f"{self._gateway.url}/v1/agent/heartbeat"
        answer = httpx.post(url, headers=self._edge.as_agent, json=body, **PLAIN, timeout=LONGEST_HELD + 30)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


def held_by(gateway: LoneGateway) -> float:
    shown = gateway.api("GET", "/metrics").text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in shown if line.startswith("edgewright_heartbeats_held "))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["one_holds", "other_holds"])
def test_what_one_is_asked_for_ends_a_heartbeat_that_the_other_holds(
    two: tuple[LoneGateway, LoneGateway], edges: list[EdgeCredentials], order: tuple[int, int]
) -> None:
    """A bystander waits all the time: a gateway where nobody waits does not follow what happens."""
    holding, asked = (two[number] for number in order)
    edge, bystander = (edges[number] for number in order)
    path = f"/v1/cluster/{edge.cluster}"
    status = httpx.put(
        f"{asked.url}/v1/agent/status", headers=edge.as_agent, json={"kubeseal_cert": certificate()}, **PLAIN
    )
    assert status.is_success, status.text

    def put_secret(value: bytes) -> Callable[[dict[str, Any]], bool]:
        put = asked.api("PUT", f"{path}/secret/default/db/password", content=value)
        assert put.status_code == 204, put.text
        commit = put.headers["Edgewright-Commit"]
        return lambda told: told["revisions"]["self-link"] == commit

    def rotate() -> Callable[[dict[str, Any]], bool]:
        rotated = asked.api("POST", f"{path}/credential/rotate", json={"roles": ["agent"]})
        assert rotated.status_code in {200, 202}, rotated.text
        return lambda told: "agent" in told["rotate"]

    with ThreadPoolExecutor(2) as pool:
        others = Held(pool, holding, bystander)
        for ask in (partial(put_secret, b"one"), rotate, partial(put_secret, b"two")):
            held = Held(pool, holding, edge)
            is_told = ask()
            assert is_told(held.answer())
        others.free()
