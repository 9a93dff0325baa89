"""Re-sealing: an operator requests it, the edge's own controller does it, and the workflow commits the result.

No plaintext leaves the edge. A lying agent can only destroy values of its own cluster: it can neither read nor write
others, and everything that it sent is in one commit, which you can revert.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from api.agent_callers import AgentCall, AgentCaller, FromAgent
from api.auth import SecretOperator, actor_of, require_active
from api.bodies import KIB, JsonBody
from api.idempotency import as_json
from api.json_text import JsonLimits
from api.known_names import KnownCluster
from api.orders import MOST_WANTED
from api.schemas.resealing import IgnoredSecret, ResealedAnswer, ResealedSecret, ResealedSecrets, ResealWish
from api.secret_room import TheSecretRoom
from edgewright.application.lookup import open_cluster
from edgewright.application.secret_sealing import sealing_certificate
from edgewright.application.secret_wishes import check_writable
from edgewright.domain.cluster import Resealing
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Conflict
from edgewright.ports.resealing import ResealedValue, nothing_to_reseal
from edgewright.sealing import ResealingAnswer, judge_answers, stale_secrets

RESEALED_JSON = JsonLimits(4 * 1024 * KIB, levels=10, nodes=20_000)
"""Limits of a body of re-sealed values: an agent sends up to 256 KiB, or a single Secret of any size."""

router = APIRouter()


def demand_resealing(agent: AgentCaller) -> None:
    """Admits agents of clusters that are being re-sealed; refuses others before their bodies are read.

    Raises:
        Forbidden: like ``api.auth.require_active``.
        Conflict: code ``nothing_to_reseal``.
    """
    if require_active(agent).orders.resealing is None:
        raise nothing_to_reseal(agent.name)


Answers = AgentCall[ResealedSecrets]
"""What an agent has sealed anew."""
_FROM_ASKED_AGENT = FromAgent(JsonBody(ResealedSecrets, limits=RESEALED_JSON), demand=demand_resealing)


@router.post(
    "/v1/cluster/{uuid}/reseal",
    status_code=202,
    summary="Re-seal stale secrets",
    response_model=Resealing,
    tags=["secrets"],
    responses={409: {"description": "Nothing is stale, or the cluster takes no changes of secrets."}},
)
async def reseal(
    *,
    operator: SecretOperator,
    uuid: KnownCluster,
    wish: Annotated[ResealWish, Depends(JsonBody(ResealWish, optional=True))],
    room: TheSecretRoom,
) -> Response:
    """Re-seals everything that was not sealed with the certificate in use; joins a re-sealing that is under way."""
    row = await open_cluster(room, uuid)
    check_writable(row)
    certificate = sealing_certificate(row)
    stale = await asyncio.to_thread(stale_secrets, room.git, uuid, certificate.fingerprint)
    begun = await room.resealings.begin(
        uuid, row.generation, stale, actor=actor_of(operator), reason=wish.reason.strip()
    )
    if begun is None:
        raise Conflict(
            f"Every value of {row.spec.name} is sealed with the certificate in use.",
            code="nothing_to_reseal",
            hint="For a newer key, let the edge's sealed-secrets controller make one. The agent reports it.",
        )
    await room.nudges.nudge(uuid)
    return JSONResponse(as_json(begun), status_code=202)


@router.post(
    "/v1/agent/resealed",
    summary="Hand in re-encrypted values",
    tags=["agent"],
    responses={409: {"description": "The centre has not asked for any, or another certificate is in use."}},
)
async def resealed(call: Annotated[Answers, Depends(_FROM_ASKED_AGENT)]) -> ResealedAnswer:
    """Accepts a value only if it was asked for, and the driving repository still holds the one that it replaces."""
    wish, room = call.body, call.room
    row = await open_cluster(room, call.agent.cluster)
    certificate = sealing_certificate(row)
    answers = [_answer(secret) for secret in wish.secrets]
    verdicts = await asyncio.to_thread(judge_answers, room.git, row.uuid, certificate, answers)
    await room.resealings.take(
        row.uuid, row.generation, wish.fingerprint, verdicts, secrets_commit=row.secrets_commit
    )
    await room.nudges.nudge(row.uuid)
    ignored = [each for each in verdicts if each.waits_for]
    return ResealedAnswer(
        ignored=[IgnoredSecret(secret=str(each.secret), problem=each.waits_for) for each in ignored],
        reseal=[str(secret) for secret in await room.resealings.wanted(row.uuid, limit=MOST_WANTED)],
    )


def _answer(secret: ResealedSecret) -> ResealingAnswer:
    return ResealingAnswer(
        secret=SecretReference(secret.namespace, secret.name),
        values={key: ResealedValue(value.old_sha256, value.ciphertext) for key, value in secret.values.items()},
        unreadable=secret.unreadable,
        absent=secret.absent,
    )
