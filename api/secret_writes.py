"""Secrets on their way in: sealed here, staged as ciphertext, and committed.

Plaintext lives in a ``Plaintext`` from the request's body to ``seal`` and nowhere else. The staged rows of a
request are its idempotency record: the same ``Idempotency-Key`` makes the same request ID and finds them.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid4, uuid5

from api.lookup import open_cluster
from api.secret_namespaces import namespace_warnings
from api.secret_room import SecretRoom
from api.secret_sealing import KeyChange, head_of, sealed_changes, sealing_certificate
from api.secret_templates import Templates
from api.stored_flux import FluxNamespace
from edgewright.domain.cluster import Desired
from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.domain.kubernetes_names import (
    EDGEWRIGHT_NAMESPACE,
    KUBERNETES_NAMESPACE,
    SecretPlace,
    SecretReference,
    check_stored_name,
)
from edgewright.domain.own_objects import EDGEWRIGHT, FLUX, FLUX_SECRET, KUBERNETES
from edgewright.errors import Conflict, EdgewrightError, Invalid, Stalled, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId
from edgewright.ports.secret_staging import SecretStaging, StagedChange, StagedState


@dataclass(frozen=True)
class ChangedKeys:
    """What has become of a request.

    Args:
        commit: the one that holds the changes; None after a dry run.
        warnings: what keeps them from arriving on the edge.
    """

    commit: CommitId | None
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class SecretWish:
    """Who asks for a change of which keys, and how.

    Args:
        path: of the request, with its method where several share a path; part of what a repeated request is known by.
        key: the ``Idempotency-Key``, if one was sent.
        places: what each change is about.
        expected: namespaces that get a value and have to be on the edge already.
        dry_run: everything is checked and sealed, nothing is stored.
        templates: of Secrets that ``places`` are of.
    """

    cluster: UUID
    asker: str
    actor: str
    path: str
    key: str | None
    places: Sequence[SecretPlace]
    dry_run: bool
    templates: Templates = field(default_factory=dict)
    expected: AbstractSet[str] = frozenset()


async def change_keys(
    room: SecretRoom, wish: SecretWish, changes: Callable[[], Awaitable[Sequence[KeyChange]]]
) -> ChangedKeys:
    """Makes the changes, or finds what has become of them. ``changes`` is asked only if they are needed.

    Raises:
        NotFound, Conflict, Waiting, Invalid: see the functions below.
    """
    row = await open_cluster(room, wish.cluster)
    request = request_id(wish.cluster, wish.asker, wish.path, wish.key)
    head = await asyncio.to_thread(head_of, room.git, row.uuid)  # before anything is staged: see `staged_on`
    repeated = not wish.dry_run and wish.key is not None and await first_result(room.staging, request, wish.places)
    unknown = repeated or wish.dry_run  # a dry run does not look whether its request was staged before
    with room.secret_lane.staged_on(request, None if unknown else head):
        return await _change_keys(room, row, wish, request, changes, head=head, repeated=repeated)


async def _change_keys(
    room: SecretRoom,
    row: ClusterRow,
    wish: SecretWish,
    request: UUID,
    changes: Callable[[], Awaitable[Sequence[KeyChange]]],
    *,
    head: CommitId | None,
    repeated: bool,
) -> ChangedKeys:
    if not repeated:
        check_writable(row)
        wanted = await changes()
        reserved = await reserved_namespaces(room.flux_namespace, row)
        refuse_reserved(wanted, wish.templates, reserved)
        given_up = {
            place
            for place in row.must_reenter
            if _is_reserved(SecretReference(*place.split("/")[:2]), reserved=reserved)
        }
        await stage(room, row, request, wanted, wish, head=head, given_up=given_up)
    warnings = await _warnings(room, row, wish, head)
    if wish.dry_run:
        return ChangedKeys(None, warnings)
    return ChangedKeys(await commit_of(room, wish.cluster, request, repeated=repeated), warnings)


async def _warnings(room: SecretRoom, row: ClusterRow, wish: SecretWish, head: CommitId | None) -> Sequence[str]:
    """None where they cannot be read, unless nothing is staged: an error would say of a request that it is not."""
    try:
        return await asyncio.to_thread(namespace_warnings, room.git, row, head, wish.expected)
    except EdgewrightError:
        if wish.dry_run:
            raise
        return ()


def request_id(cluster: UUID, asker: str, path: str, key: str | None) -> UUID:
    """The ID of a request; the same for the same ``Idempotency-Key`` of the same asker at the same path.

    Without the asker, a secret would be taken for stored because somebody else has used the key before.
    """
    return uuid4() if key is None else uuid5(cluster, f"{asker}\n{path}\n{key}")


async def first_result(staging: SecretStaging, request: UUID, places: Sequence[SecretPlace]) -> bool:
    """Whether a request was staged before.

    Raises:
        Invalid: code ``idempotency_key_reused``: it was for other keys.
    """
    staged = await staging.request(request)
    if staged and Counter(row.place for row in staged) != Counter(places):
        raise Invalid("This Idempotency-Key was used for another request.", code="idempotency_key_reused")
    return bool(staged)


def check_writable(row: ClusterRow) -> None:
    """Raises ``Conflict`` (``deleting``, ``removed``, ``paused``) if the cluster takes no changes of secrets."""
    if row.desired is Desired.DELETED:
        raise Conflict("The cluster is being deleted and takes no more secrets.", code="deleting")
    if row.desired is Desired.REMOVED:
        raise Conflict("The cluster was removed centrally and takes no secrets.", code="removed")
    if row.paused:
        raise Conflict(
            "Commits of this cluster are paused.",
            code="paused",
            hint=f"Resume them first: edgewright cluster resume {row.spec.name}.",
        )


OWN_PREFIX = "edgewright-"
"""Secrets of the product itself begin so, on every edge; but ``FLUX_SECRET``."""


async def reserved_namespaces(flux_namespace: FluxNamespace, row: ClusterRow) -> Mapping[str, str]:
    """Namespaces of the edge that are not the operator's, into which nothing is sealed -> whose they are.

    Programs there have all rights on the edge, or hold its sealing key and its credentials, and read what to do from
    Secrets: whoever writes those reads, in the end, the secrets of others.
    """
    return {
        row.spec.namespace: EDGEWRIGHT,  # first: whoever names another's namespace for a cluster opens nothing of it
        FLUX_NAMESPACE: FLUX,
        await flux_namespace.read(): FLUX,
        KUBERNETES_NAMESPACE: KUBERNETES,
    }


def _is_reserved(secret: SecretReference, *, reserved: Mapping[str, str]) -> bool:
    """Whoever has another namespace than Edgewright's own may have workloads there, too, as ACS has."""
    if reserved.get(secret.namespace) != EDGEWRIGHT or secret.namespace == EDGEWRIGHT_NAMESPACE:
        return secret.namespace in reserved
    return secret.name == FLUX_SECRET or secret.name.startswith(OWN_PREFIX)


def refuse_reserved(changes: Sequence[KeyChange], templates: Templates, reserved: Mapping[str, str]) -> None:
    """Lets deletions pass: what an earlier version has sealed there can be taken away.

    Raises:
        Invalid: code ``namespace_reserved``: a value, type, label or annotation is for one of these namespaces;
            ``secret_name_invalid``: for a name whose file Flux would not take for a secret.
    """
    written = [change.place.secret for change in changes if change.value is not None]
    for secret in (*written, *templates):
        check_stored_name(secret.name)
        if _is_reserved(secret, reserved=reserved):
            raise Invalid(
                f"The secret {secret.name} cannot be sealed into the namespace {secret.namespace} of this cluster: "
                f"it belongs to {reserved[secret.namespace]}.",
                code="namespace_reserved",
                hint="Use a namespace of your own workloads.",
                where="namespace",
            )


async def stage(
    room: SecretRoom,
    row: ClusterRow,
    request: UUID,
    changes: Sequence[KeyChange],
    wish: SecretWish,
    *,
    head: CommitId | None,
    given_up: Collection[str],
) -> None:
    """Checks everything, seals, and stages the ciphertext; a dry run stages nothing.

    Args:
        head: what it is tried on.
        given_up: ``namespace/name/key`` of what may be deleted although it is not there: it is listed to be entered
            again and never can be, so that its deletion takes it off that list.

    Raises:
        NotFound: ``no_edge_status``; ``secret_unknown`` for what is not there and is deleted or labelled.
        Waiting: ``no_certificate``.
        Invalid: ``too_many_namespaces``.
        TooLarge: ``secret_too_large``: all keys of one Secret together, its annotations, or its file.
        Conflict: ``secret_type_immutable``.
        Invalid: ``secret_keys_missing``, ``secret_value_invalid``: an edge would refuse the Secret, of its type.
        Stalled: ``sealed_secret_malformed``: its file was broken by hand.
    """
    sealing = any(change.value is not None for change in changes)
    certificate = sealing_certificate(row) if sealing else None
    sealed = await asyncio.to_thread(
        sealed_changes,
        room,
        row,
        changes,
        head=head,
        templates=wish.templates,
        certificate=certificate,
        given_up=given_up,
    )
    if not wish.dry_run:
        templates = dict(wish.templates)
        await room.staging.stage(
            [
                StagedChange(
                    request=request,
                    cluster=row.uuid,
                    generation=row.generation,
                    place=change.place,
                    ciphertext=None if value is None else value.ciphertext,
                    fingerprint=None if value is None else value.fingerprint,
                    sealed_at=datetime.now(UTC) if value is None or value.sealed_at is None else value.sealed_at,
                    actor=wish.actor,
                    sequence=sequence,
                    creates_namespace=change.create_namespace,
                    template=templates.pop(change.place.secret, None),  # the first of its Secret has it
                )
                for sequence, (change, value) in enumerate(zip(changes, sealed, strict=True))
            ]
        )


async def commit_of(room: SecretRoom, cluster: UUID, request: UUID, *, repeated: bool) -> CommitId:
    """Has a staged request committed, and returns the commit that holds it.

    Args:
        repeated: it was staged before, so that it may be settled already.

    Raises:
        Waiting: ``commit_unconfirmed``; the same ``Idempotency-Key`` finds the result later.
        Conflict: why the request can never be committed.
    """
    try:
        if not repeated or not _settled(await room.staging.request(request)):
            commit = await room.secret_lane.change(cluster, request)
            if commit is not None:
                return commit
    except EdgewrightError:
        pass  # of the workflow, whatever it says: the request is staged, and its rows tell what comes of it
    try:
        return outcome_of(await room.secret_commits.outcome(cluster, request))
    except (Stalled, Waiting) as error:
        raise _unconfirmed() from error


def outcome_of(rows: Sequence[StagedChange]) -> CommitId:
    """The commit of a request; of one whose keys were in part written again since, that of the others.

    Raises:
        Waiting, Conflict: see ``commit_of``.
    """
    first = next((row for row in rows if row.state is not StagedState.SUPERSEDED), rows[0] if rows else None)
    if first is None or first.state is StagedState.STAGED:
        raise _unconfirmed()
    if first.state is StagedState.COMMITTED and first.commit is not None:
        return first.commit
    if first.state is StagedState.SUPERSEDED:
        raise Conflict("A newer value of the same key was committed in its place.", code="superseded")
    raise Conflict(first.refusal or "The change was refused.", code=first.refusal_code or "refused")


def _unconfirmed() -> Waiting:
    return Waiting(
        "The change is stored, but its commit is not confirmed yet.",
        code="commit_unconfirmed",
        retry_after=2.0,
        hint="Send it again with the same Idempotency-Key to learn the outcome.",
    )


def _settled(rows: Sequence[StagedChange]) -> bool:
    return bool(rows) and rows[0].state is not StagedState.STAGED
