"""The Flux that edges get, as it stands in the Config Store."""

import asyncio

from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.own_objects import ObjectKey
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import NotFound
from edgewright.ports.config_store import ConfigStore, Entry

IMPORT_IT = "An administrator imports it once: edgewright flux import install.yaml --sha256 HEX."


class FluxNamespace:
    """The namespace of that Flux, and its objects. The bundle, of up to 4 MiB, is read once per revision for each."""

    def __init__(self, config: ConfigStore) -> None:
        self._config = config
        self._known = ("", FLUX_NAMESPACE)
        """Revision and namespace."""
        self._known_objects: tuple[str, tuple[ObjectKey, ...]] = ("", ())
        """Revision and objects."""

    async def read(self) -> str:
        """The namespace; the one of Flux's releases if nobody has imported a bundle."""
        etag = await self._config.etag(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
        if etag != self._known[0]:
            entry = await self._config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE) if etag else None
            if entry is None:
                return FLUX_NAMESPACE
            self._known = (entry.etag, ImportedFlux.model_validate(entry.body).namespace)
        return self._known[1]

    async def objects(self) -> tuple[ObjectKey, ...]:
        """What that Flux brings; nothing if nobody has imported a bundle."""
        etag = await self._config.etag(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
        if etag != self._known_objects[0]:
            entry = await self._config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE) if etag else None
            if entry is None:
                return ()
            objects = await asyncio.to_thread(ImportedFlux.model_validate(entry.body).objects)
            self._known_objects = (entry.etag, objects)
        return self._known_objects[1]


async def stored_flux(config: ConfigStore) -> tuple[ImportedFlux, Entry] | None:
    """The bundle and its entry; None: nobody has imported one."""
    entry = await config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
    return None if entry is None else (ImportedFlux.model_validate(entry.body), entry)


def not_imported() -> NotFound:
    """Nobody has imported a Flux bundle."""
    return NotFound("This centre has no Flux to give to edges.", code="flux_not_imported", hint=IMPORT_IT)
