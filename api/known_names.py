"""What requests name: clusters and Applications, by UUID or name; classes, by UUID; unregistered ones are unknown."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

from api.dependencies import TheDirectory
from api.log_context import about_cluster
from edgewright.domain.names import CLUSTER_NAME, spelled_uuid
from edgewright.domain.wellknown import (
    APP_INSTALLATION,
    APP_OBJECT_REGISTRATION,
    APPLICATIONS,
    APPLICATIONS_BY_NAME,
    CLASS_APPLICATION,
    CLASS_EDGE_CLUSTER,
    SAME_CLASSES,
)
from edgewright.errors import NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore

_OURS = APPLICATIONS.keys() | {APP_INSTALLATION}


async def known_cluster(directory: ClusterDirectory, text: str) -> UUID:
    """The cluster that a UUID or a name, whatever the case, means.

    A text in the form of a UUID is never a name. A UUID is not looked up: whatever is asked of it will tell.

    Raises:
        NotFound: code ``cluster_unknown``: no cluster has that name, or only deleted ones had it.
    """
    uuid = spelled_uuid(text)
    if uuid is not None:
        return uuid
    found = await directory.find(text) if CLUSTER_NAME.fullmatch(text) else None
    if found is None:
        raise NotFound(
            "There is no cluster with that name.",
            code="cluster_unknown",
            hint="edgewright cluster list shows all clusters. Name a deleted one by its UUID.",
        )
    return found


NameOrUuid = Annotated[str, Path(description="UUID or name of the cluster.")]


async def cluster_of_path(uuid: NameOrUuid, directory: TheDirectory) -> UUID:
    """The cluster that the path of a request names; the log lines of the request name it from here on.

    A route declares it behind its door: a caller who may not ask learns no names.
    """
    found = await known_cluster(directory, uuid)
    about_cluster(found)
    return found


KnownCluster = Annotated[UUID, Depends(cluster_of_path)]


AppNameOrUuid = Annotated[
    str,
    Path(description="UUID of the Application; of a well-known one also its name, such as `edge-cluster-status`."),
]


async def application_of_path(app: AppNameOrUuid) -> UUID:
    """The Application that the path of a request names, registered or not.

    Raises:
        NotFound: code ``app_unknown``: no well-known Application has that name.
    """
    uuid = spelled_uuid(app) or APPLICATIONS_BY_NAME.get(app.lower())
    if uuid is None:
        raise NotFound(
            "There is no Application with that name.",
            code="app_unknown",
            hint="Name it by its UUID, or as one of: " + ", ".join(sorted(APPLICATIONS_BY_NAME)) + ".",
        )
    return uuid


NamedApplication = Annotated[UUID, Depends(application_of_path)]

ObjectNameOrUuid = Annotated[
    str, Path(description="UUID of the object; where it is a cluster, also the name of the cluster.")
]


async def known_object(directory: ClusterDirectory, app: UUID, text: str) -> UUID:
    """The object that a UUID means or, of an Application that clusters have entries of, the name of a cluster.

    Raises:
        NotFound: no cluster has that name, or the Application is not one of clusters.
    """
    uuid = spelled_uuid(text)
    if uuid is not None:
        return uuid
    application = APPLICATIONS.get(app)
    if application is not None and CLASS_EDGE_CLUSTER in application.object_classes:
        return await known_cluster(directory, text)
    raise NotFound("There is no object with that name.", code="object_unknown", hint="Name the object by its UUID.")


async def known_application(config: ConfigStore, app: UUID) -> UUID:
    """The Application itself.

    Raises:
        NotFound: code ``app_unknown``: no object of the class of Applications, and no entry is of it.
    """
    if app in _OURS or await config.class_of(app) == CLASS_APPLICATION:
        return app
    if await config.bodies(app, after=None, limit=1):
        return app
    hint = (
        "Objects stay registered here; delete their entries instead."
        if app == APP_OBJECT_REGISTRATION
        else "Register it with POST /v1/object, as an object of the class Application."
    )
    raise NotFound(f"There is no Application {app}.", code="app_unknown", hint=hint)


async def known_class(config: ConfigStore, klass: UUID) -> UUID:
    """The class by the UUID that it has here.

    Raises:
        NotFound: code ``class_unknown``: no object, and no object is of it.
    """
    canonical = SAME_CLASSES.get(klass, klass)
    known = await config.class_of(canonical) is not None or await config.members(canonical)
    if not known:
        raise NotFound(
            f"There is no class {klass}.",
            code="class_unknown",
            hint="Register it with POST /v1/object, as an object of the class Class.",
        )
    return canonical
