"""Which staged requests a repository holds already: the worker asks after it has died, a restore after a put-back."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from edgewright.ports.git_server import CommitId, CommitSummary
from edgewright.ports.secret_staging import StagedChange

REQUEST_TRAILER = "Edgewright-Request"
CLOCKS_DIFFER = timedelta(hours=1)
"""At most, between the gateway that seals and the worker that commits."""
LOOK_BACK = 500
"""Commits of the centre searched for a request that an attempt before this one may have committed and not recorded:
whoever commits secrets records first what it finds. Pushes do not count: one alone may bring thousands of commits."""
EVERYTHING = 1_000_000
_OF_THE_CENTRE = re.compile(r"^Edgewright-Fence: \d+/\d+$", re.MULTILINE)
_REQUESTS = re.compile(rf"{REQUEST_TRAILER}: ([0-9a-f-]{{36}})")


def already_committed(
    log: Iterable[CommitSummary], requests: Mapping[UUID, Sequence[StagedChange]]
) -> dict[CommitId, list[UUID]]:
    """Staged requests that a commit names, by commit, in the order of the log.

    A commit that is older than what is staged is of the same request, sent before and forgotten since. Blocks: the
    messages of bulk writes are long. Each is read once, however many requests are staged.

    Only commits of the centre have such lines: a push that brings one is refused (``adapters.git.pre_receive``).
    """
    staged = {str(request): request for request in requests}
    found: dict[CommitId, list[UUID]] = {}
    for commit in log:
        made_at = datetime.fromtimestamp(commit.at, UTC)
        named = (staged[told] for told in dict.fromkeys(_REQUESTS.findall(commit.message)) if told in staged)
        younger = [each for each in named if made_at >= requests[each][0].sealed_at - CLOCKS_DIFFER]
        if younger:
            found[commit.commit] = younger
    return found


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
    return [UUID(told) for told in dict.fromkeys(_REQUESTS.findall(commit.message))]


def by_request(changes: Sequence[StagedChange]) -> dict[UUID, list[StagedChange]]:
    """Changes of each request, in the order given."""
    grouped: dict[UUID, list[StagedChange]] = {}
    for change in changes:
        grouped.setdefault(change.request, []).append(change)
    return grouped
