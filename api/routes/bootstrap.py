"""The bootstrap script. Whatever happens at this path is answered with a script (see ``problems.py``).

Reading it never spends the token.
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from api.auth import FRESH_LINE, count_wrong, match_registration_token
from api.gateway import Gateway
from api.live import TheGateway, TheLive
from edgewright.bootstrap import BootstrapInput, render_script
from edgewright.domain.cluster import Desired, TokenState
from edgewright.domain.json import Json
from edgewright.domain.rendering.layout import CLUSTER_FOLDER, FLUX_SYSTEM_FILE, SELF_LINK_FILE
from edgewright.domain.templates import expand
from edgewright.domain.wellknown import APP_BOOTSTRAP_SCRIPT, OBJECT_BOOTSTRAP_SCRIPT, REPOSITORY_HELM_CHARTS
from edgewright.errors import Forbidden, Stalled
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import RegistrationToken

PATH = "/v1/cluster/{uuid}/bootstrap"
HEADERS = {"Cache-Control": "no-store"}

router = APIRouter(tags=["bootstrap"])

_REASONS = {
    TokenState.SPENT: "This registration token has been used: the cluster is attached.",
    TokenState.EXPIRED: "This registration token has expired.",
    TokenState.REPLACED: "This registration token was replaced by a newer one.",
}


@router.get(
    PATH,
    summary="The bootstrap script",
    response_class=PlainTextResponse,
    responses={403: {"description": "A script that says why, and exits with 1.", "content": {"text/plain": {}}}},
)
@router.head(PATH, include_in_schema=False)
@router.get(PATH + "/", include_in_schema=False)
@router.head(PATH + "/", include_in_schema=False)
async def bootstrap_script(
    *, uuid: str, request: Request, gateway: TheGateway, live: TheLive, token: str = ""
) -> Response:
    """POSIX sh, at most 32 kB, for `curl -sSL URL | sh -`. Needs a registration token; open with a right one."""
    registration, row = await _admit(request, gateway, live, uuid, token)
    files, hooks = await _installation(gateway, row)
    script = render_script(
        BootstrapInput(
            cluster=row.uuid,
            name=row.spec.name,
            namespace=row.spec.namespace,
            external_url=gateway.external_url,
            token=token,
            expires_at=registration.expires_at,
            generation=row.generation,
            ca_bundle=gateway.ca_bundle,
            files={**files, **await asyncio.to_thread(_own_files, gateway, row.uuid)},
            before=hooks.get("before", ""),
            after=hooks.get("after", ""),
        )
    )
    return PlainTextResponse(script, headers=HEADERS)


async def _admit(
    request: Request, gateway: Gateway, live: TheLive, uuid: str, text: str
) -> tuple[RegistrationToken, ClusterRow]:
    token = await match_registration_token(gateway, text)
    if token is None:
        count_wrong(request, live)
        raise Forbidden("This registration token is not valid.", code="token_wrong", hint=FRESH_LINE)
    if str(token.cluster) != uuid.lower():
        raise Forbidden("This registration token belongs to another cluster.", code="token_foreign", hint=FRESH_LINE)
    if token.state in _REASONS:
        raise Forbidden(_REASONS[token.state], code=f"token_{token.state.value}", hint=FRESH_LINE)
    row = await gateway.clusters.get(token.cluster)
    if row is None or row.closed or row.desired is not Desired.PRESENT:
        raise Forbidden("This cluster is being deleted or was removed.", code="cluster_gone")
    if token.generation != row.generation:
        raise Forbidden("This registration token is for earlier hardware.", code="token_replaced", hint=FRESH_LINE)
    return token, row


async def _installation(gateway: Gateway, row: ClusterRow) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Files, expanded, and hooks that the installation's Bootstrap entry brings."""
    entry = await gateway.config.get(APP_BOOTSTRAP_SCRIPT, OBJECT_BOOTSTRAP_SCRIPT)
    body = entry.body if entry is not None else {}
    context: dict[str, Json] = {
        "uuid": str(row.uuid),
        "name": row.spec.name,
        "namespace": row.spec.namespace,
        "url": {
            "self": f"{gateway.external_url}/uuid/{row.uuid}",
            "helm": f"{gateway.external_url}/uuid/{REPOSITORY_HELM_CHARTS}",
        },
    }
    expanded = expand({"files": body.get("files", {})}, context, where="Bootstrap script")
    files = expanded["files"] if isinstance(expanded, Mapping) else None
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
        raise Stalled("The files of the Bootstrap entry are not texts.", code="bootstrap_file_invalid")
    return {name: str(text) for name, text in files.items()}, body.get("hooks", {})


def _own_files(gateway: Gateway, cluster: UUID) -> dict[str, str]:
    """What makes Flux read this cluster's repository, as its newest commit has it."""
    head = gateway.git.head(cluster)
    if head is None:
        return {}
    found = {
        file: gateway.git.read(cluster, CLUSTER_FOLDER + file, at=head) for file in (SELF_LINK_FILE, FLUX_SYSTEM_FILE)
    }
    return {file: text.decode() for file, text in found.items() if text is not None}
