"""What staged requests make of the files of a repository, and what their namespaces need beside them.

Nothing here runs in an event loop: files are large, and it reads a repository.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from uuid import UUID

from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, SecretReference
from edgewright.domain.rendering.layout import DRIVER_PATTERN_PATH
from edgewright.domain.rendering.secret_drivers import (
    check_room,
    namespace_note_path,
    open_namespaces,
    read_pattern,
    used_namespaces,
)
from edgewright.domain.secret_template import TemplateChange, secret_is_gone
from edgewright.errors import Refused, Stalled
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import SealedValue, change_values

Files = Mapping[str, bytes | None]
Requests = Sequence[tuple[UUID, Sequence[StagedChange]]]
Read = Callable[[str], bytes | None]
ListPaths = Callable[[], Sequence[str]]


@dataclass(frozen=True)
class AppliedRequests:
    """The outcome for each request.

    Args:
        files: path -> new content, None: the file goes.
        taken: requests whose changes are in ``files``, in the order given.
        refused: requests that cannot be committed, and why.
    """

    files: Files
    taken: list[UUID] = field(default_factory=list)
    refused: dict[UUID, Refused | Stalled] = field(default_factory=dict)


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


def apply_requests(read: Callable[[str], bytes | None], requests: Requests) -> AppliedRequests:
    """Applies each request whole or not at all, in order. Blocks: run it in a thread.

    Requests are tried together first, so that each file is parsed and written once. Where something is in the way,
    halves are tried, down to the request that has to be refused.

    Args:
        read: the present content of a file, None if it is not there.
    """
    kept: dict[str, bytes | None] = {}

    def read_once(path: str) -> bytes | None:
        if path not in kept:
            kept[path] = read(path)
        return kept[path]

    applied = AppliedRequests({})
    for together in _until_written_again(requests):
        more = _apply(read_once, applied.files, together)
        applied = AppliedRequests(more.files, applied.taken + more.taken, applied.refused | more.refused)
    return applied


def _until_written_again(requests: Requests) -> Iterator[Requests]:
    """Parts in whose middle no file can go and come back: its labels and type would seem to have stayed."""
    part: list[tuple[UUID, Sequence[StagedChange]]] = []
    deleted_of: set[SecretReference] = set()
    for request, changes in requests:
        if any(change.ciphertext is not None and change.place.secret in deleted_of for change in changes):
            yield part
            part, deleted_of = [], set()
        part.append((request, changes))
        deleted_of |= {change.place.secret for change in changes if change.deletes}
    yield part


def _apply(read: Callable[[str], bytes | None], files: Files, requests: Requests) -> AppliedRequests:
    try:
        templates = _templates(requests)
        changed = {
            path: _changed(secret, files[path] if path in files else read(path), changes, templates.get(secret))
            for secret, changes in _newest(requests).items()
            for path in [secret.path]
        }
    except (Refused, Stalled) as refusal:
        if len(requests) == 1:
            return AppliedRequests(files, refused={requests[0][0]: refusal})
    else:
        return AppliedRequests({**files, **changed}, taken=[request for request, _ in requests])
    half = len(requests) // 2
    first = _apply(read, files, requests[:half])
    second = _apply(read, first.files, requests[half:])
    return AppliedRequests(second.files, first.taken + second.taken, first.refused | second.refused)


def _newest(requests: Requests) -> dict[SecretReference, dict[SecretPlace, StagedChange]]:
    """The last change of each key, and the last one of no key."""
    newest: dict[SecretReference, dict[SecretPlace, StagedChange]] = {}
    for change in chain.from_iterable(changes for _, changes in requests):
        newest.setdefault(change.place.secret, {})[change.place] = change
    return newest


def _templates(requests: Requests) -> dict[SecretReference, TemplateChange]:
    """What changes of each Secret besides its values, one request after the other.

    Raises:
        Conflict: code ``secret_type_immutable``: two requests name two types.
    """
    merged: dict[SecretReference, TemplateChange] = {}
    for change in chain.from_iterable(changes for _, changes in requests):
        if change.template is not None:
            secret = change.place.secret
            merged[secret] = merged.get(secret, TemplateChange()).then(change.template)
    return merged


def _changed(
    secret: SecretReference,
    document: bytes | None,
    changes: Mapping[SecretPlace, StagedChange],
    template: TemplateChange | None,
) -> bytes | None:
    values = {
        place.key: None
        if change.ciphertext is None
        else SealedValue(change.ciphertext, change.fingerprint, change.sealed_at)
        for place, change in changes.items()
        if isinstance(place, SecretKey)
    }
    changed = change_values(document, secret, values, template)
    if changed is None and secret in changes:
        raise secret_is_gone(secret)
    return changed


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
