"""Writes of Config Store entries that mean something: clusters, their settings, and templates."""

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn
from uuid import UUID

from fastapi import Depends, Request

from api.allowances import Allowance
from api.bodies import json_object
from api.chart_values import ChartValues
from api.nudges import Nudges
from api.searches import Searches
from edgewright.application.configurations import ClusterConfigurations
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.domain.wellknown import (
    APP_BOOTSTRAP_SCRIPT,
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_SETTINGS,
    APP_CLUSTER_SETUP_STATUS,
    APP_CONFIG_SCHEMA,
    APP_EDGE_DEPLOYMENTS,
    APP_FLUX_BUNDLE,
    APP_FLUX_TEMPLATE,
    APP_GIT_REPOSITORY,
    APP_HELM_CHART_TEMPLATE,
    APP_INSTALLATION,
    APP_KUBERNETES_TEMPLATE,
    APP_SPARKPLUG_ADDRESS,
    APPLICATIONS,
    CLASS_EDGE_CLUSTER,
    OBJECT_BOOTSTRAP_SCRIPT,
    OBJECT_FLUX_TEMPLATE,
    OBJECT_HELM_RELEASE_TEMPLATE,
    RENDERED_APPS,
)
from edgewright.errors import Conflict, Forbidden, Invalid
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.config_store import ConfigStore, Precondition
from edgewright.ports.operators import OperatorToken, Permission

CENTRAL_APPS = frozenset({APP_CLUSTER_SETUP_STATUS, APP_FLUX_BUNDLE, APP_INSTALLATION, APP_SPARKPLUG_ADDRESS})
"""What clients read and only the centre writes (a Flux bundle comes in by a door of its own). So are the Git entries
of clusters: addresses and repositories are allocated, and an entry that says another one would point a cluster's
messages or its Flux at somebody else's."""
_ONLY_OBJECTS = {
    APP_FLUX_TEMPLATE: OBJECT_FLUX_TEMPLATE,
    APP_BOOTSTRAP_SCRIPT: OBJECT_BOOTSTRAP_SCRIPT,
    APP_KUBERNETES_TEMPLATE: OBJECT_HELM_RELEASE_TEMPLATE,
}
"""Applications of which Edgewright reads the entry of one object."""


@dataclass(frozen=True)
class StoreRoom:
    """What reads, searches and writes entries.

    Args:
        statuses: where edge statuses are written.
        edge_statuses: what each cluster may report in a while.
    """

    directory: ClusterDirectory
    wishes: ClusterWishes
    config: ConfigStore
    statuses: EdgeStatusDoor
    configurations: ClusterConfigurations
    repositories: SharedRepositories
    chart_values: ChartValues
    nudges: Nudges
    searches: Searches
    edge_statuses: Allowance


async def store_room_of(request: Request) -> StoreRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: StoreRoom = request.app.state.store_room
    return room


TheStoreRoom = Annotated[StoreRoom, Depends(store_room_of)]


async def write_entry(
    room: StoreRoom, app: UUID, object_: UUID, body: Any, *, actor: str, precondition: Precondition
) -> None:
    """Writes one entry, and nudges whom it concerns. The edge status is not written here.

    Raises:
        Forbidden: code ``written_by_centre`` for what only the centre writes.
        Invalid: code ``entry_without_effect`` for what nobody would ever read, ``values_misfit`` for values that the
            schema of their chart refuses; see ``SharedRepositories`` for those of Git repositories.
    """
    await _refuse_own(room.config, app, object_)
    _refuse_without_effect(app, object_, body)
    if app == APP_CLUSTER_CONFIGURATION:
        written = await room.configurations.write(object_, json_object(body), actor=actor, precondition=precondition)
        if written.changed or written.created or written.recreated:
            await room.nudges.nudge(object_)
    elif app == APP_CLUSTER_SETTINGS:
        await room.wishes.write_settings(object_, json_object(body), actor=actor, precondition=precondition)
        await room.nudges.nudge(object_)
    elif app == APP_GIT_REPOSITORY:
        await room.repositories.write(object_, body, actor=actor, precondition=precondition)
    else:
        if app == APP_HELM_CHART_TEMPLATE:
            await room.chart_values.check_template(object_, body)
        await room.config.put(app, object_, body, actor=actor, precondition=precondition)
        await _nudge_users(room, app, object_)


def demand_admin_for_schema(operator: OperatorToken, app: UUID, object_: UUID) -> None:
    """Lets nobody but an admin change the schema of an Application that the centre itself reads and writes.

    Raises:
        Forbidden: code ``schema_needs_admin``.
    """
    if app == APP_CONFIG_SCHEMA and object_ in APPLICATIONS and not operator.allows(Permission.ADMIN):
        raise Forbidden(
            f"The schema of {APPLICATIONS[object_].name} decides what the centre takes from everybody.",
            code="schema_needs_admin",
            hint="Use a token with the permission admin.",
        )


async def delete_entry(room: StoreRoom, app: UUID, object_: UUID, *, actor: str, precondition: Precondition) -> bool:
    """Deletes one entry, and nudges whom it concerns; False if there was none.

    Raises:
        Forbidden: code ``written_by_centre`` for what only the centre writes.
        Conflict: code ``settings_stay``: a cluster is never without settings; ``repository_in_use``.
    """
    await _refuse_own(room.config, app, object_)
    if app == APP_CLUSTER_SETTINGS:
        raise Conflict(
            "The settings of a cluster stay as long as it does.",
            code="settings_stay",
            hint="Write {} to take all of them back to their defaults.",
        )
    if app == APP_CLUSTER_CONFIGURATION:
        deleted = await room.wishes.request_removal(object_, actor=actor, precondition=precondition)
        if deleted:
            await room.nudges.nudge(object_)
        return deleted
    if app == APP_GIT_REPOSITORY:
        return await room.repositories.remove(object_, actor=actor, precondition=precondition)
    deleted = await room.config.delete(app, object_, actor=actor, precondition=precondition)
    if deleted:
        await _nudge_users(room, app, object_)
    return deleted


def _refuse_without_effect(app: UUID, object_: UUID, body: Any) -> None:
    """Refuses entries that Edgewright would store and never act on; those of unknown Applications pass.

    Raises:
        Invalid: code ``entry_without_effect``.
    """
    if app == APP_EDGE_DEPLOYMENTS:
        _refuse(
            "Edgewright deploys nothing from an Edge deployments entry.",
            hint="Push manifests to by-hand/ of the cluster's driving repository, or set values of its chart.",
        )
    only = _ONLY_OBJECTS.get(app)
    if only is not None and object_ != only:
        _refuse(
            f"Of {APPLICATIONS[app].name}, Edgewright reads the entry of the object {only} alone.",
            hint="Write that entry.",
        )
    if app == APP_BOOTSTRAP_SCRIPT and isinstance(body, dict) and "wrapper" in body:
        _refuse(
            "Edgewright's own script unpacks the files and attaches the cluster; no wrapper replaces it.",
            hint="Leave wrapper out; hooks.before and hooks.after run fragments of yours.",
            where="/wrapper",
        )


def _refuse(sentence: str, *, hint: str, where: str | None = None) -> NoReturn:
    raise Invalid(sentence, code="entry_without_effect", hint=hint, where=where)


async def _nudge_users(room: StoreRoom, app: UUID, object_: UUID) -> None:
    if app in RENDERED_APPS:
        room.nudges.nudge_many(await room.directory.using_template(app, object_))


async def _refuse_own(config: ConfigStore, app: UUID, object_: UUID) -> None:
    own = app in CENTRAL_APPS
    if app == APP_GIT_REPOSITORY:
        own = await config.class_of(object_) == CLASS_EDGE_CLUSTER
    elif app == APP_CONFIG_SCHEMA:
        own = object_ == APP_CONFIG_SCHEMA  # one mistake in the schema of schemas, and none could be corrected
    if own:
        raise Forbidden(
            "This entry is written by the centre alone.",
            code="written_by_centre",
            hint="Change what it follows from: the cluster, or its Edge cluster configuration.",
        )
