"""Has wishes for secrets taken, and waits for the commit that holds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4, uuid5

from api.secret_room import SecretRoom
from edgewright.application.lookup import open_cluster
from edgewright.application.secret_wishes import Changes, SecretWish, commit_unconfirmed, is_settled, outcome_of
from edgewright.errors import EdgewrightError, Stalled, Waiting
from edgewright.ports.git_server import CommitId


@dataclass(frozen=True)
class ChangedKeys:
    """What has become of a request.

    Args:
        commit: the one that holds the changes; None after a dry run.
        warnings: what keeps them from arriving on the edge.
    """

    commit: CommitId | None
    warnings: Sequence[str] = ()


async def change_keys(room: SecretRoom, wish: SecretWish, changes: Changes) -> ChangedKeys:
    """Makes the changes, or finds what has become of them. ``changes`` is asked only if they are needed.

    Raises:
        NotFound, Gone: see ``open_cluster``.
        NotFound, Conflict, Waiting, Invalid, TooLarge, Stalled: see ``SecretWishes``, and ``commit_of``.
    """
    row = await open_cluster(room, wish.cluster)
    before = await room.secret_wishes.before(wish)
    unknown = before.repeated or wish.dry_run  # a dry run does not look whether its request was staged before
    with room.secret_lane.staged_on(wish.request, None if unknown else before.head):
        warnings = await room.secret_wishes.take(row, wish, before, changes)
        if wish.dry_run:
            return ChangedKeys(None, warnings)
        return ChangedKeys(await commit_of(room, wish.cluster, wish.request, repeated=before.repeated), warnings)


def request_id(cluster: UUID, asker: str, path: str, key: str | None) -> UUID:
    """The ID of a request; the same for the same ``Idempotency-Key`` of the same asker at the same path.

    Without the asker, a secret would be taken for stored because somebody else has used the key before.

    Args:
        path: of the request, with its method where several share a path.
        key: the ``Idempotency-Key``, if one was sent.
    """
    return uuid4() if key is None else uuid5(cluster, f"{asker}\n{path}\n{key}")


async def commit_of(room: SecretRoom, cluster: UUID, request: UUID, *, repeated: bool) -> CommitId:
    """Has a staged request committed, and returns the commit that holds it.

    Args:
        repeated: it was staged before, so that it may be settled already.

    Raises:
        Waiting: ``commit_unconfirmed``; the same ``Idempotency-Key`` finds the result later.
        Conflict: why the request can never be committed.
    """
    try:
        if not repeated or not is_settled(await room.staging.request(request)):
            commit = await room.secret_lane.change(cluster, request)
            if commit is not None:
                return commit
    except EdgewrightError:
        pass  # of the workflow, whatever it says: the request is staged, and its rows tell what comes of it
    try:
        return outcome_of(await room.secret_commits.outcome(cluster, request))
    except (Stalled, Waiting) as error:
        raise commit_unconfirmed() from error
