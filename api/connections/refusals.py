"""Why a connection is refused or closed early, and what its client reads."""

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from api.problem_document import PROBLEM_TYPE, Problem
from edgewright.errors import Waiting

RETRY_SECONDS = 5


class TooManyConnections(Waiting):
    """A limit of connections is reached.

    Args:
        reason: which one.
    """

    code = "too_many_connections"

    def __init__(self, reason: "RefusalReason") -> None:
        refusal = reason.refusal
        super().__init__(refusal.detail, retry_after=RETRY_SECONDS, hint=refusal.hint)
        self.status = refusal.status
        self.reason = reason


@dataclass(frozen=True)
class Refusal:
    """A problem document that is written before any route is asked."""

    status: HTTPStatus
    code: str
    detail: str
    hint: str

    @property
    def answer(self) -> bytes:
        """The whole answer, after which the connection is closed."""
        problem = Problem(
            type=f"urn:edgewright:problem:{self.code}",
            title=self.status.phrase,
            status=self.status,
            detail=self.detail,
            code=self.code,
            hint=self.hint,
        )
        body = problem.model_dump_json(exclude_none=True).encode()
        retry = f"retry-after: {RETRY_SECONDS}\r\n" if self.code == TooManyConnections.code else ""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\ncontent-type: {PROBLEM_TYPE}\r\n"
            f"content-length: {len(body)}\r\n{retry}connection: close\r\n\r\n"
        )
        return head.encode() + body


class RefusalReason(StrEnum):
    """The label of the metric."""

    MALFORMED = "malformed"
    HEAD_TOO_LARGE = "head_too_large"
    PIPELINED = "pipelined"
    HANDSHAKE_DEADLINE = "handshake_deadline"
    HEAD_DEADLINE = "head_deadline"
    BODY_DEADLINE = "body_deadline"
    ANSWER_DEADLINE = "answer_deadline"
    SILENT = "silent"
    MADE_ROOM = "made_room"
    ADDRESS_LIMIT = "address_limit"
    CLUSTER_LIMIT = "cluster_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - no password
    OPERATOR_LIMIT = "operator_limit"
    OVERALL_LIMIT = "overall_limit"

    @property
    def refusal(self) -> Refusal:
        """What the client reads."""
        return _REFUSALS[self]


_MALFORMED = Refusal(
    HTTPStatus.BAD_REQUEST,
    "request_malformed",
    "This is not a valid HTTP/1.1 request.",
    "Send the request with an HTTP client, and check whether this port expects https.",
)
_HEAD_TOO_LARGE = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "headers_too_large",
    "The request has more than 64 KiB or 128 lines of headers.",
    "Send fewer or shorter headers.",
)
_TIMEOUT = Refusal(
    HTTPStatus.REQUEST_TIMEOUT,
    "request_timeout",
    "The rest of the request did not arrive in time.",
    "Send the request again.",
)
_ADDRESS = Refusal(
    HTTPStatus.TOO_MANY_REQUESTS,
    TooManyConnections.code,
    "This address has too many connections open.",
    "Close some, or reuse them for several requests. Name a proxy in EDGEWRIGHT_TRUSTED_PROXIES.",
)
_CLUSTER = Refusal(
    HTTPStatus.TOO_MANY_REQUESTS,
    TooManyConnections.code,
    "This cluster has too many connections open.",
    "Close some, or reuse them for several requests.",
)
_TOKEN = Refusal(
    HTTPStatus.TOO_MANY_REQUESTS,
    TooManyConnections.code,
    "This token has too many connections open.",
    "Close some, or reuse them for several requests.",
)
_OVERALL = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    TooManyConnections.code,
    "The gateway has as many connections open as it may have.",
    "Try again later, add a gateway, or raise EDGEWRIGHT_CONNECTIONS.",
)


_REFUSALS = {
    RefusalReason.MALFORMED: _MALFORMED,
    RefusalReason.HEAD_TOO_LARGE: _HEAD_TOO_LARGE,
    RefusalReason.PIPELINED: _MALFORMED,
    RefusalReason.HANDSHAKE_DEADLINE: _TIMEOUT,
    RefusalReason.HEAD_DEADLINE: _TIMEOUT,
    RefusalReason.BODY_DEADLINE: _TIMEOUT,
    RefusalReason.ANSWER_DEADLINE: _TIMEOUT,
    RefusalReason.SILENT: _TIMEOUT,
    RefusalReason.MADE_ROOM: _OVERALL,
    RefusalReason.ADDRESS_LIMIT: _ADDRESS,
    RefusalReason.CLUSTER_LIMIT: _CLUSTER,
    RefusalReason.TOKEN_LIMIT: _TOKEN,
    RefusalReason.OPERATOR_LIMIT: _OVERALL,
    RefusalReason.OVERALL_LIMIT: _OVERALL,
}
