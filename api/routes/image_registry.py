"""A registry of one repository, from which container runtimes pull the agent's image.

It offers the pull part of the OCI distribution specification (https://github.com/opencontainers/distribution-spec).
It is open: the image holds no secret, and a node that pulls it has no credential of Edgewright's.
"""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from api.image_downloads import CountedFile, ImageDownloads
from edgewright.errors import NotFound
from edgewright.ports.agent_images import REPOSITORY, AgentImages

DIGEST_HEADER = "Docker-Content-Digest"
IN_REPOSITORY = f"/v2/{REPOSITORY}"
_VERSION = {"Docker-Distribution-API-Version": "registry/2.0"}
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
router = APIRouter(tags=["agent image"], include_in_schema=False)  # the specification above describes them


@dataclass(frozen=True)
class RegistryRoom:
    """Ports of the registry. ``images``: None if the gateway serves none."""

    images: AgentImages | None
    downloads: ImageDownloads


class TagList(BaseModel):
    """The tags of the repository, newest first; empty until an image is built."""

    name: str
    tags: list[str]


async def _room(request: Request) -> RegistryRoom:
    room: RegistryRoom = request.app.state.registry_room
    return room


TheRegistry = Annotated[RegistryRoom, Depends(_room)]


@router.get("/v2/")
@router.get("/v2")
async def registry_version() -> Response:
    """Runtimes ask this first. The empty object means that they need no login."""
    return JSONResponse({}, headers=_VERSION)


@router.get(f"{IN_REPOSITORY}/tags/list")
async def image_tags(room: TheRegistry) -> Response:
    """Returns the tag that edges pull now, and those of earlier images: each build has its own."""
    tags = TagList(name=REPOSITORY, tags=list(await asyncio.to_thread(room.images.tags)) if room.images else [])
    return JSONResponse(tags.model_dump(), headers=_VERSION)


@router.get(f"{IN_REPOSITORY}/manifests/{{reference}}")
async def image_manifest(reference: str, room: TheRegistry) -> Response:
    """Finds a manifest by tag or digest. 404 `manifest_unknown`."""
    found = await asyncio.to_thread(room.images.manifest, reference) if room.images else None
    if found is None:
        raise NotFound("The agent's image has no such manifest.", code="manifest_unknown", hint=_HINT)
    return Response(found.content, headers={**_VERSION, DIGEST_HEADER: found.digest}, media_type=found.media_type)


@router.get(f"{IN_REPOSITORY}/blobs/{{digest}}")
async def image_blob(digest: str, request: Request, room: TheRegistry) -> Response:
    """Returns a layer or the configuration, or a part of it with `Range`. 404 `blob_unknown`; 429 and 503
    `image_busy`."""
    path = await asyncio.to_thread(room.images.blob, digest) if room.images else None
    if path is None:
        raise NotFound("The agent's image has no such blob.", code="blob_unknown", hint=_HINT)
    headers = {**_VERSION, **_FOREVER, DIGEST_HEADER: digest}
    if request.scope.get("headers_only"):
        size = (await asyncio.to_thread(path.stat)).st_size
        return Response(headers={**headers, "Content-Length": str(size)}, media_type="application/octet-stream")
    return CountedFile(path, room.downloads, headers=headers, media_type="application/octet-stream")


_HINT = "`edgewright agent-image show` says which image this centre has now."
