"""Which releases of Flux a centre keeps, which one edges get, and what two imports at once come to."""

import asyncio

import pytest
from database_stores import ACTOR, Store
from flux_file import VERSION, flux_file, sha256_of

from edgewright.application.flux_releases import MOST_KEPT, keep, release, release_named, releases
from edgewright.domain.imported_flux import ImportedFlux, checked_import
from edgewright.domain.versions import is_older
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import Conflict

FILE = flux_file()
GENUINE = checked_import(FILE, sha256_of(FILE))


def labelled(version: str, *, built: str = "") -> ImportedFlux:
    """A release of that version; ``built``: another file of the same version."""
    content = FILE.replace(VERSION.encode(), version.encode()) + f"# {built}\n".encode()
    facts = {"version": version, "sha256": sha256_of(content), "manifests": content.decode()}
    return GENUINE.model_copy(update=facts)


async def shown(store: Store) -> list[tuple[str, bool]]:
    """Version of each release that is kept, and whether edges get it."""
    return [(each.version, each.offered) for each in await releases(store.config)]


async def test_a_release_that_was_imported_before_is_kept(store: Store) -> None:
    assert await releases(store.config) == []
    older, newer = labelled("v2.6.4"), labelled("v2.7.3")
    for each in (older, newer):
        entry = await keep(store.config, each, ACTOR)
        assert ImportedFlux.model_validate(entry.body) == each
    assert await shown(store) == [("v2.7.3", True), ("v2.6.4", False)]
    assert await release(store.config, older.sha256) == older
    assert await release_named(store.config, "v2.6.4") == older
    assert await release_named(store.config, "v2.7.3") == newer
    assert await release_named(store.config, "v2.8.0") is None
    assert await release(store.config, "0" * 64) is None


async def test_importing_the_same_file_again_changes_nothing(store: Store) -> None:
    first = await keep(store.config, GENUINE, ACTOR)
    told = await store.audit.last_position()
    assert await keep(store.config, GENUINE, ACTOR) == first
    assert await store.audit.events(after=told) == []


async def test_the_only_release_of_an_older_centre_is_found_and_outlives_the_next_import(store: Store) -> None:
    before = labelled("v2.6.4")
    written = await store.config.put(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE, before.model_dump(mode="json"), actor=ACTOR)
    assert await shown(store) == [("v2.6.4", True)]
    assert await release(store.config, before.sha256) == before
    assert await release_named(store.config, "v2.6.4") == before
    await keep(store.config, labelled("v2.7.3"), ACTOR)
    assert await shown(store) == [("v2.7.3", True), ("v2.6.4", False)]
    assert await release(store.config, before.sha256) == before
    assert (await releases(store.config))[1].imported_at == written.modified_at


async def test_an_older_release_is_refused_unless_it_is_meant(store: Store) -> None:
    newer, older = labelled("v2.10.0"), labelled("v2.9.1")
    await keep(store.config, newer, ACTOR)
    with pytest.raises(Conflict) as refused:
        await keep(store.config, older, ACTOR)
    assert refused.value.code == "flux_older"
    assert "v2.9.1" in refused.value.detail and "v2.10.0" in refused.value.detail
    assert await shown(store) == [("v2.10.0", True)]
    await keep(store.config, older, ACTOR, even_if_older=True)
    assert {*await shown(store)} == {("v2.9.1", True), ("v2.10.0", False)}
    await keep(store.config, newer, ACTOR)
    assert {*await shown(store)} == {("v2.9.1", False), ("v2.10.0", True)}


async def test_a_file_without_a_version_is_taken_at_any_time_and_has_no_name(store: Store) -> None:
    for version in ("v2.7.3", "", "v2.6.4"):
        await keep(store.config, labelled(version), ACTOR)
    assert (await shown(store))[0] == ("v2.6.4", True)
    assert await release_named(store.config, "") is None


async def test_of_two_files_of_one_version_edges_get_the_one_that_is_offered(store: Store) -> None:
    first, second = labelled("v2.7.3", built="first"), labelled("v2.7.3", built="second")
    for each in (first, second, first):
        await keep(store.config, each, ACTOR)
        assert await release_named(store.config, "v2.7.3") == each
    await keep(store.config, labelled("v2.8.0"), ACTOR)
    assert await release_named(store.config, "v2.7.3") == second


async def test_the_oldest_go_but_for_those_that_a_cluster_needs(store: Store) -> None:
    made = [labelled(f"v2.{minor}.0") for minor in range(MOST_KEPT + 3)]
    needed = {made[0].sha256}
    for each in made:
        await keep(store.config, each, ACTOR, in_use=needed)
    kept = {each.version for each in await releases(store.config)}
    assert kept == {each.version for each in (made[0], *made[4:])}
    assert len(kept) == MOST_KEPT
    assert await release(store.config, made[0].sha256) == made[0]
    assert await release(store.config, made[1].sha256) is None
    await keep(store.config, labelled("v3.0.0"), ACTOR, in_use={each.sha256 for each in made})
    assert len(await releases(store.config)) == MOST_KEPT + 1


async def test_of_imports_at_once_the_newest_is_what_edges_get_and_none_is_lost(store: Store) -> None:
    made = [labelled(f"v2.{minor}.0") for minor in range(6)]
    done = await asyncio.gather(*(keep(store.config, each, ACTOR) for each in made), return_exceptions=True)
    refused = [str(each) for each in done if isinstance(each, BaseException)]
    assert all("is older than" in each for each in refused)
    kept = dict(await shown(store))
    assert kept["v2.5.0"] is True and list(kept.values()).count(True) == 1
    taken = {each.version for each, answer in zip(made, done, strict=True) if not isinstance(answer, BaseException)}
    assert taken <= kept.keys()


async def test_an_import_that_died_half_way_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await keep(store.config, labelled("v2.6.4"), ACTOR)
    put = store.config.put

    async def dies(app: object, object_: object, *rest: object, **options: object) -> object:
        if object_ == OBJECT_FLUX_BUNDLE:
            raise asyncio.CancelledError
        return await put(app, object_, *rest, **options)  # type: ignore[arg-type] # passes on what it was given

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        patched.setattr(store.config, "put", dies)
        await keep(store.config, labelled("v2.7.3"), ACTOR)
    assert dict(await shown(store)) == {"v2.6.4": True, "v2.7.3": False}
    await keep(store.config, labelled("v2.7.3"), ACTOR)
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
