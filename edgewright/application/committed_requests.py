"""Which staged requests a repository holds already: the worker asks after it has died, a restore after a put-back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from edgewright.ports.git_server import CommitId, CommitSummary
from edgewright.ports.secret_staging import StagedChange

REQUEST_TRAILER = "Edgewright-Request"
CLOCKS_DIFFER = timedelta(hours=1)
"""At most, between the gateway that seals and the worker that commits."""
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
