"""Request bodies: bounded, read after the caller is known, and parsed whatever content type a tool says."""

import json
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Generic, NoReturn, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from edgewright.errors import Invalid, Refused, TooLarge

BODY_LIMIT = 1024 * 1024
"""Bytes of a request's body, unless the route says otherwise."""
DEEPEST_JSON = 100
"""Levels of objects and arrays; every document that we know has less than 20."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""An escaped NUL in JSON text, not an escaped backslash in front of these letters."""

Model = TypeVar("Model", bound=BaseModel)


class Truncated(Refused):
    """The client went away before its body was complete."""

    code = "body_truncated"
    status = HTTPStatus.BAD_REQUEST


async def bounded_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The request's body.

    Raises:
        TooLarge: it has, or says it has, more than ``limit`` bytes; no more than that is ever held.
    """
    body = bytearray()
    async for chunk in bounded_stream(request, limit):
        body += chunk
    return bytes(body)


async def bounded_stream(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The request's body piece by piece; raises like ``bounded_body``."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            yield chunk
    except ClientDisconnect:
        raise Truncated("The body ended before it was complete.") from None


async def json_value(request: Request, limit: int = BODY_LIMIT) -> Any:
    """The request's body as a JSON value.

    Raises:
        Refused: code ``json_malformed``: no JSON, or JSON that no store can hold (NaN, half of a surrogate
            pair, NUL, thousands of levels).
    """
    body = await bounded_body(request, limit)
    try:
        value = json.loads(body, parse_constant=_no_constant)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise _malformed(f"The body is not valid JSON{place}.") from None
    if _NUL.search(text):
        raise _malformed("The body holds a NUL character, which no name or text may have.")
    if _deeper_than(value, DEEPEST_JSON):
        raise _malformed(f"The body has more than {DEEPEST_JSON} levels.")
    return value


class JsonBody(Generic[Model]):
    """A dependency that reads the body as a model. The OpenAPI document finds the model here.

    Args:
        optional: an empty body counts as ``{}``.
    """

    def __init__(self, model: type[Model], *, limit: int = BODY_LIMIT, optional: bool = False) -> None:
        self.model = model
        self.limit = limit
        self.optional = optional

    async def __call__(self, request: Request) -> Model:
        value = await self._value(request)
        try:
            return self.model.model_validate(value)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None

    async def _value(self, request: Request) -> Any:
        if not self.optional:
            return await json_value(request, self.limit)
        declared = request.headers.get("content-length")
        chunked = "transfer-encoding" in request.headers
        if not chunked and declared in {None, "0"}:
            return {}
        return await json_value(request, self.limit)


def json_object(value: Any) -> dict[str, Any]:
    """The value, which has to be an object.

    Raises:
        Invalid: code ``request_invalid``.
    """
    if not isinstance(value, dict):
        raise Invalid("The body has to be a JSON object.", code="request_invalid", where="/")
    return value


def _deeper_than(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("JSON has no such number")


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body has more than {limit} bytes.", code="too_large")


def _malformed(detail: str) -> Refused:
    return Refused(detail, code="json_malformed")
