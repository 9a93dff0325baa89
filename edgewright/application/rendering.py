"""Collects what the generated files of a cluster depend on."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from edgewright.application.own_components import ComponentSources
from edgewright.domain.cluster import ClusterSpec
from edgewright.domain.json import JsonObject
from edgewright.domain.rendering import (
    FETCHED_BY_ITSELF,
    FETCHED_WHEN_ASKED,
    RENDERER_VERSION,
    RenderInput,
    render_digest,
    render_repository,
)
from edgewright.domain.wellknown import (
    APP_FLUX_TEMPLATE,
    APP_HELM_CHART_TEMPLATE,
    APP_INSTALLATION,
    APP_KUBERNETES_TEMPLATE,
    OBJECT_DEFAULT_CHART,
    OBJECT_FLUX_TEMPLATE,
    OBJECT_HELM_RELEASE_TEMPLATE,
    REPOSITORY_HELM_CHARTS,
    SERVICE_CLUSTER_MANAGER,
)
from edgewright.errors import Stalled, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore, Entry

_INSTALLATION = (APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
RENDERER_IN_FORCE = "renderer"
"""In the entry of the installation: the version of the renderer that the last `admin init` had."""
RENDERED_WITH = "rendered_with"
"""There, too: the external URL, and again the version, for which every cluster was woken to be rendered."""
TEMPLATE_MISSING = "template_missing"
REMEMBERED = 64
"""Renderings that are kept; each is about 15 kB."""
Source = tuple[UUID, UUID]
"""(Application, object) of an entry that files were rendered from."""


@dataclass(frozen=True)
class CollectedInput:
    """The input of the renderer, and the entries that it came from.

    Args:
        changed_at: when one of these was written last.
        external_url: that the centre's clusters were rendered with, by the entry of the installation; None: it says
            nothing.
    """

    input: RenderInput
    sources: tuple[Source, ...]
    changed_at: datetime
    external_url: str | None

    @cached_property
    def digest(self) -> str:
        """Equal digests: equal files, from the same entries. Raises as ``render_digest`` does."""
        entries = "".join(f" {app}/{object_}" for app, object_ in self.sources)
        return hashlib.sha256(f"{render_digest(self.input)}{entries}".encode()).hexdigest()


@dataclass(frozen=True)
class Templates:
    """The entries that files are rendered from, as one reading has found them.

    Args:
        sources: where they were read.
        changed_at: when one of them was written last.
        installation: entry of the installation.
    """

    chart: JsonObject
    helm_release: JsonObject
    flux: JsonObject
    sources: tuple[Source, ...]
    changed_at: datetime
    installation: Entry | None

    def input_for(
        self, cluster: UUID, spec: ClusterSpec, base: str, fetch_interval: str = FETCHED_BY_ITSELF
    ) -> RenderInput:
        """What the files of a cluster with a configuration are rendered from. ``base``: of the centre's URLs."""
        return RenderInput(
            uuid=cluster,
            name=spec.name,
            namespace=spec.namespace,
            bare=spec.bare,
            values=spec.values,
            chart_template=self.chart,
            helm_release_template=self.helm_release,
            flux_template=self.flux,
            url_self=f"{base}/uuid/{cluster}",
            url_helm=f"{base}/uuid/{REPOSITORY_HELM_CHARTS}",
            fetch_interval=fetch_interval,
        )


async def read_templates(config: ConfigStore, chart: UUID | None) -> Templates:
    """The present templates of clusters with a chart; None: the default.

    Raises:
        Stalled: a template is missing (code ``template_missing``).
    """
    places = (
        (APP_HELM_CHART_TEMPLATE, chart or OBJECT_DEFAULT_CHART),
        (APP_KUBERNETES_TEMPLATE, OBJECT_HELM_RELEASE_TEMPLATE),
        (APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE),
    )
    found = await config.get_each((*places, _INSTALLATION))
    return Templates(
        chart=_template(found[0], places[0], "Helm chart template"),
        helm_release=_template(found[1], places[1], "HelmRelease template"),
        flux=_template(found[2], places[2], "Flux template"),
        sources=places,
        changed_at=max(each.modified_at for each in found[:3] if each is not None),
        installation=found[3],
    )


class RenderInputs:
    """Reads templates. ``external_url``: under which edges reach the gateway; no trailing slash."""

    def __init__(self, config: ConfigStore, external_url: str) -> None:
        self._config = config
        self._external_url = external_url
        self._components = ComponentSources(config)
        self._rendered: dict[str, Mapping[str, bytes]] = {}

    async def collect(self, row: ClusterRow) -> CollectedInput:
        """The present templates of a cluster, and what its edge has shown: where it reaches the gateway, and whether
        its Flux is asked to fetch.

        Raises:
            Stalled: a template is missing (code ``template_missing``), or a wanted Flux (``flux_release_missing``).
            Waiting: ``renderer_not_in_force``: workers of another version render now.
        """
        templates = await read_templates(self._config, row.spec.chart)
        _demand_renderer_in_force(templates.installation)
        base = row.proven_url or self._external_url
        interval = FETCHED_WHEN_ASKED if row.asks_flux else FETCHED_BY_ITSELF
        rendered_from = templates.input_for(row.uuid, row.spec, base, interval)
        return CollectedInput(
            replace(rendered_from, components=await self._components.of(row)),
            templates.sources,
            templates.changed_at,
            _rendered_with(templates.installation),
        )

    async def render(self, collected: CollectedInput) -> Mapping[str, bytes]:
        """``render_repository`` of what was collected; what was rendered lately is remembered.

        A cluster is rendered once to see whether it can be, and soon after to be committed. Values can be large: a
        thread renders them, so that nobody else waits.
        """
        digest = await digest_of(collected)
        rendered = self._rendered.pop(digest, None)
        if rendered is None:
            rendered = await asyncio.to_thread(render_repository, collected.input)
        self._rendered[digest] = rendered
        while len(self._rendered) > REMEMBERED:
            del self._rendered[next(iter(self._rendered))]
        return rendered


async def digest_of(collected: CollectedInput) -> str:
    """``Collected.digest``, computed in a thread."""
    return await asyncio.to_thread(lambda: collected.digest)


def _said_of(installation: Entry | None) -> JsonObject:
    body = installation.body if installation else None
    return body if isinstance(body, dict) else {}


def _rendered_with(installation: Entry | None) -> str | None:
    told = _said_of(installation).get(RENDERED_WITH)
    url = told.get("external_url") if isinstance(told, dict) else None
    return url if isinstance(url, str) else None


def _demand_renderer_in_force(installation: Entry | None) -> None:
    """Else workers of two versions would render each cluster by turns, for as long as both run."""
    in_force = _said_of(installation).get(RENDERER_IN_FORCE)
    if in_force is not None and in_force != RENDERER_VERSION:
        raise Waiting(
            f"This worker renders with version {RENDERER_VERSION}, and version {in_force} is in force.",
            code="renderer_not_in_force",
            hint="`edgewright admin init` decides that; stop the workers of other versions.",
            retry_after=2.0,
        )


def _template(entry: Entry | None, place: Source, word: str) -> JsonObject:
    if entry is None or not isinstance(entry.body, dict):
        app, object_ = place
        raise Stalled(
            f"The {word} {object_} does not exist.",
            code=TEMPLATE_MISSING,
            hint=f"Write the entry of Application {app}, or name another chart in the cluster's configuration.",
            where=f"{app}/{object_}",
        )
    body: JsonObject = entry.body
    return body
