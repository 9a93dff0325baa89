"""Finding what a request names."""

from difflib import get_close_matches
from typing import Any, Protocol
from uuid import UUID

from pydantic import ValidationError

from edgewright.domain.cluster import ClusterSettings
from edgewright.domain.ended import cluster_deleted, left_on_edge
from edgewright.domain.reasons import reason_of
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, APP_OBJECT_INFO
from edgewright.errors import Invalid, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore


class KnowsClusters(Protocol):
    """Whatever a route works with, as far as its clusters go."""

    @property
    def directory(self) -> ClusterDirectory: ...


async def open_cluster(room: KnowsClusters, cluster: UUID) -> ClusterRow:
    """The row of a cluster whose deletion has not finished.

    Raises:
        NotFound: code ``cluster_unknown``.
        Gone: code ``cluster_deleted``.
    """
    row = await room.directory.get(cluster)
    if row is None:
        raise cluster_unknown(cluster)
    refuse_deleted(row)
    return row


def refuse_deleted(row: ClusterRow | None) -> None:
    """For whoever may name something that is no cluster as well.

    Raises:
        Gone: code ``cluster_deleted``.
    """
    if row is not None and row.closed_at is not None:
        edge = left_on_edge(row.purge, row.acceptance, over=True)
        raise cluster_deleted(row.uuid, row.spec.name, row.closed_at, edge=edge)


def cluster_unknown(cluster: UUID) -> NotFound:
    """There never was a cluster with that UUID."""
    return NotFound(
        f"There is no cluster {cluster}.", code="cluster_unknown", hint="edgewright cluster list shows all clusters."
    )


async def chart_uuid(config: ConfigStore, chart: str) -> UUID:
    """The Helm chart template that a UUID or a name means.

    Raises:
        Invalid: ``chart_unknown``; ``template_ambiguous``: several have that name.
    """
    try:
        return UUID(chart)
    except ValueError:
        pass
    templates = await config.objects(APP_HELM_CHART_TEMPLATE)
    infos = await config.get_each([(APP_OBJECT_INFO, each) for each in templates])
    names = {each.object: each.body.get("name") for each in infos if each is not None and isinstance(each.body, dict)}
    found = [template for template, name in names.items() if name == chart]
    if len(found) > 1:
        raise Invalid(
            "Several Helm chart templates have that name.",
            code="template_ambiguous",
            hint=f"Name one by its UUID: {', '.join(map(str, found[:5]))}.",
            where="/chart",
        )
    if not found:
        close = get_close_matches(chart, [name for name in names.values() if isinstance(name, str)], n=1)
        raise Invalid(
            "No Helm chart template has that name.",
            code="chart_unknown",
            hint=f"Did you mean {close[0]}?" if close else "`edgewright template list` shows all.",
            where="/chart",
        )
    return found[0]


def settings_of(values: dict[str, Any]) -> ClusterSettings:
    """Cluster settings from JSON values, with defaults for what is absent.

    Raises:
        Invalid: code ``schema_violation``.
    """
    try:
        return ClusterSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "/" + "/".join(map(str, first["loc"]))
        raise Invalid(f"{where} {reason_of(first)}.", code="schema_violation", where=where) from None
