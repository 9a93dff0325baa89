"""Request bodies: bounded, read after the caller is known, and parsed whatever content type a tool says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from api.allowances import Allowance
from api.json_text import JsonLimits, parse_json
from api.operator_time import one_body_at_a_time
from edgewright.domain.bounds import STATUS_BYTES, STATUS_LEVELS, STATUS_NODES
from edgewright.errors import Invalid, Refused, TooLarge

KIB = 1024
SMALL_JSON = JsonLimits(16 * KIB, levels=20, nodes=1000)
"""Limits of a body, unless the route says otherwise."""
STATUS_JSON = JsonLimits(STATUS_BYTES, levels=STATUS_LEVELS, nodes=STATUS_NODES)
"""Limits of what an edge says of itself: some 300 hosts."""
ENTRY_JSON = JsonLimits(1024 * KIB, levels=100, nodes=50_000)
"""Limits of Config Store entries and clusters, which hold what others have designed."""
OFF_LOOP = 64 * KIB
"""Bytes from which a body is parsed in a thread; what is smaller takes less than a change of threads."""

EDGE_BURST = 16 * KIB * KIB
EDGE_PER_SECOND = 256 * KIB
"""Bytes that one cluster may send: several Secrets of any size at once, then a status every other second."""
LEAST_CHARGE = KIB
"""Bytes that the smallest body counts as: reading it at all has its price."""

Model = TypeVar("Model", bound=BaseModel)
Charge = Callable[[int], None]
"""Takes bytes; raises when there were too many."""


class Truncated(Refused):
    """The client went away before its body was complete."""

    code = "body_truncated"
    status = HTTPStatus.BAD_REQUEST


async def bounded_body(request: Request, limit: int) -> bytes:
    """The request's body.

    Raises:
        TooLarge: it has, or says it has, more than ``limit`` bytes; no more than that is ever held.
        TooMany: it is of an edge that has sent too much in a while.
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
    charge: Charge = getattr(request.state, "charge_body", _free)
    charge(LEAST_CHARGE)
    size, paid = 0, LEAST_CHARGE
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if size > paid:
                charge(size - paid)
                paid = size
            yield chunk
    except ClientDisconnect:
        raise Truncated("The body ended before it was complete.") from None


def edge_bodies() -> Allowance:
    """What the bodies of each cluster are charged to."""
    return Allowance(
        burst=EDGE_BURST,
        per_second=EDGE_PER_SECOND,
        code="body_allowance_spent",
        sentence="This cluster has sent more than the centre reads of one cluster in a while.",
    )


def charge_bodies(request: Request, allowance: Allowance, payer: Hashable) -> None:
    """Has the bodies of this request count against what a cluster, or a token that is used up, may send."""
    request.state.charge_body = lambda octets: allowance.spend(payer, octets)


async def json_value(request: Request, limits: JsonLimits = SMALL_JSON) -> Any:
    """The request's body as a JSON value; raises like ``bounded_body`` and ``parse_json``."""
    body = await bounded_body(request, limits.octets)
    if len(body) > OFF_LOOP:
        async with one_body_at_a_time():
            return await asyncio.to_thread(parse_json, body, limits)
    return parse_json(body, limits)


class JsonBody(Generic[Model]):
    """A dependency that reads the body as a model. The OpenAPI document finds the model here.

    Args:
        optional: an empty body counts as ``{}``.
    """

    def __init__(self, model: type[Model], *, limits: JsonLimits = SMALL_JSON, optional: bool = False) -> None:
        self.model = model
        self.limits = limits
        self.optional = optional

    async def __call__(self, request: Request) -> Model:
        value = await self._value(request)
        try:
            if self.limits.octets > OFF_LOOP:
                async with one_body_at_a_time():
                    return await asyncio.to_thread(self.model.model_validate, value)
            return self.model.model_validate(value)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None

    async def _value(self, request: Request) -> Any:
        if not self.optional:
            return await json_value(request, self.limits)
        declared = request.headers.get("content-length")
        chunked = "transfer-encoding" in request.headers
        if not chunked and declared in {None, "0"}:
            return {}
        return await json_value(request, self.limits)


def json_object(value: Any) -> dict[str, Any]:
    """The value, which has to be an object.

    Raises:
        Invalid: code ``request_invalid``.
    """
    if not isinstance(value, dict):
        raise Invalid(
            "The body must be a JSON object.",
            code="request_invalid",
            hint='A JSON object looks like {"hosts": []}.',
            where="/",
        )
    return value


def _free(_octets: int) -> None:
    """Operators' bodies cost nothing."""


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body has more than {limit} bytes.", code="too_large", hint="Send less at once.")
