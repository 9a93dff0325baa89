"""Who is calling, and whether that door is open to them.

Every protected route declares one of the doors below as a dependency, before anything reads the body:

- ``Needs(permission)``: an operator token with that permission;
- ``identify``: any valid caller; the route decides (the Config Store's own-status write).

What edges ask all the time has doors of its own, with less to read: ``api.agent_callers`` and ``api.git_callers``.

401 means that the credentials are missing or wrong, 403 that they are right and not enough.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Annotated, Protocol, TypeVar
from uuid import UUID

import structlog
from fastapi import Depends, Request

from api.access import Access, TheAccess
from api.bodies import charge_bodies
from api.connections.callers import identify_caller
from api.connections.places import source_of
from api.log_context import about_cluster
from api.presented import Presented, presented_by
from api.query import refuse_unknown_query
from edgewright.domain import credentials as spelling
from edgewright.domain.cluster import Acceptance, CredentialState
from edgewright.errors import Forbidden, Stalled, Unauthenticated, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import Credential, Holder, RegistrationToken
from edgewright.ports.operators import OperatorToken, Permission

LEAVE = "To take Edgewright off an edge: edgewright cluster uninstall-script."
FRESH_LINE = f"Get a fresh line: edgewright cluster bootstrap NAME. {LEAVE}"
REATTACH = " An edge is attached again with a fresh line: edgewright cluster bootstrap NAME."
"""A restored backup may be older than the edge's registration."""
SESSION_PREFIX = "session:"
"""Names of the short-lived tokens that ``POST /token`` makes: ``session:<id of the first token>:<own id>``."""

EDGE_SESSION_PREFIX = "edge-session:"
"""Names of those that it makes for edges: ``edge-session:<cluster>:<id of the credential>:<own id>``."""

_log = structlog.get_logger("edgewright.api")


@dataclass(frozen=True)
class EdgeCaller:
    """A credential of a cluster that matched, with the row of the cluster as it was then."""

    credential: Credential
    row: ClusterRow

    @property
    def cluster(self) -> UUID:
        return self.row.uuid

    @property
    def name(self) -> str:
        return self.row.spec.name

    @property
    def state(self) -> CredentialState:
        return self.credential.state

    @property
    def actor(self) -> str:
        return self.credential.role.value


Caller = OperatorToken | EdgeCaller


class OfEdge(Protocol):
    """A caller with a credential of a cluster, however much was read of that."""

    @property
    def cluster(self) -> UUID: ...

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> CredentialState: ...


E = TypeVar("E", bound=OfEdge)
MatchEdge = Callable[[Access, UUID, spelling.CredentialSecret], Awaitable[E | None]]
"""Finds whose secret this is, for a cluster that the caller names; None: nobody's."""
MatchSession = Callable[[Access, OperatorToken], Awaitable[E | None]]
"""Finds the edge that has opened a session; None: the credential that opened it is gone."""


def actor_of(operator: OperatorToken) -> str:
    """How the audit log names an operator."""
    return f"token:{operator.name}"


async def identify(request: Request, access: TheAccess) -> Caller:
    """The caller, whoever it is; raises like ``identified``."""
    return await identified(request, access, match_edge)


async def _refuse_session(_access: Access, _session: OperatorToken) -> None:
    raise Forbidden(
        "The session of a cluster is for the Config Store alone.",
        code="edge_session",
        hint="Send the cluster's own credential.",
    )


async def identified(
    request: Request,
    access: Access,
    match_edge: MatchEdge[E],
    match_session: MatchSession[E] = _refuse_session,
) -> OperatorToken | E:
    """The caller, as an operator or as what is made of an edge.

    Raises:
        Unauthenticated: no credentials, or wrong ones (those are counted).
        Forbidden: code ``foreign_page``: a browser sent them on behalf of a page of somebody else; code
            ``edge_session``: a session of an edge, where none is taken.
        TooMany: code ``too_many_requests``: too many requests with these credentials have come at once.
        TooManyConnections: operators, that token, or that cluster, have too many connections.
    """
    presented = presented_by(request)
    if presented is None:
        raise Unauthenticated("This needs credentials.", hint="Send Authorization: Bearer with an operator token.")
    _refuse_foreign_page(request, presented, access.cors_origins)
    async with access.arrivals.turn(presented.secret):
        with _TO_A_STRANGER:
            caller = await _match(access, presented, match_edge)
            if isinstance(caller, OperatorToken) and caller.name.startswith(EDGE_SESSION_PREFIX):
                caller = await match_session(access, caller)
    if caller is None:
        count_wrong(request, access)
        hint = f"They are wrong, expired or revoked.{REATTACH if presented.is_of_an_edge else ''}"
        raise Unauthenticated("These credentials are not valid.", hint=hint)
    if isinstance(caller, OperatorToken):
        access.operator_time.learn(presented.secret, asker(caller))
        identify_caller(access.places, request.scope, cluster=None, token=asker(caller))
        return caller
    about_cluster(caller.cluster)
    identify_caller(access.places, request.scope, cluster=caller.cluster)
    charge_bodies(request, access.edge_bodies, caller.cluster)
    return caller


def count_wrong(request: Request, access: Access) -> None:
    """Counts one wrong credential against the caller's address; raises when there were too many of that."""
    access.metrics.wrong_credentials.inc()
    access.wrong_credentials.count(source_of(request.client.host) if request.client else "unknown")


class Needs:
    """A door for operators: the dependency returns their token, and has refused unknown query parameters.

    Args:
        permission: what the token must hold.
    """

    def __init__(self, permission: Permission) -> None:
        self.permission = permission

    async def __call__(self, request: Request, caller: Annotated[Caller, Depends(identify)]) -> OperatorToken:
        operator = require(caller, self.permission)
        refuse_unknown_query(request)
        return operator


def require(caller: OperatorToken | OfEdge, permission: Permission) -> OperatorToken:
    """The caller as an operator who holds a permission.

    Raises:
        Forbidden: the credential of a cluster, or a token without that permission.
    """
    if not isinstance(caller, OperatorToken):
        raise Forbidden("A cluster's own credential does not open this.", hint="Use an operator token.")
    if not caller.allows(permission):
        raise Forbidden(
            f"The token {caller.name} does not hold the permission {permission.value}.",
            hint=f"Make one with it: edgewright token create NAME --permission {permission.value}.",
        )
    return caller


def require_active(edge: E) -> E:
    """The same caller, if its credential is active.

    Raises:
        Forbidden: ``pending_acceptance``, ``suspended`` or ``detach_only``; the sentence says what follows.
    """
    match edge.state:
        case CredentialState.ACTIVE:
            return edge
        case CredentialState.PENDING:
            raise Forbidden(
                "The cluster has registered and waits for an operator to accept it.",
                code="pending_acceptance",
                hint=f"Accept it: edgewright cluster accept {edge.name}.",
            )
        case CredentialState.SUSPENDED:
            raise Forbidden(
                "The cluster was removed centrally; its credentials rest until it is created again.", code="suspended"
            )
        case _:
            raise Forbidden(
                "The cluster was deleted; its credentials are good for detaching only.", code="detach_only"
            )


async def match_registration_token(access: Access, text: str) -> RegistrationToken | None:
    """The registration token with that text, in whatever state; None if there is none."""
    try:
        spelled = spelling.parse_registration_token(text)
    except Unauthenticated:
        return None
    with _TO_A_STRANGER:
        token = await access.edge_access.token(spelled.id)
    if token is None or not spelling.matches(text, token.secret_sha256):
        return None
    return token


class _ToAStranger:
    """Who is not known yet is not told where our database is; the log has it.

    ``Waiting`` and ``Stalled`` leave this context with the code that they had inside.
    """

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (Waiting, Stalled)):
            _log.warning("cannot look up credentials", code=error.code, detail=error.detail)
            error.detail, error.hint = "The centre cannot look up these credentials now; its log says why.", None


_TO_A_STRANGER = _ToAStranger()


def _refuse_foreign_page(request: Request, presented: Presented, allowed: Collection[str]) -> None:
    """A browser that has been asked for a password sends it along with whatever any page makes it send.

    ``POST /token`` from an allowed origin passes, as ACS clients in browsers begin with it: it changes nothing, and a
    page reads the answer only if it has sent the password itself.

    Raises:
        Forbidden: code ``foreign_page``.
    """
    site = request.headers.get("sec-fetch-site", "none")
    begins = request.scope["path"] == "/token" and not {"*", request.headers.get("origin")}.isdisjoint(allowed)
    reads = begins or request.method in {"GET", "HEAD"}
    if presented.user is not None and not reads and site not in {"none", "same-origin"}:
        raise Forbidden(
            "A page of another site sent this.",
            code="foreign_page",
            hint="Send Authorization: Bearer with the token.",
        )


async def _match(access: Access, presented: Presented, match_edge: MatchEdge[E]) -> OperatorToken | E | None:
    if presented.secret.startswith(f"{spelling.OPERATOR_PREFIX}_"):
        return await _match_operator(access, presented.secret)
    try:
        cluster = UUID(presented.user or "")
        spelled = spelling.parse_cluster_secret(presented.secret)
    except (ValueError, Unauthenticated):
        return None
    return await match_edge(access, cluster, spelled)


async def _match_operator(access: Access, text: str) -> OperatorToken | None:
    try:
        spelled = spelling.parse_operator_token(text)
    except Unauthenticated:
        return None
    token = await access.operators.find(spelled.id)
    if token is None or not spelling.matches(text, token.secret_sha256):
        return None
    return token if await still_granted(access, token) else None


async def still_granted(access: Access, token: OperatorToken) -> bool:
    """Whether what a token rests on still lives: a session dies with the token that opened it."""
    root = session_root(token)
    return root is None or await access.operators.find(root) is not None


def session_root(token: OperatorToken) -> str | None:
    """The ID of the token that opened a session; None for a token that is no session."""
    if not token.name.startswith(SESSION_PREFIX):
        return None
    return token.name.removeprefix(SESSION_PREFIX).partition(":")[0]


def asker(operator: OperatorToken) -> str:
    """Whose idempotency keys an operator's are: a session's are those of the token that opened it."""
    return session_root(operator) or operator.id


async def match_edge(access: Access, cluster: UUID, spelled: spelling.CredentialSecret) -> EdgeCaller | None:
    known = await access.edge_access.with_credentials(cluster)
    if known is None:
        return None
    row, held = known
    holder = Holder(row.spec.name, row.generation, row.acceptance, held)
    credential = await matched(access, spelled, holder)
    return None if credential is None else EdgeCaller(credential, row)


async def matched(access: Access, spelled: spelling.CredentialSecret, holder: Holder) -> Credential | None:
    """The credential with that secret, proven by this use; None if the cluster holds none that is valid."""
    for credential in holder.credentials:
        if (
            credential.role is spelled.role
            and counts(credential, holder.generation)
            and spelling.matches(spelled.text, credential.secret_sha256)
        ):
            return await proven(access, credential, holder.acceptance)
    return None


def counts(credential: Credential, generation: int) -> bool:
    """Whether it is one of the present hardware's, in whatever state but revoked."""
    return credential.generation == generation and credential.state is not CredentialState.REVOKED


async def proven(access: Access, credential: Credential, acceptance: Acceptance) -> Credential:
    """Records the first use of a credential that may be used; the successor of an active one becomes active."""
    succeeds = credential.state is CredentialState.PENDING and acceptance is Acceptance.ACCEPTED
    if credential.state is not CredentialState.ACTIVE and not succeeds:
        return credential
    if credential.proven_at is None:
        await access.edge_access.record_use(credential.id)
    return replace(credential, state=CredentialState.ACTIVE) if succeeds else credential


Known = Annotated[Caller, Depends(identify)]
"""Any valid caller; the route decides what it may do."""

Reader = Annotated[OperatorToken, Depends(Needs(Permission.READ))]
ClusterOperator = Annotated[OperatorToken, Depends(Needs(Permission.CLUSTERS))]
SecretOperator = Annotated[OperatorToken, Depends(Needs(Permission.SECRETS))]
Pusher = Annotated[OperatorToken, Depends(Needs(Permission.PUSH))]
Administrator = Annotated[OperatorToken, Depends(Needs(Permission.ADMIN))]
