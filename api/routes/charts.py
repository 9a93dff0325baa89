"""Charts that people push, and Helm chart templates by name."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from api.auth import ClusterOperator, Pusher, Reader, actor_of
from api.bodies import ENTRY_JSON, JsonBody, bounded_body
from api.idempotency import as_json
from api.nudges import Nudges
from api.preconditions import precondition_of, quoted
from api.schemas.charts import (
    ChartBody,
    ChartList,
    PushedChartBody,
    TemplateBody,
    TemplateList,
    TemplateSummary,
    WantedTemplate,
)
from edgewright.adapters.charts.own_charts import packed_chart
from edgewright.application.chart_templates import ChartTemplate, ChartTemplates, TemplateWish
from edgewright.application.own_charts import OwnCharts, SharedChart
from edgewright.errors import Invalid

COMMIT_HEADER = "Edgewright-Commit"
router = APIRouter(tags=["charts"])


@dataclass(frozen=True)
class ChartRoom:
    """Ports and values that the routes of charts and templates use."""

    charts: OwnCharts
    templates: ChartTemplates
    nudges: Nudges


async def chart_room_of(request: Request) -> ChartRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: ChartRoom = request.app.state.chart_room
    return room


TheChartRoom = Annotated[ChartRoom, Depends(chart_room_of)]
_ARCHIVE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The chart as `helm package` packs it (.tgz), whatever the content type: at most 1 MiB.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_NEW_CHART: dict[int | str, dict[str, Any]] = {201: {"description": "The chart is new.", "model": PushedChartBody}}
_NEW_TEMPLATE: dict[int | str, dict[str, Any]] = {201: {"description": "It is new.", "model": TemplateBody}}


@router.get("/v1/chart", summary="List charts")
async def list_charts(*, _operator: Reader, room: TheChartRoom) -> ChartList:
    """Lists every chart in `shared/helm-charts`: the built-in ones and those that people pushed."""
    return ChartList(items=[_chart(each) for each in await room.charts.all()])


@router.put(
    "/v1/chart/{chart}",
    summary="Push a chart",
    response_model=PushedChartBody,
    openapi_extra=_ARCHIVE,
    responses=_NEW_CHART,
)
async def push_chart(*, chart: str, operator: Pusher, request: Request, room: TheChartRoom) -> Response:
    """Replaces the whole chart with one commit to `shared/helm-charts`; every edge whose template uses it gets it.

    `Chart.yaml` must have the name in the path. 409 `chart_version_taken`: this version was pushed before with other
    files. 422 `chart_misfit`: the chart's schema does not allow the values of a Helm chart template or a cluster that
    uses it. `If-Match` and `If-None-Match` compare with the present version, which is also the `ETag`. Repeating a
    push returns the same answer; `Edgewright-Commit` is the head of `shared/helm-charts`.
    """
    precondition = precondition_of(request)
    archive = await bounded_body(request, ENTRY_JSON.octets)
    packed = await asyncio.to_thread(packed_chart, archive)
    if packed.facts.name != chart:
        raise Invalid(
            f"The chart in the archive is called {packed.facts.name}.",
            code="chart_name_invalid",
            hint="Push it under the name that its Chart.yaml says.",
        )
    pushed = await room.charts.push(packed, actor=actor_of(operator), precondition=precondition)
    body = PushedChartBody(
        name=pushed.facts.name,
        version=pushed.facts.version,
        replaced=pushed.before or None,
        commit=pushed.commit,
        clusters=pushed.clusters,
        unchecked_clusters=pushed.unchecked,
        warnings=list(pushed.warnings),
    )
    headers = {"ETag": quoted(pushed.facts.version), COMMIT_HEADER: pushed.commit}
    return JSONResponse(as_json(body), 200 if pushed.before else 201, headers)


@router.delete("/v1/chart/{chart}", status_code=204, summary="Remove a chart")
async def remove_chart(*, chart: str, operator: Pusher, request: Request, room: TheChartRoom) -> Response:
    """Removes a pushed chart. 409 `chart_in_use`: a template or another chart uses it.

    Honours `If-Match`.

    `Edgewright-Commit` is the commit that removed it.
    """
    precondition = precondition_of(request)
    commit = await room.charts.remove(chart, actor=actor_of(operator), precondition=precondition)
    return Response(status_code=204, headers={COMMIT_HEADER: commit})


@router.get("/v1/template", summary="List Helm chart templates")
async def list_templates(*, _operator: Reader, room: TheChartRoom) -> TemplateList:
    """Lists the templates that a cluster's `chart` can name, without their values."""
    found = await room.templates.all()
    users = await room.templates.directory.chart_users()
    return TemplateList(items=[TemplateSummary(**_summary(each), clusters=users.get(each.uuid, 0)) for each in found])


@router.get("/v1/template/{template}", summary="A Helm chart template", response_model=TemplateBody)
async def show_template(*, template: str, _operator: Reader, room: TheChartRoom) -> Response:
    """Finds the template by name or UUID, and returns it with its `ETag`."""
    return await _shown(room, await room.templates.named(template), 200)


@router.put(
    "/v1/template/{template}",
    summary="Write a Helm chart template",
    response_model=TemplateBody,
    responses=_NEW_TEMPLATE,
)
async def put_template(
    *,
    template: str,
    operator: ClusterOperator,
    request: Request,
    wish: Annotated[WantedTemplate, Depends(JsonBody(WantedTemplate, limits=ENTRY_JSON))],
    room: TheChartRoom,
) -> Response:
    """Finds the template by name or UUID; a new name creates one (201). Honours `If-Match` and `If-None-Match`.

    `chart` is the name of a pushed chart, or a path within its source. 422 `chart_missing`: `shared/helm-charts` has
    no such chart. 422 `values_misfit`: its schema does not allow the values. Every cluster with the template is
    rendered again.
    """
    wanted = TemplateWish(wish.chart, wish.values, wish.source, wish.prefix or "")
    written = await room.templates.put(
        template, wanted, actor=actor_of(operator), precondition=precondition_of(request)
    )
    room.nudges.nudge_many(written.users)
    return await _shown(room, written.template, 201 if written.is_new else 200)


@router.delete("/v1/template/{template}", status_code=204, summary="Remove a Helm chart template")
async def remove_template(
    *, template: str, operator: ClusterOperator, request: Request, room: TheChartRoom
) -> Response:
    """Removes a template. 409 `template_in_use`: a cluster uses it. Honours `If-Match`."""
    await room.templates.remove(template, actor=actor_of(operator), precondition=precondition_of(request))
    return Response(status_code=204)


async def _shown(room: ChartRoom, template: ChartTemplate, status: int) -> Response:
    users = await room.templates.directory.chart_users()
    clusters = users.get(template.uuid, 0)
    body = TemplateBody(**_summary(template), clusters=clusters, values=dict(template.values))
    return JSONResponse(as_json(body), status, {"ETag": quoted(template.etag)})


def _summary(template: ChartTemplate) -> dict[str, Any]:
    return {
        "uuid": template.uuid,
        "name": template.name or None,
        "chart": template.chart,
        "source": template.source,
        "prefix": template.prefix or None,
        "modified_at": template.modified_at,
    }


def _chart(chart: SharedChart) -> ChartBody:
    facts = chart.facts
    return ChartBody(
        name=facts.name,
        version=facts.version or None,
        app_version=facts.app_version or None,
        description=facts.description or None,
        path=chart.folder,
        own=chart.is_own,
        templates=list(chart.templates),
        clusters=chart.clusters,
    )
