"""Sessions of edges: what ACS clients open with a cluster's own credential, for its own status and nothing else.

A session rests on the credential that opened it: it may do what that may at the moment, and ends with it.
"""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from api.access import Access, TheAccess
from api.auth import EDGE_SESSION_PREFIX, Caller, EdgeCaller, identified, match_edge, proven
from edgewright.domain.cluster import CredentialState, Role
from edgewright.errors import Forbidden
from edgewright.ports.operators import OperatorToken


def session_name(edge: EdgeCaller, own_id: str) -> str:
    """The name of a session of an agent.

    Raises:
        Forbidden: not an agent's credential.
    """
    if edge.credential.role is not Role.AGENT:
        raise Forbidden("Of a cluster's credentials, only the agent's opens a session.")
    return f"{EDGE_SESSION_PREFIX}{edge.cluster}:{edge.credential.id}:{own_id}"


async def identify_for_store(request: Request, access: TheAccess) -> Caller:
    """The caller, also by the session of an edge; raises like ``api.auth.identified``."""
    return await identified(request, access, match_edge, _match_session)


async def _match_session(access: Access, session: OperatorToken) -> EdgeCaller | None:
    cluster, credential_id, _ = session.name.removeprefix(EDGE_SESSION_PREFIX).split(":")
    known = await access.edge_access.with_credentials(UUID(cluster))
    if known is None:
        return None
    row, held = known
    for credential in held:
        living = credential.state is not CredentialState.REVOKED and credential.generation == row.generation
        if str(credential.id) == credential_id and living:
            return EdgeCaller(await proven(access, credential, row.acceptance), row)
    return None


KnownToStore = Annotated[Caller, Depends(identify_for_store)]
"""Any valid caller of the Config Store; the route decides what it may do."""
