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
    """What the routes of charts and their templates work with."""

    charts: OwnCharts
    templates: ChartTemplates
    nudges: Nudges


async def chart_room_of(request: Request) -> ChartRoom:
    """That of the application that serves this request. Not a plain function: those run in threads."""
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
    """Every chart in `shared/helm-charts`: those that the centre brings, and those that somebody has pushed."""
    return ChartList(items=[_chart(each) for each in await room.charts.all()])


@router.put(
    "/v1/chart/{chart}",
    summary="Push a chart",
    response_model=PushedChartBody,
    openapi_extra=_ARCHIVE,
    responses=_NEW_CHART,
)
async def push_chart(*, chart: str, operator: Pusher, request: Request, room: TheChartRoom) -> Response:
    """One commit to `shared/helm-charts` replaces the whole chart; every edge whose template uses it gets it.

    `Chart.yaml` has the name of the path. A version that was pushed before, with other files, is refused: 409
    `chart_version_taken`. So is a chart whose schema does not take the values of a Helm chart template or a cluster
    that uses it: 422 `chart_misfit`. `If-Match` and `If-None-Match` compare with the version that is there, which is
    also the `ETag`. The same push again answers as before; `Edgewright-Commit` is the head of `shared/helm-charts`.
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
    """One that somebody has pushed, and that no template and no other chart uses: 409 `chart_in_use`.

    Honours `If-Match`.

    `Edgewright-Commit` is the commit without it.
    """
    precondition = precondition_of(request)
    commit = await room.charts.remove(chart, actor=actor_of(operator), precondition=precondition)
    return Response(status_code=204, headers={COMMIT_HEADER: commit})


@router.get("/v1/template", summary="List Helm chart templates")
async def list_templates(*, _operator: Reader, room: TheChartRoom) -> TemplateList:
    """Those that `chart` of a cluster can name, without their values."""
    found = await room.templates.all()
    users = await room.templates.directory.chart_users()
    return TemplateList(items=[TemplateSummary(**_summary(each), clusters=users.get(each.uuid, 0)) for each in found])


@router.get("/v1/template/{template}", summary="A Helm chart template", response_model=TemplateBody)
async def show_template(*, template: str, _operator: Reader, room: TheChartRoom) -> Response:
    """By its name or its UUID, with its `ETag`."""
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
    """By its name or its UUID; a name that is not there yet makes one (201). Honours `If-Match` and `If-None-Match`.

    `chart` is the name of a chart that was pushed, or a path within its source. 422 `chart_missing`:
    `shared/helm-charts` has no such chart; 422 `values_misfit`: its schema does not take the values. Every cluster
    with the template is rendered anew.
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
    """One that no cluster has: 409 `template_in_use`. Honours `If-Match`."""
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
