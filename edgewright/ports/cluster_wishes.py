"""What operators and signals want of a cluster."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.cluster import ClusterSettings, Workloads
from edgewright.ports.clusters import ClusterRow, Once, Written
from edgewright.ports.config_store import ALWAYS, Entry, Precondition


class ClusterWishes(Protocol):
    """Each call is one transaction with its audit event, and raises ``change``.

    The doors (REST, Config Store, Temporal signals) all end in these calls. ``NotFound`` (code
    ``cluster_unknown``) for a UUID that was never a cluster, ``Gone`` (code ``cluster_deleted``) for one whose
    deletion has finished.
    """

    async def write_configuration(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        actor: str,
        settings: ClusterSettings | None = None,
        precondition: Precondition = ALWAYS,
        seen_settings: ClusterSettings | None = None,
        create_object: bool = False,
    ) -> Written:
        """Writes the configuration entry: creates, changes or recreates the cluster.

        Args:
            body: checked against the JSON Schema of the Application.
            settings: written to *Edgewright cluster settings* in the same transaction, if given.
            seen_settings: what the caller has decided upon; None: whatever they are.
            create_object: registers the object under class *Edge cluster* (REST does, the Config Store does not).

        Raises:
            Invalid: ``name_invalid``, ``namespace_reserved`` (a namespace of Kubernetes that the cluster does
                not have already), ``schema_violation``, ``values_undeliverable``.
            Conflict: ``name_taken``; ``name_immutable`` (a cluster keeps its name, also when removed);
                ``namespace_immutable`` (an edge of the present generation is attached in another one);
                ``deleting`` (a deletion is under way); ``wrong_class``.
            NotFound: ``object_unknown`` unless ``create_object``; ``chart_unknown``: ``chart`` names no template
                (Invalid, ``where`` ``/chart``).
            PreconditionFailed: also when the settings are not ``seen_settings`` any more.
        """

    async def write_settings(
        self, cluster: UUID, body: Mapping[str, Any], *, actor: str, precondition: Precondition = ALWAYS
    ) -> Entry:
        """Writes the settings entry of a cluster."""

    async def request_removal(self, cluster: UUID, *, actor: str, precondition: Precondition = ALWAYS) -> bool:
        """Central removal: deletes the configuration entry. False if there was no entry."""

    async def request_deletion(
        self,
        cluster: UUID,
        *,
        actor: str,
        force: bool = False,
        deadline: timedelta | None = None,
        workloads: Workloads = Workloads.REMOVE,
        purge: bool = False,
        once: Once | None = None,
    ) -> ClusterRow:
        """Records ``desired = deleted`` and deletes the entry. Again: the same deletion (``force`` may be added,
        a deadline may only be brought forward; None: 24 h for a new deletion, unchanged for one under way).
        Suspended credentials are let in again, to detach with. ``once``: see there.

        ``purge``: the kind SealedSecret and the sealing keys are to go from the edge. ``Invalid`` code
        ``purge_impossible`` with ``force`` or kept workloads; ``Conflict`` code ``purge_impossible`` where no edge
        can answer, ``purge_too_late`` once a deletion without it has begun."""

    async def undelete(self, cluster: UUID, *, actor: str) -> ClusterRow:
        """Takes a deletion back while no removal commit was begun; ``Conflict`` code ``too_late`` after that.

        Puts the configuration entry back.
        """

    async def request_recreation(
        self,
        cluster: UUID,
        *,
        actor: str,
        new_hardware: bool,
        changes: Mapping[str, Any] | None = None,
        request: UUID | None = None,
    ) -> ClusterRow:
        """Removes and commissions anew in one transaction; merge patch ``changes`` applied to the entry.

        ``request`` names the wish: one that has happened before does not happen again.

        For new hardware also: generation + 1, credentials of the old generation revoked, tokens replaced, edge
        status, certificate, lease and acceptance cleared. ``Conflict`` code ``deleting`` during a deletion,
        ``namespace_immutable`` on the same hardware; ``Invalid`` code ``namespace_reserved``.
        """

    async def set_paused(
        self,
        cluster: UUID,
        *,
        paused: bool,
        reason: str,
        actor: str,
        seen: int | None = None,
        once: Once | None = None,
    ) -> None:
        """Records that commits are paused, or go on.

        ``seen`` is the ``change`` of the row when that was wished for: ``Conflict`` code ``overtaken`` if it was
        paused or resumed since. So a wish that arrives late, or once more, undoes nothing that was wished later.
        ``once``: see there.
        """
