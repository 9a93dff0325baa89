"""What a message to a workflow, and an activity that follows from it, say of the request that caused them."""

from collections.abc import Mapping

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload

from edgewright.domain.bounds import Word
from edgewright.domain.cluster import Frozen
from edgewright.messages.names import HEADER_CAUSE


class Cause(Frozen):
    """Logs and traces alone read it; nothing is decided by it.

    Args:
        request: the ID of the HTTP request; None for what no request has caused.
        traceparent: the span to go on from, as W3C Trace Context writes it; None while nothing is traced.
    """

    request: Word | None = None
    traceparent: Word | None = None


def header_of(cause: Cause) -> Mapping[str, Payload]:
    """The header that carries a cause; none for an empty one, because each costs bytes of history."""
    if cause == Cause():
        return {}
    data = cause.model_dump_json(exclude_none=True).encode()
    return {HEADER_CAUSE: Payload(metadata={"encoding": b"json/plain"}, data=data)}


def cause_in(headers: Mapping[str, Payload]) -> Cause:
    """The cause that came in a header; an empty one without it, or if it cannot be read."""
    payload = headers.get(HEADER_CAUSE)
    if payload is None:
        return Cause()
    try:
        return Cause.model_validate_json(payload.data)
    except ValidationError:
        return Cause()
