"""What the removal commit of a deletion takes away."""

from collections.abc import Mapping, Sequence

from edgewright.domain.rendering.layout import (
    BY_HAND_FOLDER,
    BY_HAND_NOTE,
    BY_HAND_NOTE_PATH,
    CLUSTER_FOLDER,
    DRIVER_FILES,
    DRIVERS_FOLDER,
    SECRETS_FOLDER,
    SECRETS_NOTE,
    SECRETS_NOTE_PATH,
)
from edgewright.domain.rendering.secret_drivers import is_namespace_note


def workload_removal(paths: Sequence[str]) -> Mapping[str, bytes | None]:
    """The changes that take every workload off a cluster and leave what drives it.

    Everything in ``by-hand`` and every sealed secret goes, and the files in ``edo/cluster`` that a changed Flux
    template added. The notes of the emptied folders stay, and those of the two above come back: Flux prunes what a
    folder used to hold only while the folder exists.

    The files of the default Flux template stay, ``edge-cluster.yaml`` among them: its release brings sealed-secrets,
    which leaves with it when the edge detaches. An object that a file removed here used to describe survives if
    it carries ``kustomize.toolkit.fluxcd.io/prune: disabled``: that is how a changed template marks a driver.

    Args:
        paths: every path at the head of the repository.

    Returns:
        path -> None to delete it, or its content. The same again on the outcome: no change of any content.
    """
    changes: dict[str, bytes | None] = {path: None for path in paths if _is_workload(path)}
    present = set(paths)
    for path, note in ((BY_HAND_NOTE_PATH, BY_HAND_NOTE), (SECRETS_NOTE_PATH, SECRETS_NOTE)):
        if path not in present:
            changes[path] = note
    return changes


def _is_workload(path: str) -> bool:
    if path in {BY_HAND_NOTE_PATH, SECRETS_NOTE_PATH} or is_namespace_note(path) or path.startswith(DRIVERS_FOLDER):
        return False
    if path.startswith((BY_HAND_FOLDER, SECRETS_FOLDER)):
        return True
    return path.startswith(CLUSTER_FOLDER) and path.removeprefix(CLUSTER_FOLDER) not in DRIVER_FILES
