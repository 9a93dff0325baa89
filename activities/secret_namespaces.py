"""The namespaces that staged secrets are for: how many there may be, and what their first secret brings along.

Nothing here runs in an event loop: it reads a repository.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from uuid import UUID

from activities.staged_files import AppliedRequests, Requests, apply_requests
from edgewright.domain.rendering.layout import DRIVER_PATTERN_PATH
from edgewright.domain.rendering.secret_drivers import (
    check_room,
    namespace_note_path,
    open_namespaces,
    read_pattern,
    used_namespaces,
)
from edgewright.errors import Refused, Stalled
from edgewright.ports.secret_staging import StagedChange

Read = Callable[[str], bytes | None]
ListPaths = Callable[[], Sequence[str]]


def apply_with_drivers(read: Read, list_paths: ListPaths, requests: Requests) -> AppliedRequests:
    """``apply_requests``, and with it what drives each namespace that gets its first secret. Blocks.

    Args:
        read: the present content of a file, None if it is not there.
        list_paths: every path below ``edo/secrets``; asked only where a namespace is new.
    """
    asked = set().union(*(_namespaces(changes) for _, changes in requests))
    unknown = {name for name in asked if read(namespace_note_path(name)) is None}
    created = {change.place.namespace for _, changes in requests for change in changes if _creates(change)}
    if not unknown and not created:
        return apply_requests(read, requests)
    paths = list_paths()
    admitted, crowded = _admitted(requests, used_namespaces(paths)) if unknown else (requests, {})
    applied = apply_requests(read, admitted)
    taken = [change for request, changes in admitted if request in applied.taken for change in changes]
    brought = open_namespaces(
        read_pattern(read(DRIVER_PATTERN_PATH)),
        paths,
        opened=_namespaces(taken) & unknown,
        created={change.place.namespace for change in taken if _creates(change)},
    )
    return replace(applied, files={**applied.files, **brought}, refused={**applied.refused, **crowded})


def _admitted(requests: Requests, used: AbstractSet[str]) -> tuple[Requests, Mapping[UUID, Refused | Stalled]]:
    """The requests for which there is room, in order, and what becomes of the others."""
    admitted, crowded = [], dict[UUID, Refused | Stalled]()
    for request, changes in requests:
        wanted = used | _namespaces(changes)
        try:
            check_room(used, wanted)
        except Refused as refusal:
            crowded[request] = refusal
        else:
            admitted.append((request, changes))
            used = wanted
    return admitted, crowded


def _namespaces(changes: Sequence[StagedChange]) -> set[str]:
    """Those that get a value."""
    return {change.place.namespace for change in changes if change.ciphertext is not None}


def _creates(change: StagedChange) -> bool:
    return change.creates_namespace and change.ciphertext is not None
