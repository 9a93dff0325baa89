"""The Flux that edges get, as it stands in the Config Store."""

from api.gateway import Gateway
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import NotFound
from edgewright.ports.config_store import Entry

IMPORT_IT = "An administrator imports it once: edgewright flux import install.yaml --sha256 HEX."


async def stored_flux(gateway: Gateway) -> tuple[ImportedFlux, Entry] | None:
    """The bundle and its entry; None: nobody has imported one."""
    entry = await gateway.config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
    return None if entry is None else (ImportedFlux.model_validate(entry.body), entry)


def not_imported() -> NotFound:
    """Nobody has imported a Flux bundle."""
    return NotFound("This centre has no Flux to give to edges.", code="flux_not_imported", hint=IMPORT_IT)
