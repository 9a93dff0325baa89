"""Lists of clusters, filtered and sorted by what is wrong with them."""

import httpx
import pytest
from gateway_centre import GatewayCentre
from troubled_fleet import CHOICES, FLEET, ORDERS, make_fleet


@pytest.fixture(autouse=True)
async def fleet(centre: GatewayCentre) -> None:
    await make_fleet(centre)


async def names(admin: httpx.AsyncClient, **params: str) -> list[str]:
    """The names on all pages, one cluster on each."""
    found: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = (await admin.get("/v1/cluster", params={**params, **after, "limit": 1})).json()
        found += [item["name"] for item in page["items"]]
        if page["next"] is None:
            return found
        after = {"after": page["next"]}


@pytest.mark.parametrize(("sort", "order"), ORDERS.items())
async def test_lists_sort_by_each_kind_of_trouble(admin: httpx.AsyncClient, sort: str, order: str) -> None:
    assert await names(admin, sort=sort) == order.split()


@pytest.mark.parametrize(("kind", "wanted"), CHOICES)
async def test_lists_filter_by_both_values_of_each_kind(admin: httpx.AsyncClient, kind: str, wanted: bool) -> None:
    assert await names(admin, **{kind: str(wanted).lower()}) == CHOICES[kind, wanted].split()


async def test_pages_that_name_no_order_lose_no_cluster_whose_trouble_changes(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    first = (await admin.get("/v1/cluster", params={"limit": 2})).json()
    for name in ("a-well", "d-blocked"):
        cluster = await centre.gateway.directory.find(name)
        assert cluster is not None
        await centre.project(cluster, conditions=())
    rest = (await admin.get("/v1/cluster", params={"limit": 2, "after": first["next"]})).json()
    assert [item["name"] for item in first["items"] + rest["items"]] == sorted(FLEET)
