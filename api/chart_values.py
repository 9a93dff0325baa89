"""Refuses values that the chart of a cluster would not take, before an edge does and keeps its old release."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog

from edgewright.adapters.charts.misfits import Misfit, is_in
from edgewright.adapters.charts.schemas import ChartSchemas, Unchecked
from edgewright.application.configurations import DECIDING
from edgewright.application.rendering import Templates, read_templates
from edgewright.domain.cluster import ClusterSpec
from edgewright.domain.cluster_entries import spec_from
from edgewright.domain.json import Json, same_json
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE
from edgewright.domain.rendering import releases_of_shared_charts
from edgewright.domain.templates import TemplateError
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_HELM_CHART_TEMPLATE
from edgewright.errors import Invalid, Stalled
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.git_server import GitServer

_ADVICE = "Change that value; nothing was stored."
_log = structlog.get_logger("edgewright.api")


class ChartValues:
    """Holds values against the schema of a chart before they are stored; reads both anew each time.

    Args:
        url: base of the centre's URLs, as templates are rendered with.
    """

    def __init__(self, config: ConfigStore, git: GitServer, url: str) -> None:
        self._config = config
        self._charts = ChartSchemas(git)
        self._url = url

    async def check_configuration(self, cluster: UUID, body: Mapping[str, Any]) -> None:
        """Lets everything pass that is refused elsewhere, and what is stored already: `doctor` tells of that.

        Raises:
            Invalid: code ``values_misfit``; ``where`` is the JSON pointer in the configuration entry.
        """
        if await self._is_stored(APP_CLUSTER_CONFIGURATION, cluster, body):
            return
        try:
            spec = await asyncio.to_thread(spec_from, body)
            templates = await read_templates(self._config, spec.chart)
        except (Invalid, Stalled):
            return
        found = await asyncio.to_thread(self._misfit, templates, cluster, spec)
        if found is not None:
            raise _refusal(found, _advice(found, spec.values, templates.chart.get("values")))

    async def check_template(self, chart: UUID, body: Any) -> None:
        """What every cluster with this Helm chart template would get; what is missing may be among their own values.

        Raises:
            Invalid: code ``values_misfit``; ``where`` is the JSON pointer in the template.
        """
        if not isinstance(body, Mapping) or not isinstance(body.get("values"), Mapping):
            return
        if await self._is_stored(APP_HELM_CHART_TEMPLATE, chart, body):
            return
        try:
            templates = replace(await read_templates(self._config, None), chart=body)
        except Stalled:
            return
        anybody = ClusterSpec(name="anybody", namespace=EDGEWRIGHT_NAMESPACE)
        found = await asyncio.to_thread(self._misfit, templates, chart, anybody, partly=True)
        if found is not None:
            raise _refusal(found, _ADVICE)

    async def _is_stored(self, app: UUID, object_: UUID, body: Mapping[str, Any]) -> bool:
        """Whether the entry has the chart and the values of a body already."""
        entry = await self._config.get(app, object_)
        before = entry.body if entry is not None else None
        return isinstance(before, Mapping) and all(same_json(before.get(at), body.get(at)) for at in DECIDING)

    def _misfit(
        self, templates: Templates, cluster: UUID, spec: ClusterSpec, *, partly: bool = False
    ) -> Misfit | None:
        try:
            releases = releases_of_shared_charts(templates.input_for(cluster, spec, self._url))
        except TemplateError:
            return None  # nothing is rendered, and Blocked says why
        verdicts: Sequence[Misfit | Unchecked] = list(self._charts.verdicts(releases, partly=partly))
        for verdict in verdicts:
            if isinstance(verdict, Unchecked):
                _log.warning("chart values not checked", chart=verdict.chart, reason=verdict.reason)
        return next((verdict for verdict in verdicts if isinstance(verdict, Misfit)), None)


def _advice(misfit: Misfit, own: Json, of_template: Json) -> str:
    if is_in(own, misfit.path):
        return _ADVICE
    if is_in(of_template, misfit.path):
        return "It comes from the Helm chart template: correct it there."
    return "Set it among the values of the cluster, or in the Helm chart template."


def _refusal(misfit: Misfit, advice: str) -> Invalid:
    return Invalid(
        f"These values do not fit the chart {misfit.chart}: {misfit.sentence}",
        code="values_misfit",
        hint=f"Did you mean {misfit.meant}?" if misfit.meant and advice == _ADVICE else advice,
        where=f"/values{misfit.pointer}",
    )
