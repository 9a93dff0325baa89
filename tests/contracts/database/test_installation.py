"""The ID of an installation: made once, whoever starts first, and made anew by a restore."""

import asyncio

from database_stores import ACTOR, Store

from edgewright.application.installation import ensure_installation_id, installation_id, renew_installation_id
from edgewright.domain.wellknown import APP_INSTALLATION, CLASS_SERVICE, SERVICE_CLUSTER_MANAGER
from edgewright.ports.config_store import NewEntry

PLACE = (APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
EARLIER = {"organisation": "Edgewright", "renderer": "1"}
"""The entry as an earlier version has left it."""


async def started(store: Store) -> None:
    await store.config.install([NewEntry(*PLACE, CLASS_SERVICE, EARLIER)])


async def test_it_is_made_once_and_keeps_the_rest_of_the_entry(store: Store) -> None:
    await ensure_installation_id(store.config)
    assert await installation_id(store.config) is None, "no first start yet"
    await started(store)
    assert await installation_id(store.config) is None
    await ensure_installation_id(store.config)
    made = await installation_id(store.config)
    await ensure_installation_id(store.config)
    entry = await store.config.get(*PLACE)
    assert entry is not None
    assert entry.body == {**EARLIER, "id": str(made)}
    assert await installation_id(store.config) == made


async def test_two_that_start_at_once_agree(two: tuple[Store, Store]) -> None:
    await started(two[0])
    await asyncio.gather(*(ensure_installation_id(store.config) for store in two))
    first, second = [await installation_id(store.config) for store in two]
    assert first is not None
    assert first == second


async def test_a_restore_makes_another_one(store: Store) -> None:
    await started(store)
    await ensure_installation_id(store.config)
    before = await installation_id(store.config)
    await renew_installation_id(store.config)
    after = await installation_id(store.config)
    assert None not in {before, after}
    assert before != after


async def test_what_is_no_id_is_replaced(store: Store) -> None:
    await store.config.install([NewEntry(*PLACE, CLASS_SERVICE, {**EARLIER, "id": 5})])
    assert await installation_id(store.config) is None
    await ensure_installation_id(store.config)
    assert await installation_id(store.config) is not None
    await store.config.put(*PLACE, "not an object", actor=ACTOR)
    assert await installation_id(store.config) is None
