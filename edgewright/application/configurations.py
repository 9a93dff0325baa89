"""Creates, changes and recreates clusters by their configuration, for the routes of clusters and the Config Store."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

from edgewright.application.lookup import chart_uuid, open_cluster, settings_of
from edgewright.domain.cluster import Desired
from edgewright.domain.json import Json
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE
from edgewright.domain.merge_patch import apply_merge_patch
from edgewright.domain.names import check_cluster_name
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import Conflict, PreconditionFailed
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.clusters import ClusterRow, Written
from edgewright.ports.config_store import ALWAYS, ConfigStore, Precondition

SETTINGS_FIELDS = frozenset({"labels", "accept", "lease_seconds", "check_in"})
"""Fields of a cluster that are of its settings; the others are of its configuration."""
DECIDING = ("chart", "values")
"""Fields of a configuration or a Helm chart template without whose change nothing is checked anew."""
PATCH_ATTEMPTS = 5
ANY_REVISION = "*"

Answer = TypeVar("Answer")


class ConfigurationCheck(Protocol):
    """Holds the values of a cluster against its chart."""

    async def check_configuration(self, cluster: UUID, body: Mapping[str, Any]) -> None:
        """Lets everything pass that is refused elsewhere, and what is stored already.

        Raises:
            Invalid: code ``values_misfit``.
        """


@dataclass(frozen=True)
class NewConfiguration:
    """A cluster to create.

    Args:
        chart: UUID or name of a Helm chart template; None: the default.
        settings: JSON values; what is absent gets its default.
    """

    name: str
    namespace: str
    chart: str | None
    bare: bool
    values: Mapping[str, Json]
    settings: Mapping[str, Any]


async def despite_races(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """Tries again where somebody else was a moment faster: who names no revision means whatever is there now.

    Raises:
        PreconditionFailed: others were faster every time.
    """
    for _ in range(PATCH_ATTEMPTS - 1):
        with suppress(PreconditionFailed):
            return await attempt()
    return await attempt()


@dataclass(frozen=True)
class ClusterConfigurations:
    """What a cluster is to be. Whoever calls this has the workflow told afterwards.

    ``NotFound``, ``Gone``, ``Conflict`` and ``Invalid`` beside those that are named: see ``ClusterWishes``.
    """

    directory: ClusterDirectory
    wishes: ClusterWishes
    config: ConfigStore
    chart_values: ConfigurationCheck

    async def create(self, cluster: UUID, wish: NewConfiguration, *, actor: str) -> ClusterRow:
        """Creates a cluster, or finds the one that the same request has made.

        Args:
            cluster: the same for the same request; another UUID is taken if that cluster has lived and gone.

        Raises:
            Invalid: ``name_invalid``, ``namespace_reserved``, ``chart_unknown``, ``schema_violation``,
                ``values_misfit``.
            Conflict: ``name_taken``, also where the same request has made a cluster of another name.
        """
        check_cluster_name(wish.name)
        body: dict[str, Any] = {"name": wish.name, "namespace": wish.namespace}
        if wish.chart is not None:
            body["chart"] = str(await chart_uuid(self.config, wish.chart))
        if wish.bare:
            body["bare"] = True
        if wish.values:
            body["values"] = wish.values
        settings = settings_of(dict(wish.settings))
        known = await self.directory.get(cluster)
        if known is not None and known.closed:
            cluster = uuid4()
        elif known is not None:
            if known.spec_etag is not None and known.spec.name == wish.name:
                return known  # a gateway died between making it and remembering its answer
            raise Conflict("This Idempotency-Key made another cluster.", code="name_taken", where="/name")
        await self.chart_values.check_configuration(cluster, body)
        written = await self.wishes.write_configuration(
            cluster,
            body,
            actor=actor,
            settings=settings,
            precondition=Precondition(none_match=frozenset({"*"})),
            create_object=True,
        )
        return written.row

    async def write(
        self, cluster: UUID, body: Mapping[str, Any], *, actor: str, precondition: Precondition = ALWAYS
    ) -> Written:
        """Writes the whole configuration; settings stay, or are the defaults.

        Raises:
            Invalid: ``name_invalid``, ``namespace_reserved``, ``schema_violation``, ``values_misfit``.
            PreconditionFailed: the entry is another one.
        """
        if isinstance(body.get("name"), str):
            check_cluster_name(body["name"])  # before the schema, which says the same less plainly
        await self.chart_values.check_configuration(cluster, body)
        return await self.wishes.write_configuration(cluster, body, actor=actor, precondition=precondition)

    async def change(
        self, cluster: UUID, patch: Mapping[str, Any], *, actor: str, precondition: Precondition = ALWAYS
    ) -> ClusterRow:
        """Merges a patch into configuration and settings, and returns the cluster.

        Raises:
            Invalid: ``chart_unknown``, ``namespace_reserved``, ``schema_violation``, ``values_misfit``.
            Conflict: ``deleting``; ``removed``, unless only settings change.
            PreconditionFailed: the cluster has another revision than the caller has named, or its entry has.
        """

        async def attempt() -> ClusterRow:
            return await self._change(cluster, patch, actor=actor, precondition=precondition)

        names_one = precondition.match is not None and ANY_REVISION not in precondition.match
        return await (attempt() if names_one else despite_races(attempt))

    async def _change(
        self, cluster: UUID, patch: Mapping[str, Any], *, actor: str, precondition: Precondition
    ) -> ClusterRow:
        row = await open_cluster(self, cluster)
        settings_patch = {name: value for name, value in patch.items() if name in SETTINGS_FIELDS}
        entry_patch = {name: value for name, value in patch.items() if name not in SETTINGS_FIELDS}
        settings = _merged(row.settings.entry(), settings_patch) if settings_patch else None
        entry = await self.config.get(APP_CLUSTER_CONFIGURATION, cluster)
        if entry is None:
            if row.desired is Desired.DELETED:
                raise Conflict("The cluster is being deleted.", code="deleting")
            if entry_patch or settings is None:
                raise Conflict(
                    "The cluster was removed centrally.", code="removed", hint="POST …/recreate commissions it anew."
                )
            await self.wishes.write_settings(cluster, settings, actor=actor)
            return await open_cluster(self, cluster)
        if entry_patch.get("chart"):
            entry_patch["chart"] = str(await chart_uuid(self.config, entry_patch["chart"]))
        if "namespace" in entry_patch and entry_patch["namespace"] is None:
            entry_patch["namespace"] = EDGEWRIGHT_NAMESPACE
        body = _merged(entry.body, entry_patch)
        await self.chart_values.check_configuration(cluster, body)
        present = {entry.etag, ANY_REVISION} | ({row.revision} if row.spec_etag == entry.etag else set())
        named = present & (precondition.match or {ANY_REVISION})
        if not named:
            raise PreconditionFailed(
                f"Somebody has changed {row.spec.name} since the revision that If-Match names.",
                hint="Read it again, then change it.",
            )
        decided = row.settings if settings is not None or row.revision in named else None
        written = await self.wishes.write_configuration(
            cluster,
            body,
            actor=actor,
            settings=None if settings is None else settings_of(settings),
            precondition=Precondition(match=frozenset({entry.etag})),
            seen_settings=decided,
        )
        return written.row

    async def recreate(
        self, cluster: UUID, changes: Mapping[str, Any], *, actor: str, new_hardware: bool, request: UUID
    ) -> ClusterRow:
        """Removes and commissions a cluster anew, with a merge patch of its configuration.

        Args:
            request: of a wish that has happened before nothing happens again.

        Raises:
            Invalid: ``chart_unknown``, ``namespace_reserved``, ``schema_violation``, ``values_misfit``.
        """
        changes = dict(changes)
        if changes.get("chart"):
            changes["chart"] = str(await chart_uuid(self.config, changes["chart"]))
        if changes.keys() & DECIDING:
            present = (await open_cluster(self, cluster)).spec
            body: dict[str, Any] = {"name": present.name, "namespace": present.namespace, "values": present.values}
            if present.chart is not None:
                body["chart"] = str(present.chart)
            await self.chart_values.check_configuration(cluster, _merged(body, changes))
        return await self.wishes.request_recreation(
            cluster, actor=actor, new_hardware=new_hardware, changes=changes or None, request=request
        )


def _merged(present: Json, patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = apply_merge_patch(present, patch)
    return dict(merged) if isinstance(merged, Mapping) else {}
