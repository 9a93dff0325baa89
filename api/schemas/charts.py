"""Bodies of charts and Helm chart templates."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.domain.rendering.repository import DEFAULT_SOURCE

_ChartPath = Annotated[str, Field(min_length=1, max_length=200)]
_Label = Annotated[str, Field(max_length=63)]


class ChartBody(Answer):
    """A chart in `shared/helm-charts`.

    ``path``: how a Helm chart template refers to it. ``own``: somebody pushed it; otherwise it is built in.
    ``templates``: the Helm chart templates that use it. ``clusters``: how many clusters have one of these.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "press",
                    "version": "1.2.0",
                    "app_version": "4.1",
                    "description": "What a press line runs.",
                    "path": "own/press",
                    "own": True,
                    "templates": ["press"],
                    "clusters": 12,
                }
            ]
        },
    )

    name: str
    version: str | None
    app_version: str | None
    description: str | None
    path: str
    own: bool
    templates: list[str]
    clusters: int


class ChartList(Answer):
    items: list[ChartBody]


class PushedChartBody(Answer):
    """A chart that was pushed.

    ``replaced``: the previous version; null: none. ``commit``: of `shared/helm-charts`. ``clusters``: how many get
    the chart. ``unchecked_clusters``: for how many the values were not checked, because that took too long.
    ``warnings``: parts of the chart's schema that values are not checked against.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "press",
                    "version": "1.3.0",
                    "replaced": "1.2.0",
                    "commit": "d854a4fd41f4f7ab04183e65b9a82be4441c1e60",
                    "clusters": 12,
                    "unchecked_clusters": 0,
                    "warnings": [],
                }
            ]
        },
    )

    name: str
    version: str
    replaced: str | None
    commit: str
    clusters: int
    unchecked_clusters: int
    warnings: list[str]


class WantedTemplate(Wish):
    """The content of a Helm chart template.

    ``chart``: the name of a pushed chart, or the path of a chart within its source. ``source``: the GitRepository on
    the edge that holds it. ``values``: Helm values, whose strings are templates; a cluster's own override them.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"chart": "press", "values": {"line": "{{ name }}"}}]},
    )

    chart: _ChartPath
    source: _Label = DEFAULT_SOURCE
    prefix: _Label | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class TemplateSummary(Answer):
    """A Helm chart template without its values. ``clusters``: how many clusters have it."""

    uuid: UUID
    name: str | None
    chart: str
    source: str
    prefix: str | None
    modified_at: datetime
    clusters: int


class TemplateList(Answer):
    items: list[TemplateSummary]


class TemplateBody(TemplateSummary):
    """A Helm chart template. Clusters that name no chart use `edge-cluster`."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "uuid": "3b1c8a34-8f3b-5b84-9a3e-2d9ce4f3a2a1",
                    "name": "press",
                    "chart": "own/press",
                    "source": "helm-charts",
                    "prefix": "press",
                    "modified_at": "2026-03-01T12:00:00Z",
                    "clusters": 12,
                    "values": {"line": "{{ name }}"},
                }
            ]
        },
    )

    values: dict[str, Any]
