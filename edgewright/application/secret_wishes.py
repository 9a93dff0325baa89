"""Takes wishes for secrets: checks and seals them, stages the ciphertext, and tells what has become of them.

Plaintext lives in a ``Plaintext`` from the door to ``seal`` and nowhere else. The staged rows of a request are its
idempotency record: the same request, sent again, finds them.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from edgewright.application.secret_namespaces import is_reserved, namespace_warnings, reserved_namespaces
from edgewright.application.secret_sealing import (
    KeyChange,
    SealTimer,
    TemplateChanges,
    sealed_changes,
    sealing_certificate,
)
from edgewright.domain.cluster import Desired
from edgewright.domain.kubernetes_names import SecretPlace, check_stored_name
from edgewright.errors import Conflict, EdgewrightError, Invalid, NotFound, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.ports.secret_staging import SecretStaging, StagedChange, StagedState

Changes = Callable[[], Awaitable[Sequence[KeyChange]]]
"""Reads what is to be changed; asked only if it is needed."""


@dataclass(frozen=True)
class SecretWish:
    """Who asks for a change of which keys, and how.

    Args:
        request: its ID; the same for a request that is sent again.
        repeatable: it may have been sent before.
        places: what each change is about.
        expected: namespaces that get a value and have to be on the edge already.
        dry_run: everything is checked and sealed, nothing is stored.
        templates: of Secrets that ``places`` are of.
    """

    cluster: UUID
    request: UUID
    repeatable: bool
    actor: str
    places: Sequence[SecretPlace]
    dry_run: bool
    templates: TemplateChanges = field(default_factory=dict)
    expected: AbstractSet[str] = frozenset()


@dataclass(frozen=True)
class StateBeforeWish:
    """What there was before a wish was taken.

    Args:
        head: of the cluster's repository; None: it has no commit yet.
        repeated: the request was staged before.
    """

    head: CommitId | None
    repeated: bool


class SecretWishes:
    """Plaintext in, staged ciphertext out.

    Args:
        flux_namespace: reads the namespace of the Flux that edges get.
        timer: measures how long sealing takes.
    """

    def __init__(
        self,
        git: GitServer,
        staging: SecretStaging,
        *,
        flux_namespace: Callable[[], Awaitable[str]],
        timer: SealTimer,
    ) -> None:
        self._git = git
        self._staging = staging
        self._flux_namespace = flux_namespace
        self._timer = timer

    async def before(self, wish: SecretWish) -> StateBeforeWish:
        """What a wish begins with. The head is read before the wish can have staged anything.

        Raises:
            Invalid: code ``idempotency_key_reused``: the request was for other keys.
        """
        head = await asyncio.to_thread(_head_of, self._git, wish.cluster)
        may_be_known = wish.repeatable and not wish.dry_run
        return StateBeforeWish(head, may_be_known and await self._is_staged(wish))

    async def take(
        self, row: ClusterRow, wish: SecretWish, before: StateBeforeWish, changes: Changes
    ) -> Sequence[str]:
        """Checks everything, seals, and stages the ciphertext, unless that was done before; a dry run stages nothing.

        Returns:
            What keeps the values from arriving on the edge.

        Raises:
            NotFound: ``no_edge_status``; ``secret_unknown`` for what is not there and is deleted or labelled.
            Waiting: ``no_certificate``.
            Invalid: ``namespace_reserved``, ``secret_name_invalid``, ``too_many_namespaces``.
            TooLarge: ``secret_too_large``: all keys of one Secret together, its annotations, or its file.
            Conflict: ``deleting``, ``removed``, ``paused``; ``secret_type_immutable``.
            Invalid: ``secret_keys_missing``, ``secret_value_invalid``: an edge would refuse the Secret, of its type.
            Stalled: ``sealed_secret_malformed``: its file was broken by hand.
        """
        if not before.repeated:
            check_writable(row)
            wanted = await changes()
            reserved = reserved_namespaces(row, flux=await self._flux_namespace())
            refuse_reserved(wanted, wish.templates, reserved)
            await self._stage(row, wish, wanted, head=before.head, given_up=_given_up(row, reserved))
        return await self._warnings(row, wish, before.head)

    async def _is_staged(self, wish: SecretWish) -> bool:
        staged = await self._staging.request(wish.request)
        if staged and Counter(change.place for change in staged) != Counter(wish.places):
            raise Invalid("This Idempotency-Key was used for another request.", code="idempotency_key_reused")
        return bool(staged)

    async def _stage(
        self,
        row: ClusterRow,
        wish: SecretWish,
        changes: Sequence[KeyChange],
        *,
        head: CommitId | None,
        given_up: Collection[SecretPlace],
    ) -> None:
        sealing = any(change.value is not None for change in changes)
        certificate = sealing_certificate(row) if sealing else None
        sealed = await asyncio.to_thread(
            sealed_changes,
            self._git,
            row,
            changes,
            head=head,
            templates=wish.templates,
            certificate=certificate,
            given_up=given_up,
            timer=self._timer,
        )
        if wish.dry_run:
            return
        templates = dict(wish.templates)
        await self._staging.stage(
            [
                StagedChange(
                    request=wish.request,
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

    async def _warnings(self, row: ClusterRow, wish: SecretWish, head: CommitId | None) -> Sequence[str]:
        """None where they cannot be read, unless it is a dry run: an error would say that nothing is staged."""
        try:
            return await asyncio.to_thread(namespace_warnings, self._git, row, head, wish.expected)
        except EdgewrightError:
            if wish.dry_run:
                raise
            return ()


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


def refuse_reserved(changes: Sequence[KeyChange], templates: TemplateChanges, reserved: Mapping[str, str]) -> None:
    """Lets deletions pass: what an earlier version has sealed there can be taken away.

    Raises:
        Invalid: code ``namespace_reserved``: a value, type, label or annotation is for one of these namespaces;
            ``secret_name_invalid``: for a name whose file Flux would not take for a secret.
    """
    written = [change.place.secret for change in changes if change.value is not None]
    for secret in (*written, *templates):
        check_stored_name(secret.name)
        if is_reserved(secret, reserved=reserved):
            raise Invalid(
                f"The secret {secret.name} cannot be sealed into the namespace {secret.namespace} of this cluster: "
                f"it belongs to {reserved[secret.namespace]}.",
                code="namespace_reserved",
                hint="Use a namespace of your own workloads.",
                where="namespace",
            )


def outcome_of(rows: Sequence[StagedChange]) -> CommitId:
    """The commit of a request; of one whose keys were in part written again since, that of the others.

    Raises:
        Waiting: ``commit_unconfirmed``; the same request, sent again, finds the result later.
        Conflict: why the request can never be committed.
    """
    first = next((row for row in rows if row.state is not StagedState.SUPERSEDED), rows[0] if rows else None)
    if first is None or first.state is StagedState.STAGED:
        raise commit_unconfirmed()
    if first.state is StagedState.COMMITTED and first.commit is not None:
        return first.commit
    if first.state is StagedState.SUPERSEDED:
        raise Conflict("A newer value of the same key was committed in its place.", code="superseded")
    raise Conflict(first.refusal or "The change was refused.", code=first.refusal_code or "refused")


def is_settled(rows: Sequence[StagedChange]) -> bool:
    """Whether a request was dealt with, in whatever way."""
    return bool(rows) and rows[0].state is not StagedState.STAGED


def commit_unconfirmed() -> Waiting:
    """A request is staged, and nobody can say yet what comes of it."""
    return Waiting(
        "The change is stored, but its commit is not confirmed yet.",
        code="commit_unconfirmed",
        retry_after=2.0,
        hint="Send it again with the same Idempotency-Key to learn the outcome.",
    )


def _given_up(row: ClusterRow, reserved: Mapping[str, str]) -> AbstractSet[SecretPlace]:
    """What may be deleted although it is not there.

    It is listed to be entered again and never can be, so that its deletion takes it off that list.
    """
    return {
        place
        for place in row.must_reenter
        if isinstance(place, SecretPlace) and is_reserved(place.secret, reserved=reserved)
    }


def _head_of(git: GitServer, cluster: UUID) -> CommitId | None:
    """The newest commit of a cluster's repository; None: it has none yet. Blocks."""
    try:
        return git.head(cluster)
    except NotFound:
        return None
