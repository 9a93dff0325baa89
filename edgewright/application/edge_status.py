"""What an edge says of itself, checked: one way in for HTTP and for signals."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from edgewright.domain.cluster import CertificateFacts
from edgewright.domain.ended import cluster_deleted, left_on_edge
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Invalid, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.clusters import Once
from edgewright.ports.config_store import ALWAYS, ConfigStore, Precondition
from edgewright.ports.edge_reports import EdgeReports
from edgewright.sealing import parse_certificate


class EdgeStatusDoor:
    """Decides about the certificate, then records the whole status in one transaction."""

    def __init__(self, directory: ClusterDirectory, edge_reports: EdgeReports, config: ConfigStore) -> None:
        self._directory = directory
        self._edge_reports = edge_reports
        self._config = config

    async def record(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        merge: bool,
        actor: str,
        generation: int | None,
        precondition: Precondition = ALWAYS,
        proposes: bool = False,
        once: Once | None = None,
    ) -> bool:
        """Records a status.

        Args:
            body: an *Edge cluster status* document.
            merge: laid over the present document instead of replacing it.
            generation: of the reporting credential; None for an operator.
            precondition: what the present document has to be.
            proposes: it came by a signal, and nobody knows who sent that: another certificate than the one in use is
                noted as proposed, and the status keeps the one in use.
            once: it came as a message to a workflow, and counts once.

        Returns:
            False if nothing differed.

        Raises:
            NotFound: ``cluster_unknown``; ``Gone``: ``cluster_deleted``.
            PreconditionFailed: it is another one.
            Invalid: ``schema_violation``; or, from anybody but the edge itself, ``certificate_malformed``,
                ``certificate_expired`` or ``certificate_weak``. Of an edge's report the rest counts: the
                certificate in use stays, in the stored status too, and *SealingKeyCurrent* says why.
        """
        row = await self._directory.get(cluster)
        if row is None:
            raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
        if row.closed_at is not None:
            edge = left_on_edge(row.purge, row.acceptance, over=True)
            raise cluster_deleted(cluster, row.spec.name, row.closed_at, edge=edge)
        if merge:
            present = await self._config.get(APP_CLUSTER_STATUS, cluster)
            body = {**(present.body if present else {}), **body}
        accepted, refusal = await self._judge(body.get("kubeseal_cert"))
        if refusal is not None and generation is None:
            raise refusal
        return await self._edge_reports.write_status(
            cluster,
            body,
            certificate=accepted,
            certificate_problem=None if refusal is None else refusal.detail,
            generation=generation,
            actor=actor,
            precondition=precondition,
            proposes=proposes,
            once=once,
        )

    async def _judge(self, pem: object) -> tuple[tuple[CertificateFacts, str] | None, Invalid | None]:
        """The certificate that is reported, or why it cannot be used. (None, None): there is none."""
        if pem is None:
            return None, None
        now = await self._edge_reports.now()
        try:
            if not isinstance(pem, str):
                raise Invalid("The sealing certificate is not a string.", code="certificate_malformed")
            certificate = parse_certificate(pem, now=now)
        except Invalid as refusal:
            return None, refusal
        facts = CertificateFacts(
            fingerprint=certificate.fingerprint,
            not_before=certificate.not_before,
            not_after=certificate.not_after,
            taken_at=now,
        )
        return (facts, certificate.pem), None
