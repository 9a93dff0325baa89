"""Refuses values that the chart of a cluster would not take, before an edge does and keeps its old release."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog

from activities.rendering import Templates, read_templates
from edgewright.adapters.charts.misfits import Misfit, is_in
from edgewright.adapters.charts.schemas import ChartSchemas, Unchecked
from edgewright.adapters.database.cluster_rows import spec_from
from edgewright.domain.cluster import ClusterSpec
from edgewright.domain.json import same_json
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE
from edgewright.domain.rendering import releases_of_shared_charts
from edgewright.domain.templates import TemplateError
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import Invalid, Stalled
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.git_server import GitServer

DECIDING = ("chart", "values")
"""Fields of a configuration without whose change nothing is checked anew."""
_log = structlog.get_logger("edgewright.api")


class ChartValues:
    """Holds values against the schema of a chart before they are stored; reads both anew each time.

    Args:
        url: base of the centre's URLs, as templates are rendered with.
    """

    def __init__(self, entries: ConfigStore, git: GitServer, url: str) -> None:
        self._entries = entries
        self._charts = ChartSchemas(git)
        self._url = url

    async def check_configuration(self, cluster: UUID, body: Mapping[str, Any]) -> None:
        """Lets everything pass that is refused elsewhere, and what is stored already: `doctor` tells of that.

        Raises:
            Invalid: code ``values_misfit``; ``where`` is the JSON pointer in the configuration entry.
        """
        stored = await self._entries.get(APP_CLUSTER_CONFIGURATION, cluster)
        before = stored.body if stored is not None else None
        if isinstance(before, Mapping) and all(same_json(before.get(name), body.get(name)) for name in DECIDING):
            return
        try:
            spec = await asyncio.to_thread(spec_from, body)
            templates = await read_templates(self._entries, spec.chart)
        except (Invalid, Stalled):
            return
        found = await asyncio.to_thread(self._misfit, templates, cluster, spec)
        if found is not None:
            own = is_in(spec.values, found.path)
            elsewhere = "It comes from the Helm chart template, or from nowhere: set it there, or in the values."
            raise _refusal(found, "" if own else elsewhere)

    async def check_template(self, chart: UUID, body: Any) -> None:
        """What every cluster with this Helm chart template would get; what is missing may be among their own values.

        Raises:
            Invalid: code ``values_misfit``; ``where`` is the JSON pointer in the template.
        """
        if not isinstance(body, Mapping) or not isinstance(body.get("values"), Mapping):
            return
        try:
            templates = replace(await read_templates(self._entries, None), chart=body)
        except Stalled:
            return
        anybody = ClusterSpec(name="anybody", namespace=EDGEWRIGHT_NAMESPACE)
        found = await asyncio.to_thread(self._misfit, templates, chart, anybody, partly=True)
        if found is not None:
            raise _refusal(found, "")

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
                _log.warning("values were not checked", chart=verdict.chart, reason=verdict.reason)
        return next((verdict for verdict in verdicts if isinstance(verdict, Misfit)), None)


def _refusal(misfit: Misfit, elsewhere: str) -> Invalid:
    meant = f"Did you mean {misfit.meant}? " if misfit.meant else ""
    return Invalid(
        f"These values do not fit the chart {misfit.chart}: {misfit.sentence}",
        code="values_misfit",
        hint=f"{meant}{elsewhere}".strip() or "Change that value; nothing was stored.",
        where=f"/values{misfit.pointer}",
    )
