"""Secrets and values in the row of a cluster: the texts that every version has written and reads."""

from uuid import uuid4

from database_stores import Store
from sqlalchemy import text

from edgewright.domain.kubernetes_names import OtherText, SecretKey, SecretReference

DB = SecretReference("default", "db")
PASSWORD, USER = DB.at("password"), DB.at("user")
BESIDE = SecretReference("default-2", "db")
"""As text before ``DB``, and as a pair of names behind it."""
STRANGE = '["alone", "", "a/b/c/d", "default/db/password", "/", "alone"]'
"""Texts that no version writes; somebody's hand has."""


async def stored(store: Store) -> tuple[str | None, ...]:
    """What the only row has of values to be entered again, and of those that drift has lost."""
    statement = "SELECT CAST(must_reenter AS TEXT), CAST(drift_lost AS TEXT) FROM clusters"
    async with store.database.read() as connection:
        return tuple((await connection.execute(text(statement))).one())


async def put_by_hand(store: Store, must_reenter: str, drift_lost: str) -> None:
    statement = f"UPDATE clusters SET must_reenter = '{must_reenter}', drift_lost = '{drift_lost}'"
    async with store.database.write() as connection:
        await connection.execute(text(statement))


async def test_a_new_row_names_no_place(store: Store) -> None:
    await store.create()
    assert await stored(store) == ("[]", None)


async def test_places_are_stored_as_texts_in_the_order_of_texts(store: Store) -> None:
    cluster = await store.create()
    await store.steps.record_drift(cluster, "Put back.", event=uuid4(), lost={USER: "a2", PASSWORD: "a1"})
    await store.steps.record_reentry(await store.fence(cluster), taken=[DB, BESIDE, BESIDE.at("k")])
    assert await stored(store) == (
        '["default-2/db", "default-2/db/k", "default/db", "default/db/password", "default/db/user"]',
        '{"default/db/user": "a2", "default/db/password": "a1"}',
    )


async def test_a_text_that_names_no_place_is_read_and_kept_as_it_is(store: Store) -> None:
    cluster = await store.create()
    lost = '{"alone": "a1", "default/db/password": "a2"}'
    await put_by_hand(store, STRANGE, lost)
    places = (OtherText("alone"), OtherText(""), SecretKey("a", "b", "c/d"), PASSWORD, SecretReference("", ""))
    assert (await store.row(cluster)).must_reenter == (*places, OtherText("alone"))
    assert await store.steps.lost_in_drift(cluster) == {OtherText("alone"): "a1", PASSWORD: "a2"}
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.must_reenter == ("alone", "", "a/b/c/d", "default/db/password", "/", "alone")
    change = await store.change(cluster, "password")
    await store.staging.stage([change])
    await store.staging.committed([change.request], "c0ffee")
    assert await stored(store) == ('["alone", "", "a/b/c/d", "/", "alone"]', lost)
    await store.steps.record_reentry(await store.fence(cluster), there=[DB])
    assert await stored(store) == ('["", "/", "a/b/c/d", "alone"]', lost)
