"""The *Edge cluster status* over HTTP: who may write which certificate. What follows is decided in one place
for all doors, ``edgewright.application.edge_status``."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from api.auth import actor_of
from api.cluster_room import ClusterRoom
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.json import same_json
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Conflict, Forbidden, PreconditionFailed, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ALWAYS, Entry, Precondition
from edgewright.ports.operators import OperatorToken, Permission
from edgewright.sealing import parse_certificate

CERTIFICATE_FIELD = "kubeseal_cert"

WRITE_CONFLICT = "write_conflict"
_MOST_RACES = 5
"""Reports of the edge that a confirmation takes up anew."""

NOT_STORED = "-"


def status_digest(stored: Entry | None, reported: Mapping[str, Any]) -> str:
    """What the agent echoes in its heartbeats, so that a status that got lost is noticed: the revision of the stored
    one, which costs nothing to compare. ``NOT_STORED`` if another one is stored by now."""
    if stored is None:
        return NOT_STORED
    wanted = _with_certificate_of(stored.body, reported)
    return stored.etag if same_json(stored.body, wanted) else NOT_STORED


def _with_certificate_of(stored: Mapping[str, Any], reported: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reported status as it is stored: a certificate that was refused is not in it."""
    others = {name: value for name, value in reported.items() if name != CERTIFICATE_FIELD}
    return {**others, CERTIFICATE_FIELD: stored[CERTIFICATE_FIELD]} if CERTIFICATE_FIELD in stored else others


async def take_status(
    statuses: EdgeStatusDoor,
    row: ClusterRow,
    body: Mapping[str, Any],
    operator: OperatorToken,
    *,
    precondition: Precondition = ALWAYS,
) -> bool:
    """Stores a status that an operator sends, and the certificate in it.

    Returns:
        False if nothing differed.

    Raises:
        Forbidden: ``certificate_needs_admin``: an operator who is no admin sends another certificate.
        Invalid: the status does not fit its schema; or the certificate cannot be used.
        PreconditionFailed: the present status is not the one that the request wants.
    """
    _demand_admin_for_another_certificate(row, body, operator)
    return await statuses.record(
        row.uuid, body, merge=False, actor=actor_of(operator), generation=None, precondition=precondition
    )


async def take_report(
    statuses: EdgeStatusDoor,
    cluster: UUID,
    generation: int,
    body: Mapping[str, Any],
    *,
    precondition: Precondition = ALWAYS,
) -> bool:
    """Stores a status that the agent of a cluster sends, and the certificate in it, if that may be used. One that it
    should not have sent keeps the one in use.

    Args:
        generation: of the credential that it is sent with.

    Returns:
        False if nothing differed.

    Raises:
        Invalid: the status does not fit its schema.
        PreconditionFailed: the present status is not the one that the request wants.
    """
    return await statuses.record(
        cluster, body, merge=False, actor="agent", generation=generation, precondition=precondition
    )


async def confirm_certificate(room: ClusterRoom, row: ClusterRow, fingerprint: str, admin: OperatorToken) -> None:
    """Puts the certificate to use that a signal proposed.

    Raises:
        Conflict: ``certificate_not_proposed``: there is none, or it is another one.
        Invalid: it may not be used any more.
        Waiting: ``write_conflict``: the edge reports again and again meanwhile.
    """
    if row.proposed is None or row.proposed_pem is None or row.proposed.fingerprint != fingerprint:
        raise Conflict(
            f"Nobody has proposed the certificate {fingerprint[:16]}… for {row.spec.name}.",
            code="certificate_not_proposed",
            hint="`certificate_proposed` of the cluster shows which one waits; one that is taken ends that.",
        )
    parse_certificate(row.proposed_pem, now=await room.edge_reports.now())
    for _ in range(_MOST_RACES):
        present = await room.config.get(APP_CLUSTER_STATUS, row.uuid)
        body = {**(present.body if present else {}), CERTIFICATE_FIELD: row.proposed_pem}
        unmoved = (
            Precondition(match=frozenset({present.etag})) if present else Precondition(none_match=frozenset("*"))
        )
        with suppress(PreconditionFailed):
            await room.statuses.record(
                row.uuid, body, merge=False, actor=actor_of(admin), generation=None, precondition=unmoved
            )
            return
    raise Waiting(
        f"The edge of {row.spec.name} reports again and again at this moment.", code=WRITE_CONFLICT, retry_after=1.0
    )


def _demand_admin_for_another_certificate(row: ClusterRow, body: Mapping[str, Any], operator: OperatorToken) -> None:
    reported = body.get(CERTIFICATE_FIELD)
    known = {None, row.edge_status.kubeseal_cert if row.edge_status else None, row.certificate_pem}
    same = reported in known if isinstance(reported, str | None) else False
    if not same and not operator.allows(Permission.ADMIN):
        raise Forbidden(
            "A sealing certificate comes from the cluster's own agent, or from an admin.",
            code="certificate_needs_admin",
            hint="Use a token with the permission admin, or leave kubeseal_cert as it is.",
            where=CERTIFICATE_FIELD,
        )
