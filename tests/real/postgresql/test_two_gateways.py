"""Two gateways on one PostgreSQL are one Edgewright."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from lone_gateway import LoneGateway, lone_gateway
from loopback import PLAIN
from supervised import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]  # PostgreSQL and two gateways start inside the first


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
