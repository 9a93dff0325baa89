"""``Idempotency-Key``: the same key gets the first answer.

Secret writes need none of this: their staged rows are the record (see ``routes/secrets.py``).
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4, uuid5

from fastapi import Request
from starlette.responses import JSONResponse, Response

from api.auth import asker
from edgewright.domain.json import canonical_json
from edgewright.errors import EdgewrightError, Invalid, Waiting
from edgewright.ports.operators import IdempotencyKeys, OperatorToken

KEY_LIMIT = 255
_REPLAYED = "Idempotency-Replayed"
_NAMESPACE = UUID("0f3d4f52-2f0e-4f3b-9a29-5f4a5a2f0c11")


@dataclass(frozen=True)
class RememberedAnswer:
    """An answer that can be remembered; ``body`` is JSON."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        return JSONResponse(self.body, self.status, self.headers)


@dataclass(frozen=True)
class IdempotentRequest:
    """One request that may have been sent before.

    Args:
        scope: who asks for what.
        key: as sent; None: there is none, and every request is a new one.
        digest: of all that the request asks for.
    """

    scope: str
    key: str | None
    digest: str

    @property
    def uuid(self) -> UUID:
        """The same for the same key: what a gateway that died had begun is found again."""
        return uuid4() if self.key is None else uuid5(_NAMESPACE, f"{self.scope}\n{self.key}")


def idempotency_key(request: Request) -> str | None:
    """The header ``Idempotency-Key``.

    Raises:
        Invalid: code ``idempotency_key_invalid``.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= KEY_LIMIT or not key.isprintable():
        raise Invalid(
            f"An Idempotency-Key is 1 to {KEY_LIMIT} printable characters.",
            code="idempotency_key_invalid",
            where="Idempotency-Key",
        )
    return key


def once_of(request: Request, operator: OperatorToken, wish: Any) -> IdempotentRequest:
    """The request as something that is done once.

    Args:
        wish: all that it asks for beside method and path; JSON.
    """
    scope = f"{asker(operator)} {request.method} {request.url.path}"
    digest = hashlib.sha256(canonical_json([scope, wish])).hexdigest()
    return IdempotentRequest(scope=scope, key=idempotency_key(request), digest=digest)


async def first_answer(
    idempotency: IdempotencyKeys, once: IdempotentRequest, act: Callable[[], Awaitable[RememberedAnswer]]
) -> Response:
    """Acts, or gives the answer that the same key got first. An answer that refuses is not remembered."""
    if once.key is None:
        return (await act()).response()
    remembered = await idempotency.claim(once.scope, once.key, once.digest)
    if remembered is not None:
        if remembered.status == 0:
            raise Waiting("The first request with this key is still under way.", code="first_request_under_way")
        return JSONResponse(remembered.body, remembered.status, {**remembered.headers, _REPLAYED: "true"})
    try:
        outcome = await act()
    except EdgewrightError:
        await idempotency.release(once.scope, once.key)
        raise
    await idempotency.settle(once.scope, once.key, outcome.status, outcome.body, outcome.headers)
    return outcome.response()


def as_json(model: Any) -> Any:
    """A model as plain JSON values."""
    return json.loads(model.model_dump_json(by_alias=True))
