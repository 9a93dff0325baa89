"""The Flux that edges get: imported once by an administrator, shown to whoever asks."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict

from api.auth import Administrator, Reader, actor_of
from api.bodies import bounded_body
from api.dependencies import TheConfig, TheOffer
from api.schemas.base import Answer
from api.stored_flux import not_imported, stored_flux
from edgewright.domain.container_images import mirrored
from edgewright.domain.flux_bundle import MAX_BUNDLE_BYTES
from edgewright.domain.imported_flux import ImportedFlux, checked_import
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.ports.config_store import Entry

router = APIRouter(tags=["flux"])


class FluxBody(Answer):
    """The Flux that edges get.

    ``version``: as its objects are labelled, null if they are not. ``sha256``: of the file that was imported.
    ``images``: as edges pull them. ``mirror``: the registry that they are pulled from instead of Flux's.
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
                }
            ]
        },
    )

    version: str | None
    sha256: str
    images: list[str]
    mirror: str | None
    imported_at: datetime


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
    request: Request,
    config: TheConfig,
    offer: TheOffer,
) -> FluxBody:
    """Replaces the previous one. Edges that are attached from now on get this one; others keep what they have."""
    content = await bounded_body(request, MAX_BUNDLE_BYTES)
    flux = await asyncio.to_thread(checked_import, content, sha256)
    entry = await config.put(
        APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE, flux.model_dump(mode="json"), actor=actor_of(operator)
    )
    return _body(offer.registry_mirror, flux, entry)


@router.get("/v1/flux", summary="The Flux that edges get")
async def show_flux(*, _operator: Reader, config: TheConfig, offer: TheOffer) -> FluxBody:
    """404 `flux_not_imported` before the first import."""
    stored = await stored_flux(config)
    if stored is None:
        raise not_imported()
    return _body(offer.registry_mirror, *stored)


def _body(mirror: str | None, flux: ImportedFlux, entry: Entry) -> FluxBody:
    return FluxBody(
        version=flux.version or None,
        sha256=flux.sha256,
        images=[mirrored(image, mirror) if mirror else image for image in flux.images],
        mirror=mirror,
        imported_at=entry.modified_at,
    )
