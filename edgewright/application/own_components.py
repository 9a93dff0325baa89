"""The components of an edge in the versions that somebody wants, as they are rendered into its driving repository."""

import asyncio
from uuid import uuid5

from edgewright.bootstrap import AgentPod, render_agent
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.rendering import OwnComponents, WantedComponent
from edgewright.domain.upgrades import AGENT_DRIVER, AgentTarget, Component, FluxTarget
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import Stalled
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore

FLUX_RELEASE_MISSING = "flux_release_missing"
REMEMBERED = 3
"""Releases of Flux whose manifests are kept, as text: each has up to 4 MiB, and takes a second to make."""


class ComponentSources:
    """Makes the manifests of wanted components; what was made of a release of Flux lately is remembered."""

    def __init__(self, config: ConfigStore) -> None:
        self._config = config
        self._fluxes: dict[tuple[str, str | None], bytes] = {}

    async def of(self, row: ClusterRow) -> OwnComponents | None:
        """None: nobody wants a version of anything.

        Raises:
            Stalled: code ``flux_release_missing``.
        """
        wanted: list[WantedComponent] = []
        if row.wanted.agent is not None:
            wanted.append(_agent(row.wanted.agent, row.spec.namespace))
        if row.wanted.flux is not None and not row.spec.bare:
            manifests = await self._flux(row.wanted.flux)
            wanted.append(WantedComponent(Component.FLUX, row.wanted.flux.driver, manifests, waits=True))
        return OwnComponents(tuple(wanted), row.generation, row.anchor) if wanted else None

    async def _flux(self, target: FluxTarget) -> bytes:
        place = (target.sha256, target.mirror)
        found = self._fluxes.pop(place, None)
        if found is None:
            release = await flux_release(self._config, target.sha256)
            if release is None:
                raise Stalled(
                    f"The centre no longer has Flux {target.version}, which this cluster is to have.",
                    code=FLUX_RELEASE_MISSING,
                    hint="Import the same file again, or upgrade the cluster to another release.",
                )
            found = await asyncio.to_thread(release.for_script, mirror=target.mirror)
        self._fluxes[place] = found
        while len(self._fluxes) > REMEMBERED:
            del self._fluxes[next(iter(self._fluxes))]
        return found


async def flux_release(config: ConfigStore, sha256: str) -> ImportedFlux | None:
    """The imported Flux whose file has that SHA-256."""
    places = ((APP_FLUX_BUNDLE, uuid5(APP_FLUX_BUNDLE, sha256)), (APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE))
    for entry in await config.get_each(places):
        release = None if entry is None else ImportedFlux.model_validate(entry.body)
        if release is not None and release.sha256 == sha256:
            return release
    return None


def _agent(target: AgentTarget, namespace: str) -> WantedComponent:
    pod = AgentPod(target.image, target.pull_secret, target.priority_class)
    manifests = render_agent(pod, namespace=namespace)
    return WantedComponent(Component.AGENT, AGENT_DRIVER, manifests, waits=False)
