"""The releases of Flux that a centre has: the one that edges get, and those that were imported before.

Each is an entry *Flux bundle* of its own, for an object that its checksum names. The one that edges get is the entry
for the Application itself besides; a centre from before releases were kept has no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from edgewright.domain.imported_flux import ImportedFlux, release_object
from edgewright.domain.json import JsonObject
from edgewright.domain.versions import is_older
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, CLASS_FLUX_RELEASE, OBJECT_FLUX_BUNDLE
from edgewright.errors import Conflict, PreconditionFailed
from edgewright.ports.config_store import ConfigStore, Entry, Excerpt, Precondition
from edgewright.ports.upgrades import Upgrades

MOST_KEPT = 10
"""Releases; the next one drops the one that was imported first, unless something may need it."""
_IMPORTED_AT = "imported_at"
"""Field of an entry that was copied: the entry itself is younger than the import."""


@dataclass(frozen=True, slots=True)
class KeptFlux:
    """A release of Flux that edges can get, without its manifests.

    Args:
        version: as its objects are labelled; empty if they are not.
        sha256: of the file.
        imported_at: for the first time.
        offered: edges that are attached now get this one.
    """

    version: str
    sha256: str
    imported_at: datetime
    offered: bool


async def release(config: ConfigStore, sha256: str) -> ImportedFlux | None:
    """The release with this checksum; None: there is none, or none any more."""
    places = [(APP_FLUX_BUNDLE, release_object(sha256)), (APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)]
    found = [ImportedFlux.model_validate(entry.body) for entry in await config.get_each(places) if entry is not None]
    return next((flux for flux in found if flux.sha256 == sha256), None)


async def release_named(config: ConfigStore, version: str) -> ImportedFlux | None:
    """The release that is labelled with this version; of several, the one that edges get, or else the newest."""
    named = [each for each in await releases(config) if each.version == version]
    if not version or not named:
        return None
    return await release(config, next((each for each in named if each.offered), named[0]).sha256)


async def releases(config: ConfigStore) -> Sequence[KeptFlux]:
    """All of them, those that were imported last first."""
    found = await config.excerpts(APP_FLUX_BUNDLE, ["version", "sha256", _IMPORTED_AT])
    offered = next((each.texts[1] for each in found if each.object == OBJECT_FLUX_BUNDLE), None)
    entries = sorted(found, key=lambda each: each.object != OBJECT_FLUX_BUNDLE)
    kept = {each.texts[1]: each for each in entries}  # its own entry counts, where there is one
    return [_kept(each, offered) for each in sorted(kept.values(), key=lambda each: each.position, reverse=True)]


async def keep(
    config: ConfigStore, upgrades: Upgrades, flux: ImportedFlux, actor: str, *, even_if_older: bool = False
) -> Entry:
    """Keeps a release and gives it to edges that are attached from now on; returns the entry of what edges get.

    Whoever dies in the middle of it has kept a release that edges do not get yet, and imports it once more.

    Raises:
        Conflict: code ``flux_older``: edges get a newer one. Nothing is kept then.
    """
    while True:
        before = await config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
        if before is not None:
            present = ImportedFlux.model_validate(before.body)
            if not even_if_older and is_older(flux.version, present.version):
                raise _older(flux, present)
            imported_at = before.modified_at.isoformat()
            await _keep(config, present.sha256, {**before.body, _IMPORTED_AT: imported_at}, actor)
        body = flux.model_dump(mode="json")
        await _keep(config, flux.sha256, body, actor)
        unchanged = Precondition(none_match=frozenset({"*"}))
        if before is not None:
            unchanged = Precondition(match=frozenset({before.etag}))
        try:
            entry = await config.put(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE, body, actor=actor, precondition=unchanged)
        except PreconditionFailed:
            continue  # another import came first: compare with that one
        await _drop_oldest(config, upgrades, flux.sha256, actor)
        return entry


async def _keep(config: ConfigStore, sha256: str, body: JsonObject, actor: str) -> None:
    """The entry of one release, which never changes."""
    object_ = release_object(sha256)
    if await config.etag(APP_FLUX_BUNDLE, object_) is not None:
        return
    if await config.class_of(object_) is None:
        await config.create_object(CLASS_FLUX_RELEASE, object_)
    await config.put(APP_FLUX_BUNDLE, object_, body, actor=actor)


async def _drop_oldest(config: ConfigStore, upgrades: Upgrades, imported: str, actor: str) -> None:
    kept = await releases(config)
    too_many = len(kept) - MOST_KEPT
    for each in reversed(kept):
        if too_many <= 0:
            return
        if not each.offered and each.sha256 != imported and await upgrades.drop_flux(each.sha256, actor=actor):
            too_many -= 1


def _kept(entry: Excerpt, offered: str | None) -> KeptFlux:
    version, sha256, imported_at = entry.texts
    at = datetime.fromisoformat(imported_at) if imported_at else entry.modified_at
    return KeptFlux(version, sha256, at, offered=sha256 == offered)


def _older(flux: ImportedFlux, present: ImportedFlux) -> Conflict:
    return Conflict(
        f"Flux {flux.version} is older than {present.version}, which edges get now.",
        code="flux_older",
        hint="To give the older one to new edges all the same, use --even-if-older (even_if_older=true).",
    )
