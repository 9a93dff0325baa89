"""The single mapping from errors to answers: ``application/problem+json`` (RFC 9457).

The bootstrap path is the one exception: whatever happens there is answered with a script, because what reads it
is ``sh``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute

from api.methods import allowed_methods
from api.problem_document import PROBLEM_TYPE, Problem
from edgewright.bootstrap import render_refusal
from edgewright.domain.reasons import reason_of
from edgewright.errors import Busy, EdgewrightError, Gone, Refused, TooLarge, TooMany, Waiting

REALM = 'Basic realm="Edgewright"'

_BOOTSTRAP_PATH = re.compile(r"/v1/cluster/[^/]*/bootstrap(?:/?|[?&].*)", re.DOTALL)
"""With a tail that somebody's quoting has moved from the query into the path (``%3Ftoken=``), it is still ``sh`` that
reads the answer."""
LIMITS = (TooLarge, TooMany, Busy)
LIMIT_CODES = frozenset({"json_too_deep", "json_too_many_nodes", "schema_too_costly"})
"""Refusals that are counted: a limit was reached."""
_log = structlog.get_logger("edgewright.api")


class TooManyWrongCredentials(TooMany):
    """One address has sent wrong credentials too often."""

    code = "too_many_wrong_credentials"


def problem_of(
    request: Request,
    *,
    status: int,
    code: str,
    detail: str,
    hint: str | None = None,
    where: str | None = None,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """The answer that tells of one problem; a script if ``sh`` is what reads it."""
    if _BOOTSTRAP_PATH.fullmatch(request.scope["path"]):
        return _refusal(status, detail, hint, headers)
    if _is_of_git(request):
        return PlainTextResponse("\n".join(filter(None, (detail, hint, ""))), status, dict(headers or {}))
    problem = Problem(
        type=f"urn:edgewright:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        hint=hint,
        where=where,
        request_id=request_id_of(request),
    )
    body = {**problem.model_dump(exclude_none=True), **(more or {})}
    return JSONResponse(body, status, dict(headers or {}), media_type=PROBLEM_TYPE)


def _is_of_git(request: Request) -> bool:
    """Whether git asks, which shows its user an answer in plain text, and of any other only the status."""
    agent: str = request.headers.get("user-agent", "")
    return request.scope["path"].startswith("/git/") and agent.startswith("git/")


def request_id_of(request: Request) -> str | None:
    """The ID that the middleware gave to this request."""
    request_id: str | None = request.scope.get("state", {}).get("request_id")
    return request_id


def answer_error(request: Request, error: EdgewrightError, *, more: Mapping[str, Any] | None = None) -> Response:
    """The answer to an error that was raised on purpose."""
    headers: dict[str, str] = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = REALM
    if isinstance(error, Waiting):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, Gone):
        more = {"ended_at": error.ended_at, "timeline": error.timeline, **(more or {})}
    return problem_of(
        request,
        status=error.status,
        code=error.code,
        detail=error.detail,
        hint=error.hint,
        where=error.where,
        headers=headers,
        more=more,
    )


def install_problems(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Makes every error of the application a problem document.

    Args:
        routes: all of the application, one by one: a path has what any of them does there.
    """

    async def on_http_exception(request: Request, error: Exception) -> Response:
        return _http_problem(request, cast(HTTPException, error), routes)

    app.add_exception_handler(EdgewrightError, _on_edgewright_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, on_http_exception)


async def _on_edgewright_error(request: Request, error: Exception) -> Response:
    return answer_raised(request, cast(EdgewrightError, error))


def answer_raised(request: Request, error: EdgewrightError) -> Response:
    """The answer to an error that a route has raised; counted if it is of a limit, logged if it is ours."""
    if isinstance(error, LIMITS) or error.code in LIMIT_CODES:
        request.app.state.access.metrics.limited.labels(error.code).inc()
    if not isinstance(error, Refused):
        _log.warning("request failed", code=error.code, status=error.status, detail=error.detail)
    return answer_error(request, error)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    return invalid_request(request, cast(RequestValidationError, error).errors())


def invalid_request(request: Request, errors: Sequence[Mapping[str, Any]]) -> Response:
    """The answer to a request whose parts do not validate; names the first, never repeats a value."""
    first = errors[0] if errors else {"loc": (), "type": "unknown"}
    source, *path = [str(part) for part in first["loc"]] or ["request"]
    if source == "path":
        return problem_of(
            request,
            status=404,
            code="not_found",
            detail=f"There is nothing with that {'.'.join(path)}.",
            hint=f"The {'.'.join(path)} {reason_of(first)}.",
            where="path",
        )
    where = "/" + "/".join(path) if source == "body" else f"{source} {'.'.join(path)}".strip()
    return problem_of(
        request,
        status=422,
        code="request_invalid",
        detail=f"The request is not valid: {where} {reason_of(first)}.",
        where=where,
        more={
            "errors": [{"where": "/".join(map(str, each["loc"])), "reason": reason_of(each)} for each in errors[:20]]
        },
    )


def _http_problem(request: Request, error: HTTPException, routes: Sequence[BaseRoute]) -> Response:
    code, detail = {
        404: ("route_unknown", "There is nothing at this path."),
        405: ("method_not_allowed", f"{request.method} is not something that can be done at this path."),
        413: ("too_large", "The request's body is too large."),
    }.get(error.status_code, (f"http_{error.status_code}", HTTPStatus(error.status_code).phrase + "."))
    headers, hint = dict(error.headers or {}), None
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = allowed_methods(routes, request.scope)
        hint = f"Methods of this path: {headers['Allow']}."
    elif error.status_code == HTTPStatus.NOT_FOUND and _BOOTSTRAP_PATH.fullmatch(request.scope["path"]):
        detail, hint = "This is not the URL of a bootstrap line.", "Paste the whole line, with its quotation marks."
    elif error.status_code == HTTPStatus.NOT_FOUND:
        hint = "The page /docs of the gateway lists all paths; a path does not end with a slash."
    return problem_of(request, status=error.status_code, code=code, detail=detail, hint=hint, headers=headers)


def stopping(request: Request) -> Response:
    """The answer to a request that the end of this process has interrupted."""
    return problem_of(
        request,
        status=503,
        code="gateway_stopping",
        detail="The gateway is being stopped; whether the request took effect is not known.",
        hint="Send it again, with the same Idempotency-Key if it had one.",
        headers={"Retry-After": "2"},
    )


def unexpected(request: Request, error: Exception) -> Response:
    """A defect of ours: the log gets its kind and place, never its text, which might hold a secret."""
    frame = error.__traceback__
    places = []
    while frame is not None:
        places.append(f"{frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno}")
        frame = frame.tb_next
    _log.error("unexpected error", error=type(error).__name__, places=places[-12:])
    return problem_of(
        request,
        status=500,
        code="internal_error",
        detail="Something unexpected went wrong in the centre; its log has the details.",
        hint="Look for the request ID in the gateway's log.",
    )


def _refusal(status: int, detail: str, hint: str | None, headers: Mapping[str, str] | None) -> Response:
    """``curl … | sh`` shows no error page: the sentence is a script that prints it and exits with 1."""
    sentence = f"{detail} {hint}" if hint else detail
    refused = status < HTTPStatus.INTERNAL_SERVER_ERROR
    kept = {name: value for name, value in (headers or {}).items() if name in {"Retry-After", "Allow"}}
    return PlainTextResponse(
        render_refusal(sentence), HTTPStatus.FORBIDDEN if refused else status, {"Cache-Control": "no-store", **kept}
    )
