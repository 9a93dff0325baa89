"""The release of Flux for edges, which an administrator imports."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict

from api.auth import Administrator, Reader, actor_of
from api.bodies import bounded_body
from api.dependencies import TheConfig, TheOffer
from api.routes.upgrades import TheUpgradeRoom
from api.schemas.base import Answer
from api.stored_flux import not_imported, stored_flux
from edgewright.application.flux_releases import KeptFlux, keep, releases
from edgewright.domain.container_images import mirrored
from edgewright.domain.flux_bundle import MAX_BUNDLE_BYTES
from edgewright.domain.imported_flux import ImportedFlux, checked_import
from edgewright.ports.config_store import Entry

router = APIRouter(tags=["flux"])


class KeptFluxBody(Answer):
    """A release of Flux that this centre has.

    ``version``: from the labels of its objects; null if there are none. ``imported_at``: when it was first imported.
    ``offered``: edges that are attached from now on get this release.
    """

    version: str | None
    sha256: str
    imported_at: datetime
    offered: bool


class FluxBody(Answer):
    """The release of Flux that edges get.

    ``version``: from the labels of its objects; null if there are none. ``sha256``: of the imported file.
    ``images``: as edges pull them. ``mirror``: the registry that edges pull from instead of Flux's own.
    ``releases``: all releases that the centre keeps, the latest import first.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": "v2.7.0",
                    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "images": ["registry.example.com/edge/fluxcd/source-controller:v1.7.0"],
                    "mirror": "registry.example.com/edge",
                    "imported_at": "2026-03-01T12:00:00Z",
                    "releases": [
                        {
                            "version": "v2.7.0",
                            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                            "imported_at": "2026-03-01T12:00:00Z",
                            "offered": True,
                        }
                    ],
                }
            ]
        },
    )

    version: str | None
    sha256: str
    images: list[str]
    mirror: str | None
    imported_at: datetime
    releases: list[KeptFluxBody]


@router.put(
    "/v1/flux",
    summary="Import the Flux that edges get",
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The file `install.yaml` of a release of Flux, whatever the content type; at most 4 MiB.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_flux(
    *,
    operator: Administrator,
    sha256: Annotated[str, Query(pattern="^[0-9A-Fa-f]{64}$", description="Of the file, as its release states it.")],
    even_if_older: Annotated[bool, Query(description="Import it even if edges get a newer one now.")] = False,
    request: Request,
    config: TheConfig,
    offer: TheOffer,
    room: TheUpgradeRoom,
) -> FluxBody:
    """Edges that are attached from now on get this release; others keep theirs. 409 `flux_older`.

    The centre keeps ten releases in total, for upgrades of edges.
    """
    content = await bounded_body(request, MAX_BUNDLE_BYTES)
    flux = await asyncio.to_thread(checked_import, content, sha256)
    entry = await keep(config, room.upgrades, flux, actor_of(operator), even_if_older=even_if_older)
    return _body(offer.registry_mirror, flux, entry, await releases(config))


@router.get("/v1/flux", summary="The Flux that edges get")
async def show_flux(*, _operator: Reader, config: TheConfig, offer: TheOffer) -> FluxBody:
    """404 `flux_not_imported` before the first import."""
    stored = await stored_flux(config)
    if stored is None:
        raise not_imported()
    return _body(offer.registry_mirror, *stored, await releases(config))


def _body(mirror: str | None, flux: ImportedFlux, entry: Entry, kept: Sequence[KeptFlux]) -> FluxBody:
    return FluxBody(
        version=flux.version or None,
        sha256=flux.sha256,
        images=[mirrored(image, mirror) if mirror else image for image in flux.images],
        mirror=mirror,
        imported_at=entry.modified_at,
        releases=[
            KeptFluxBody(
                version=each.version or None, sha256=each.sha256, imported_at=each.imported_at, offered=each.offered
            )
            for each in kept
        ],
    )
