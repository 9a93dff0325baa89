"""Manifests that the bootstrap script fetches and applies, because they do not fit into it."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.admission import installer_door
from api.dependencies import TheConfig, TheOffer
from api.stored_flux import not_imported, stored_flux
from edgewright.application.upgrades import no_agent_image
from edgewright.bootstrap import render_agent, render_fetching_policy, render_fetching_right
from edgewright.ports.clusters import ClusterRow

MEDIA_TYPE = "application/yaml"
HEADERS = {"Cache-Control": "no-store"}
MANIFESTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Kubernetes manifests.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
}
Installed = Annotated[ClusterRow, Depends(installer_door)]

router = APIRouter(tags=["bootstrap"])


@router.get(
    "/v1/cluster/{uuid}/install/flux",
    summary="Flux, for this cluster",
    response_class=Response,
    responses=MANIFESTS,
)
async def flux_manifests(*, _cluster: Installed, config: TheConfig, offer: TheOffer) -> Response:
    """Returns the imported bundle without its Namespace, with its images from the mirror. 404 `flux_not_imported`."""
    stored = await stored_flux(config)
    if stored is None:
        raise not_imported()
    text = await asyncio.to_thread(stored[0].for_script, mirror=offer.registry_mirror)
    return _manifests(text)


@router.get(
    "/v1/cluster/{uuid}/install/agent",
    summary="The agent, for this cluster",
    response_class=Response,
    responses=MANIFESTS,
)
async def agent_manifests(*, cluster: Installed, offer: TheOffer) -> Response:
    """Returns the agent's account, rights and pod. 404 `agent_image_unset`."""
    if (pod := offer.agent_pod()) is None:
        raise no_agent_image()
    return _manifests(render_agent(pod, namespace=cluster.spec.namespace))


@router.get(
    "/v1/cluster/{uuid}/install/fetching-policy",
    summary="What bounds the agent",
    response_class=Response,
    responses=MANIFESTS,
)
async def fetching_policy_manifests(*, cluster: Installed) -> Response:
    """Returns ValidatingAdmissionPolicies for Kubernetes 1.30 and newer, which limit what the agent may do to Flux's
    sources and with its other rights."""
    return _manifests(render_fetching_policy(namespace=cluster.spec.namespace))


@router.get(
    "/v1/cluster/{uuid}/install/fetching-right",
    summary="The agent's right to ask Flux to fetch",
    response_class=Response,
    responses=MANIFESTS,
)
async def fetching_right_manifests(*, cluster: Installed) -> Response:
    """Grant this right only once the policy is in force."""
    return _manifests(render_fetching_right(namespace=cluster.spec.namespace))


def _manifests(text: bytes) -> Response:
    return Response(text, media_type=MEDIA_TYPE, headers=HEADERS)
