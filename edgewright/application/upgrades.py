"""Begins upgrades: what the centre offers becomes the desired version of a cluster, if that makes sense there."""

from dataclasses import dataclass

from edgewright.application.flux_releases import release_named
from edgewright.domain.container_images import is_pinned, repository_of
from edgewright.domain.imported_flux import ImportedFlux, release_unknown
from edgewright.domain.upgrades import AgentTarget, Component, FluxTarget, Upgrade, reported
from edgewright.domain.versions import is_older
from edgewright.domain.wellknown import APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE
from edgewright.errors import Conflict, NotFound
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.upgrades import Upgrades, UpgradeWish


@dataclass(frozen=True)
class UpgradeRequest:
    """What somebody asks for.

    Args:
        version: of Flux; None: what the centre offers now, as always for the agent.
        at_once: see ``UpgradeWish``.
        even_if_silent: the same.
    """

    component: Component
    version: str | None = None
    at_once: int | None = None
    even_if_silent: bool = False


@dataclass(frozen=True)
class UpgradeOffer:
    """What this centre has for edges.

    Args:
        agent: what the agent is to run from; None: there is no image.
        agent_version: of the agent in it; None: nobody knows, it is an image of the operator's.
        mirror: registry from which edges pull Flux's images; None: as Flux names them.
    """

    agent: AgentTarget | None
    agent_version: str | None
    mirror: str | None


class UpgradeDoor:
    """Admits upgrades."""

    def __init__(self, upgrades: Upgrades, config: ConfigStore) -> None:
        self._upgrades = upgrades
        self._config = config

    async def begin(
        self, row: ClusterRow, request: UpgradeRequest, offer: UpgradeOffer, *, actor: str
    ) -> tuple[Upgrade, bool]:
        """The upgrade, and whether it begins now.

        Raises:
            NotFound: ``agent_image_unset``, ``flux_not_imported``, ``flux_release_unknown``.
            Conflict: ``upgrade_backwards``, ``agent_too_old``, ``flux_not_ours``, ``cluster_bare``; or as
                ``Upgrades.admit``.
        """
        if request.component is Component.AGENT:
            wish = self._agent_wish(row, request, offer)
        else:
            wish = await self._flux_wish(row, request, offer)
        return await self._upgrades.admit(wish, actor=actor)

    def _agent_wish(self, row: ClusterRow, request: UpgradeRequest, offer: UpgradeOffer) -> UpgradeWish:
        if offer.agent is None:
            raise no_agent_image()
        if request.version is not None and request.version != offer.agent.version:
            raise NotFound(
                f"This centre offers the agent in version {offer.agent.version} only.",
                code="agent_version_unknown",
                hint="Leave the version out, or set EDGEWRIGHT_AGENT_IMAGE at the centre.",
            )
        present = reported(row.edge_status, "agent")
        if offer.agent_version is not None and is_older(offer.agent_version, present):
            raise Conflict(
                f"The agent of {row.spec.name} has version {present}, and this centre offers {offer.agent_version}.",
                code="upgrade_backwards",
                hint="Upgrade the centre first: an agent is never newer than its centre.",
            )
        image = reported(row.edge_status, "agent-image")
        present_target = row.wanted.agent or offer.agent
        # An edge may say anything: the centre commits no image from a repository that it has not named itself.
        ours = {repository_of(each.image) for each in (present_target, offer.agent)}
        is_ours = image is not None and is_pinned(image) and repository_of(image) in ours
        fallback = present_target.model_copy(update={"image": image}) if is_ours else None
        return UpgradeWish(
            cluster=row.uuid,
            target=offer.agent,
            before=present if fallback is None else fallback.version,
            fallback=fallback,
            at_once=request.at_once,
            even_if_silent=request.even_if_silent,
        )

    async def _flux_wish(self, row: ClusterRow, request: UpgradeRequest, offer: UpgradeOffer) -> UpgradeWish:
        name = row.spec.name
        if row.spec.bare:
            raise Conflict(
                f"{name} brings its own Flux (bare), which the centre does not touch.",
                code="cluster_bare",
                hint="Upgrade it where it came from.",
            )
        release = await self._release(request.version)
        ours = row.edge_status.flux_is_ours if row.edge_status else None
        if ours is False:
            raise Conflict(
                f"The Flux of {name} was there before its bootstrap line, which has left it as it was.",
                code="flux_not_ours",
                hint="Upgrade it where it came from.",
            )
        if ours is None and row.edge_status is not None:
            raise Conflict(
                f"The agent of {name} is too old to say which Flux it has.",
                code="agent_too_old",
                hint=f"Upgrade the agent first: edgewright agent upgrade {name}.",
            )
        present = reported(row.edge_status, "flux")
        if is_older(release.version, present):
            raise Conflict(
                f"{name} has Flux {present}, and {release.named} is older.",
                code="upgrade_backwards",
                hint="Flux goes forward only: its kinds keep what newer versions have stored.",
            )
        target = FluxTarget(sha256=release.sha256, labelled=release.version, mirror=offer.mirror)
        return UpgradeWish(
            cluster=row.uuid,
            target=target,
            before=present,
            at_once=request.at_once,
            even_if_silent=request.even_if_silent,
        )

    async def _release(self, version: str | None) -> ImportedFlux:
        entry = await self._config.get(APP_FLUX_BUNDLE, OBJECT_FLUX_BUNDLE)
        if entry is None:
            raise NotFound(
                "This centre has no Flux to give to edges.",
                code="flux_not_imported",
                hint="An administrator imports it once: edgewright flux import install.yaml --sha256 HEX.",
            )
        present = ImportedFlux.model_validate(entry.body)
        found = present if version in (None, present.version) else await release_named(self._config, version or "")
        if found is None:
            raise release_unknown(version or "")
        return found


def no_agent_image() -> NotFound:
    """The centre has nothing to run an agent from."""
    return NotFound(
        "This centre has no image of the agent.",
        code="agent_image_unset",
        hint="Run `edgewright agent-image build` where the gateway runs, or set EDGEWRIGHT_AGENT_IMAGE there.",
    )
