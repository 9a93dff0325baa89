"""The Flux that edges get, as it stands in the Config Store."""

from api.gateway import Gateway
from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import NotFound
from edgewright.ports.config_store import ConfigStore, Entry

IMPORT_IT = "An administrator imports it once: edgewright flux import install.yaml --sha256 HEX."


class FluxNamespace:
    """The namespace of that Flux. The bundle, of up to 4 MiB, is read once for each of its revisions."""

    def __init__(self, config: ConfigStore) -> None:
        self._config = config
        self._known = ("", FLUX_NAMESPACE)
        """Revision and namespace."""

    async def read(self) -> str:
        """The namespace; the one of Flux's releases if nobody has imported a bundle."""
        etag = await self._config.etag(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
        if etag != self._known[0]:
            entry = await self._config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE) if etag else None
            if entry is None:
                return FLUX_NAMESPACE
            self._known = (entry.etag, ImportedFlux.model_validate(entry.body).namespace)
        return self._known[1]


async def stored_flux(gateway: Gateway) -> tuple[ImportedFlux, Entry] | None:
    """The bundle and its entry; None: nobody has imported one."""
    entry = await gateway.config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
    return None if entry is None else (ImportedFlux.model_validate(entry.body), entry)


def not_imported() -> NotFound:
    """Nobody has imported a Flux bundle."""
    return NotFound("This centre has no Flux to give to edges.", code="flux_not_imported", hint=IMPORT_IT)
