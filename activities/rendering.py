"""Collects what the generated files of a cluster depend on."""

import hashlib
from dataclasses import dataclass
from uuid import UUID

from edgewright.domain.cluster import ClusterSpec
from edgewright.domain.json import JsonObject
from edgewright.domain.rendering import RenderInput, render_digest
from edgewright.domain.wellknown import (
    APP_FLUX_TEMPLATE,
    APP_HELM_CHART_TEMPLATE,
    APP_KUBERNETES_TEMPLATE,
    OBJECT_DEFAULT_CHART,
    OBJECT_FLUX_TEMPLATE,
    OBJECT_HELM_RELEASE_TEMPLATE,
    REPOSITORY_HELM_CHARTS,
)
from edgewright.errors import Stalled
from edgewright.ports.config_store import ConfigStore

Source = tuple[UUID, UUID]
"""(Application, object) of an entry that files were rendered from."""


@dataclass(frozen=True)
class Collected:
    """The input of the renderer, and the entries that it came from."""

    input: RenderInput
    sources: tuple[Source, ...]

    @property
    def digest(self) -> str:
        """Equal digests: equal files, from the same entries. Raises as ``render_digest`` does."""
        entries = "".join(f" {app}/{object_}" for app, object_ in self.sources)
        return hashlib.sha256(f"{render_digest(self.input)}{entries}".encode()).hexdigest()


class RenderInputs:
    """Reads templates. ``external_url``: under which edges reach the gateway; no trailing slash."""

    def __init__(self, entries: ConfigStore, external_url: str) -> None:
        self._entries = entries
        self._external_url = external_url

    async def collect(self, cluster: UUID, spec: ClusterSpec) -> Collected:
        """The present templates of a cluster.

        Raises:
            Stalled: a template is missing (code ``template_missing``).
        """
        chart = (APP_HELM_CHART_TEMPLATE, spec.chart or OBJECT_DEFAULT_CHART)
        release = (APP_KUBERNETES_TEMPLATE, OBJECT_HELM_RELEASE_TEMPLATE)
        flux = (APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)
        return Collected(
            input=RenderInput(
                uuid=cluster,
                name=spec.name,
                namespace=spec.namespace,
                bare=spec.bare,
                values=spec.values,
                chart_template=await self._template(*chart, "Helm chart template"),
                helm_release_template=await self._template(*release, "HelmRelease template"),
                flux_template=await self._template(*flux, "Flux template"),
                url_self=f"{self._external_url}/uuid/{cluster}",
                url_helm=f"{self._external_url}/uuid/{REPOSITORY_HELM_CHARTS}",
            ),
            sources=(chart, release, flux),
        )

    async def _template(self, app: UUID, object_: UUID, word: str) -> JsonObject:
        entry = await self._entries.get(app, object_)
        if entry is None or not isinstance(entry.body, dict):
            raise Stalled(
                f"The {word} {object_} does not exist.",
                code="template_missing",
                hint=f"Write the entry of Application {app}, or name another chart in the cluster's configuration.",
                where=f"{app}/{object_}",
            )
        body: JsonObject = entry.body
        return body
