"""The components of an edge in the versions that somebody wants, as they are rendered into its driving repository."""

import asyncio

from edgewright.application.flux_releases import release
from edgewright.bootstrap import AgentPod, render_agent
from edgewright.domain.rendering import OwnComponents, WantedComponent
from edgewright.domain.upgrades import AGENT_DRIVER, AgentTarget, Component, FluxTarget
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
            imported = await release(self._config, target.sha256)
            if imported is None:
                raise Stalled(
                    f"The centre no longer has Flux {target.version}, which this cluster is to have.",
                    code=FLUX_RELEASE_MISSING,
                    hint="Import the same file again, or upgrade the cluster to another release.",
                )
            found = await asyncio.to_thread(imported.for_script, mirror=target.mirror)
        self._fluxes[place] = found
        while len(self._fluxes) > REMEMBERED:
            del self._fluxes[next(iter(self._fluxes))]
        return found


def _agent(target: AgentTarget, namespace: str) -> WantedComponent:
    pod = AgentPod(target.image, target.pull_secret, target.priority_class)
    manifests = render_agent(pod, namespace=namespace, again_and_again=True)
    return WantedComponent(Component.AGENT, AGENT_DRIVER, manifests, waits=False)
