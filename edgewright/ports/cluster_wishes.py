"""What operators and signals want of a cluster."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.cluster import ClusterSettings, Workloads
from edgewright.ports.clusters import ClusterRow, Once, Written
from edgewright.ports.config_store import ALWAYS, Entry, Precondition


class ClusterWishes(Protocol):
    """Each call is one transaction with its audit event, and increments ``change``.

    All doors (REST, Config Store, Temporal signals) end in these calls. They raise ``NotFound`` (code
    ``cluster_unknown``) for a UUID that was never a cluster, and ``Gone`` (code ``cluster_deleted``) for one whose
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
            seen_settings: the settings that the caller's decision was based on; None: any.
            create_object: registers the object under class *Edge cluster* (REST does, the Config Store does not).

        Raises:
            Invalid: ``name_invalid``, ``namespace_reserved`` (a namespace of Kubernetes that the cluster does
                not have already), ``schema_violation``, ``values_undeliverable``.
            Conflict: ``name_taken``; ``name_immutable`` (a cluster keeps its name, also when removed);
                ``namespace_immutable`` (an edge of the present generation is attached in another one);
                ``deleting`` (a deletion is under way); ``wrong_class``.
            NotFound: ``object_unknown`` unless ``create_object``; ``chart_unknown``: ``chart`` names no template
                (Invalid, ``where`` ``/chart``).
            PreconditionFailed: also if the settings are no longer ``seen_settings``.
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
        """Records ``desired = deleted`` and deletes the entry. Repeating it changes the same deletion: you can add
        ``force`` or bring the deadline forward (None: 24 h for a new deletion, unchanged for one under way).
        Reactivates suspended credentials, so that the edge can detach. ``once``: see ``Once``.

        ``purge``: also remove the kind SealedSecret and the sealing keys from the edge. ``Invalid`` code
        ``purge_impossible`` with ``force`` or kept workloads; ``Conflict`` code ``purge_impossible`` if no edge can
        answer, or ``purge_too_late`` once a deletion without it has begun."""

    async def undelete(self, cluster: UUID, *, actor: str) -> ClusterRow:
        """Cancels a deletion until the removal commit begins; ``Conflict`` code ``too_late`` after that.

        Restores the configuration entry.
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
        """Removes and commissions the cluster again in one transaction, with merge patch ``changes`` to the entry.

        ``request`` identifies the wish: the same wish is only carried out once.

        For new hardware, also starts the next generation, revokes the credentials of the old one, replaces tokens,
        and clears edge status, certificate, lease and acceptance. ``Conflict`` code ``deleting`` during a deletion,
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
        """Pauses or resumes commits.

        ``seen`` is the ``change`` of the row when the wish was made: ``Conflict`` code ``overtaken`` if commits were
        paused or resumed since. So a wish that arrives late, or twice, does not undo a later one.
        ``once``: see ``Once``.
        """
