"""Which staged requests a repository holds already: the worker asks after it has died, a restore after a put-back."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from edgewright.domain.kubernetes_names import StoredPlace, secret_place
from edgewright.ports.git_server import CommitId, CommitSummary
from edgewright.ports.secret_staging import StagedChange

REQUEST_TRAILER = "Edgewright-Request"
REMOVED_KEYS_TRAILER = "Edgewright-Removed-Keys"
"""Names a Secret that a commit takes keys from, as ``namespace/name``."""
CLOCKS_DIFFER = timedelta(hours=1)
"""At most, between who seals and who commits; for commits of earlier versions, and of requests that a database has
lost and that were sent again. Other commits say which row they hold."""
LOOK_BACK = 500
"""Commits of the centre searched for a request that an attempt before this one may have committed and not recorded:
whoever commits secrets records first what it finds. Pushes do not count: one alone may bring thousands of commits."""
LONGEST_LOOK = timedelta(days=1)
"""How far behind the oldest request commits are searched; far more than any clock is wrong, and most pushes older."""
MOST_LOOKED_AT = 20_000
"""Commits of anybody. Half a second of processor time, for whoever has pushed so many since."""
SHORT_LOOK = 2_000
"""The same, where that time is everybody's."""
_OF_THE_CENTRE = re.compile(r"^Edgewright-Fence: \d+/\d+$", re.MULTILINE)
_REQUESTS = re.compile(rf"{REQUEST_TRAILER}: ([0-9a-f-]{{36}})(?: (\d+))?")
_REMOVED_KEYS = re.compile(rf"^{REMOVED_KEYS_TRAILER}: (\S+)$", re.MULTILINE)
_REMOVES_KEY = re.compile(r"^Remove ([^/\s]+/[^/\s]+)/", re.MULTILINE)
"""How commits up to 0.3.0 say it: in their subject, or in a line of their body."""


def already_committed(
    log: Iterable[CommitSummary], requests: Mapping[UUID, Sequence[StagedChange]]
) -> dict[CommitId, list[UUID]]:
    """Staged requests that a commit names, by commit, in the order of the log.

    A commit that names another row, and is older than what is staged, is of the same request, sent before and
    forgotten since. Blocks: the messages of bulk writes are long. Each is read once, however many requests there are.

    Only commits of the centre have such lines: a push that brings one is refused (``adapters.git.pre_receive``).
    """
    staged = {str(request): request for request in requests}
    found: dict[CommitId, list[UUID]] = {}
    for commit in log:
        made_at = datetime.fromtimestamp(commit.at, UTC)
        named = dict(_REQUESTS.findall(commit.message))
        held = [
            staged[told]
            for told, row in named.items()
            if told in staged and _is_of(requests[staged[told]], row, made_at)
        ]
        if held:
            found[commit.commit] = held
    return found


def _is_of(changes: Sequence[StagedChange], row: str, made_at: datetime) -> bool:
    return row in {str(change.sequence) for change in changes} or made_at >= changes[0].sealed_at - CLOCKS_DIFFER


def request_trailer(request: UUID, changes: Sequence[StagedChange]) -> tuple[str, str]:
    """How a commit names a request that it holds: by its ID, and by its first row, for the ID may be used again."""
    return REQUEST_TRAILER, f"{request} {changes[0].sequence}"


def last_of_the_centre(not_before: datetime | None = None) -> Callable[[CommitSummary], bool]:
    """Ends a search through a log that is asked of each commit, newest first.

    Args:
        not_before: where the centre's commits are older than that, too, it ends. A pushed commit may say any time.
    """
    left = LOOK_BACK

    def is_last(commit: CommitSummary) -> bool:
        nonlocal left
        if _OF_THE_CENTRE.search(commit.message) is None:
            return False
        left -= 1
        return left == 0 or (not_before is not None and datetime.fromtimestamp(commit.at, UTC) < not_before)

    return is_last


def names_a_request(commit: CommitSummary) -> bool:
    """Whether it has committed any request."""
    return _REQUESTS.search(commit.message) is not None


def requests_named(commit: CommitSummary) -> list[UUID]:
    """The requests that a commit has committed."""
    return [UUID(told) for told in dict(_REQUESTS.findall(commit.message))]


def removed_keys_trailers(changes: Sequence[StagedChange]) -> list[tuple[str, str]]:
    """How a commit names the Secrets that it takes keys from."""
    secrets = sorted({change.place.secret for change in changes if change.deletes})
    return [(REMOVED_KEYS_TRAILER, str(secret)) for secret in secrets]


def removed_keys_of(commit: CommitSummary) -> frozenset[StoredPlace]:
    """The Secrets that a commit of the centre takes keys from.

    Staged rows cannot tell: they lose their ciphertext with the commit, and are forgotten while an edge may still be
    behind. Nor can a Secret's file: it may be gone and back in one commit.
    """
    named = _REMOVED_KEYS.findall(commit.message)
    if not named and _OF_THE_CENTRE.search(commit.message):
        named = _REMOVES_KEY.findall(commit.message)
    return frozenset(map(secret_place, named))


def by_request(changes: Sequence[StagedChange]) -> dict[UUID, list[StagedChange]]:
    """Changes of each request, in the order given."""
    grouped: dict[UUID, list[StagedChange]] = {}
    for change in changes:
        grouped.setdefault(change.request, []).append(change)
    return grouped
