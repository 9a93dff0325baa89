"""Which releases of Flux a centre keeps, which one edges get, and what two imports at once come to."""

import asyncio

import pytest
from database_stores import ACTOR, Store
from flux_file import GENUINE_FLUX, labelled_flux
from upgraded_store import flux_target, heard

from edgewright.application.flux_releases import MOST_KEPT, keep, release, release_named, releases
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.versions import is_older
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import Conflict
from edgewright.ports.upgrades import UpgradeWish


async def shown(store: Store) -> list[tuple[str, bool]]:
    """Version of each release that is kept, and whether edges get it."""
    return [(each.version, each.offered) for each in await releases(store.config)]


async def test_a_release_that_was_imported_before_is_kept(store: Store) -> None:
    assert await releases(store.config) == []
    older, newer = labelled_flux("v2.6.4"), labelled_flux("v2.7.3")
    for each in (older, newer):
        entry = await keep(store.config, store.upgrades, each, ACTOR)
        assert ImportedFlux.model_validate(entry.body) == each
    assert await shown(store) == [("v2.7.3", True), ("v2.6.4", False)]
    assert await release(store.config, older.sha256) == older
    assert await release_named(store.config, "v2.6.4") == older
    assert await release_named(store.config, "v2.7.3") == newer
    assert await release_named(store.config, "v2.8.0") is None
    assert await release(store.config, "0" * 64) is None


async def test_importing_the_same_file_again_changes_nothing(store: Store) -> None:
    first = await keep(store.config, store.upgrades, GENUINE_FLUX, ACTOR)
    told = await store.audit.last_position()
    assert await keep(store.config, store.upgrades, GENUINE_FLUX, ACTOR) == first
    assert await store.audit.events(after=told) == []


async def test_the_only_release_of_an_older_centre_is_found_and_outlives_the_next_import(store: Store) -> None:
    before = labelled_flux("v2.6.4")
    written = await store.config.put(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE, before.model_dump(mode="json"), actor=ACTOR)
    assert await shown(store) == [("v2.6.4", True)]
    assert await release(store.config, before.sha256) == before
    assert await release_named(store.config, "v2.6.4") == before
    await keep(store.config, store.upgrades, labelled_flux("v2.7.3"), ACTOR)
    assert await shown(store) == [("v2.7.3", True), ("v2.6.4", False)]
    assert await release(store.config, before.sha256) == before
    assert (await releases(store.config))[1].imported_at == written.modified_at


async def test_an_older_release_is_refused_unless_it_is_meant(store: Store) -> None:
    newer, older = labelled_flux("v2.10.0"), labelled_flux("v2.9.1")
    await keep(store.config, store.upgrades, newer, ACTOR)
    with pytest.raises(Conflict) as refused:
        await keep(store.config, store.upgrades, older, ACTOR)
    assert refused.value.code == "flux_older"
    assert "v2.9.1" in refused.value.detail and "v2.10.0" in refused.value.detail
    assert await shown(store) == [("v2.10.0", True)]
    await keep(store.config, store.upgrades, older, ACTOR, even_if_older=True)
    assert {*await shown(store)} == {("v2.9.1", True), ("v2.10.0", False)}
    await keep(store.config, store.upgrades, newer, ACTOR)
    assert {*await shown(store)} == {("v2.9.1", False), ("v2.10.0", True)}


async def test_a_file_without_a_version_is_taken_at_any_time_and_has_no_name(store: Store) -> None:
    for version in ("v2.7.3", "", "v2.6.4"):
        await keep(store.config, store.upgrades, labelled_flux(version), ACTOR)
    assert (await shown(store))[0] == ("v2.6.4", True)
    assert await release_named(store.config, "") is None


async def test_of_two_files_of_one_version_edges_get_the_one_that_is_offered(store: Store) -> None:
    first, second = labelled_flux("v2.7.3", built="first"), labelled_flux("v2.7.3", built="second")
    for each in (first, second, first):
        await keep(store.config, store.upgrades, each, ACTOR)
        assert await release_named(store.config, "v2.7.3") == each
    await keep(store.config, store.upgrades, labelled_flux("v2.8.0"), ACTOR)
    assert await release_named(store.config, "v2.7.3") == second


async def test_the_oldest_go_but_for_those_that_a_cluster_needs(store: Store) -> None:
    made = [labelled_flux(f"v2.{minor}.0") for minor in range(MOST_KEPT + 3)]
    await keep(store.config, store.upgrades, made[0], ACTOR)
    wish = UpgradeWish(cluster=await heard(store), target=flux_target(made[0]))
    await store.upgrades.admit(wish, actor=ACTOR)
    for each in made:
        await keep(store.config, store.upgrades, each, ACTOR)
    kept = {each.version for each in await releases(store.config)}
    assert kept == {each.version for each in (made[0], *made[4:])}
    assert len(kept) == MOST_KEPT
    assert await release(store.config, made[0].sha256) == made[0]
    assert await release(store.config, made[1].sha256) is None
    await store.wishes.request_deletion(wish.cluster, actor=ACTOR)
    await keep(store.config, store.upgrades, labelled_flux("v3.0.0"), ACTOR)
    assert await release(store.config, made[0].sha256) is None
    assert len(await releases(store.config)) == MOST_KEPT


async def test_of_imports_at_once_the_newest_is_what_edges_get_and_none_is_lost(store: Store) -> None:
    made = [labelled_flux(f"v2.{minor}.0") for minor in range(6)]
    done = await asyncio.gather(
        *(keep(store.config, store.upgrades, each, ACTOR) for each in made), return_exceptions=True
    )
    refused = [str(each) for each in done if isinstance(each, BaseException)]
    assert all("is older than" in each for each in refused)
    kept = dict(await shown(store))
    assert kept["v2.5.0"] is True and list(kept.values()).count(True) == 1
    taken = {each.version for each, answer in zip(made, done, strict=True) if not isinstance(answer, BaseException)}
    assert taken <= kept.keys()


async def test_an_import_that_died_half_way_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await keep(store.config, store.upgrades, labelled_flux("v2.6.4"), ACTOR)
    put = store.config.put

    async def dies(app: object, object_: object, *rest: object, **options: object) -> object:
        if object_ == OBJECT_FLUX_BUNDLE:
            raise asyncio.CancelledError
        return await put(app, object_, *rest, **options)  # type: ignore[arg-type] # passes on what it was given

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        patched.setattr(store.config, "put", dies)
        await keep(store.config, store.upgrades, labelled_flux("v2.7.3"), ACTOR)
    assert dict(await shown(store)) == {"v2.6.4": True, "v2.7.3": False}
    await keep(store.config, store.upgrades, labelled_flux("v2.7.3"), ACTOR)
    assert await shown(store) == [("v2.7.3", True), ("v2.6.4", False)]


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("v2.9.1", "v2.10.0", True),
        ("v2.10.0", "v2.9.1", False),
        ("v2.7.3", "v2.7.3", False),
        ("v2.7.0-rc.1", "v2.7.0", True),
        ("v2.7.0-rc.2", "v2.7.0-rc.10", True),
        ("", "v2.7.0", None),
        ("v2.7.0", "latest", None),
        ("v" + "9" * 60, "v1.0.0", False),
    ],
)
def test_versions_are_compared_as_releases_number_them(version: str, than: str, older: bool | None) -> None:
    assert is_older(version, than) is older
