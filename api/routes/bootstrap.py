"""The bootstrap script. Every answer on this path, errors included, is a script (see ``problems.py``).

Fetching it never spends the token.
"""

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse, Response

from api.access import TheAccess
from api.admission import TheAdmissionRoom, admit
from api.document_headers import declared
from api.stored_flux import stored_flux
from edgewright.bootstrap import (
    BootstrapInput,
    installed_labels,
    render_manifests,
    render_script,
    render_uninstall,
)
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.json import Json
from edgewright.domain.rendering.layout import CLUSTER_FOLDER, FLUX_SYSTEM_FILE, SELF_LINK_FILE
from edgewright.domain.templates import expand
from edgewright.domain.wellknown import APP_BOOTSTRAP_SCRIPT, OBJECT_BOOTSTRAP_SCRIPT, REPOSITORY_HELM_CHARTS
from edgewright.errors import Invalid, Stalled
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.git_server import GitServer

PATH = "/v1/cluster/{uuid}/bootstrap"
UNINSTALL_PATH = "/v1/uninstall.sh"
HEADERS = {"Cache-Control": "no-store"}
_REFUSAL: dict[str, Any] = {
    "description": "A script that says why, and exits with 1.",
    "content": {"text/plain": {}},
    "headers": declared("Allow", "Retry-After"),
}

router = APIRouter(tags=["bootstrap"])


@router.get(
    PATH,
    summary="The bootstrap script",
    response_class=PlainTextResponse,
    responses={403: _REFUSAL},
)
@router.head(PATH, include_in_schema=False)
@router.get(PATH + "/", include_in_schema=False)
@router.head(PATH + "/", include_in_schema=False)
async def bootstrap_script(
    *,
    uuid: str,
    request: Request,
    access: TheAccess,
    room: TheAdmissionRoom,
    token: str = "",
    wanted: Annotated[str, Query(alias="format", description="`manifests`, or the script `uninstall`.")] = "",
) -> Response:
    """Returns a POSIX sh script, at most 32 kB, for `curl -sSL URL | sh -`. The registration token in the URL is the
    only credential that it needs."""
    registration, row = await admit(request, access, room.directory, uuid, token)
    files, hooks = await _installation(room.config, room.offer.external_url, row)
    stored = None if row.spec.bare else await stored_flux(room.config)
    flux = stored[0] if stored else None
    meant = BootstrapInput(
        cluster=row.uuid,
        name=row.spec.name,
        namespace=row.spec.namespace,
        external_url=room.offer.external_url,
        token=token,
        expires_at=registration.expires_at,
        generation=row.generation,
        ca_bundle=room.offer.ca_bundle,
        files={**files, **await asyncio.to_thread(_own_files, room.git, row.uuid)},
        before=hooks.get("before", ""),
        after=hooks.get("after", ""),
        **({"flux": flux.named, "flux_namespace": flux.namespace} if flux else {}),
        agent=room.offer.agent_pod(),
    )
    return PlainTextResponse(
        await asyncio.to_thread(_rendered, room.offer.registry_mirror, meant, flux, wanted), headers=HEADERS
    )


@router.get(
    UNINSTALL_PATH, summary="The script that removes Edgewright from any edge", response_class=PlainTextResponse
)
@router.head(UNINSTALL_PATH, include_in_schema=False)
async def uninstall_script() -> Response:
    """Returns a POSIX sh script for `curl -sSL URL | sh -s -- OPTIONS`. Needs no credentials: the script holds no
    secret and is the same for every edge.

    It also works for edges of clusters that this centre no longer knows, or never knew.
    """
    return PlainTextResponse(_uninstall_script())


@cache
def _uninstall_script() -> str:
    return render_uninstall()


def _rendered(mirror: str | None, meant: BootstrapInput, flux: ImportedFlux | None, wanted: str) -> str:
    match wanted:
        case "":
            return render_script(meant)
        case "uninstall":
            return render_uninstall(meant)
        case "manifests":
            return render_manifests(
                meant, flux=flux.labelled(installed_labels(meant), mirror=mirror) if flux else b""
            )
    raise Invalid(
        "There is no such format of the bootstrap script.",
        code="format_unknown",
        hint="Leave format out for the script, or use manifests or uninstall.",
        where="format",
    )


async def _installation(
    config: ConfigStore, external_url: str, row: ClusterRow
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Returns the expanded files and the hooks from the installation's Bootstrap entry."""
    entry = await config.get(APP_BOOTSTRAP_SCRIPT, OBJECT_BOOTSTRAP_SCRIPT)
    body = entry.body if entry is not None else {}
    context: dict[str, Json] = {
        "uuid": str(row.uuid),
        "name": row.spec.name,
        "namespace": row.spec.namespace,
        "url": {
            "self": f"{external_url}/uuid/{row.uuid}",
            "helm": f"{external_url}/uuid/{REPOSITORY_HELM_CHARTS}",
        },
    }
    expanded = expand({"files": body.get("files", {})}, context, where="Bootstrap script")
    files = expanded["files"] if isinstance(expanded, Mapping) else None
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
        raise Stalled("The files of the Bootstrap entry are not texts.", code="bootstrap_file_invalid")
    return {name: str(text) for name, text in files.items()}, body.get("hooks", {})


def _own_files(git: GitServer, cluster: UUID) -> dict[str, str]:
    """Returns the files that make Flux read this cluster's repository, from its newest commit."""
    head = git.head(cluster)
    if head is None:
        return {}
    found = {file: git.read(cluster, CLUSTER_FOLDER + file, at=head) for file in (SELF_LINK_FILE, FLUX_SYSTEM_FILE)}
    return {file: text.decode() for file, text in found.items() if text is not None}
