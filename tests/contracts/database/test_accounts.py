"""Principals of clusters."""

import asyncio
from uuid import uuid4

from database_stores import Store

from edgewright.domain.accounts import accounts_of
from edgewright.domain.cluster import Role
from edgewright.domain.wellknown import CLASS_EDGE_ACCOUNT


async def test_accounts_are_made_exactly_as_given(store: Store) -> None:
    cluster = await store.create()
    fence, given = await store.fence(cluster), accounts_of(cluster, "press-shop")
    for _ in range(2):
        await store.accounts.ensure(fence, given)
    held = await store.accounts.of_cluster(cluster)
    assert [account.role for account in held] == [Role.AGENT, Role.FLUX]
    assert {(one.uuid, one.name, frozenset(one.grants)) for one in held} == {
        (one.uuid, one.name, frozenset(one.grants)) for one in given
    }
    assert await store.config.members(CLASS_EDGE_ACCOUNT) == sorted(one.uuid for one in given)


async def test_what_is_not_given_any_more_goes(store: Store) -> None:
    cluster = await store.create()
    fence, (flux, agent) = await store.fence(cluster), accounts_of(cluster, "press-shop")
    await store.accounts.ensure(fence, [flux, agent])
    fewer = flux.model_copy(update={"grants": flux.grants[:1]})
    await store.accounts.ensure(fence, [fewer])
    assert await store.accounts.of_cluster(cluster) == [fewer]
    assert await store.config.class_of(agent.uuid) is None


async def test_removal_leaves_nothing_of_this_cluster_and_all_of_others(store: Store) -> None:
    one, two = await store.create("one"), await store.create("two")
    fences = {cluster: await store.fence(cluster) for cluster in (one, two)}
    for cluster, fence in fences.items():
        await store.accounts.ensure(fence, accounts_of(cluster, "x"))
    group = uuid4()
    await store.config.add_member(group, accounts_of(one, "x")[0].uuid)
    for _ in range(2):
        await store.accounts.remove(fences[one])
    assert await store.accounts.of_cluster(one) == []
    assert await store.config.members(group) == []
    assert len(await store.accounts.of_cluster(two)) == 2


async def test_creating_accounts_at_once_makes_them_once(two: tuple[Store, Store]) -> None:
    cluster = await two[0].create()
    fence, given = await two[0].fence(cluster), accounts_of(cluster, "press-shop")
    await asyncio.gather(*(store.accounts.ensure(fence, given) for store in two * 2))
    assert len(await two[0].accounts.of_cluster(cluster)) == 2
