"""One repository per cluster, one commit per intended change, and the newest wish delivered."""

from collections import Counter
from collections.abc import Iterator

import yaml

from tools.chaos.check_pushes import is_push
from tools.chaos.evidence import Case, Violation
from tools.chaos.golden import RELEASE_FILE
from tools.chaos.repositories import CheckedCommit, CheckedRepository
from tools.chaos.requests import stamp_of
from tools.chaos.secret_history import wishes_of

GENERATED = ("Commission ", "Render ")
GENERATING = frozenset({"create", "change", "recreate"})
ONCE_A_FENCE = (*GENERATED, "Take away ", "Remove the workloads ")


def check_repository(case: Case) -> Iterator[Violation]:
    if case.row is None:
        return
    yield from _check_count(case)
    for repository in case.repositories:
        if repository.damage:
            yield case.violation("repository_damaged", repository.damage[:300])
        else:
            yield from _check_commits(case, repository)
    if case.desired == "present":
        for repository in case.in_service:
            yield from _check_delivery(case, repository)


def _check_count(case: Case) -> Iterator[Violation]:
    here, archived = len(case.in_service), len(case.repositories) - len(case.in_service)
    if case.closed:
        if archived > 1 or (case.was_ready and not archived):
            name = "repository_doubled" if archived else "repository_missing"
            yield case.violation(name, f"{archived} in the archive")
    elif (
        case.desired != "deleted"
        and (here, archived) != (1, 0)
        and (here or case.desired == "present" or case.was_ready)
    ):
        name = "repository_doubled" if here else "repository_missing"
        yield case.violation(name, f"{here} in service, {archived} in the archive")


def _check_commits(case: Case, repository: CheckedRepository) -> Iterator[Violation]:
    before: CheckedCommit | None = None
    fence, restored = (0, 0), case.restored
    for commit in repository.commits:
        if commit.parents != ((before.id,) if before else ()):
            yield case.violation("history_forked", commit.id)
        if before is not None and commit.tree == before.tree:
            yield case.violation("commit_doubled", f"{commit.id} changes nothing: {commit.subject}")
        before = commit
        if is_push(commit):
            continue
        if commit.trailers.get("Edgewright-Cluster") != (case.uuid,):
            yield case.violation("commit_foreign", f"{commit.id}: {commit.trailers}")
        if commit.fence is not None and commit.fence < fence and restored:
            restored -= 1  # the repository was ahead of the database that was put back
        elif commit.fence is None or commit.fence < fence:
            yield case.violation("fence_backwards", f"{commit.id}: {commit.fence} after {fence}")
        fence = commit.fence or fence
    yield from _check_doubled(case, repository)


def _check_doubled(case: Case, repository: CheckedRepository) -> Iterator[Violation]:
    requests = Counter(
        request.split()[0]
        for commit in repository.commits
        for request in commit.trailers.get("Edgewright-Request", ())
    )
    kinds = Counter(
        (next(kind for kind in ONCE_A_FENCE if commit.subject.startswith(kind)), commit.fence)
        for commit in repository.commits
        if commit.subject.startswith(ONCE_A_FENCE)
    )
    for what, count, most in [
        *((request, count, 1) for request, count in requests.items()),
        *((kind, count, 1 + case.restored) for kind, count in kinds.items()),
    ]:
        if count > most:
            yield case.violation("commit_doubled", f"{count} commits of {what}")
    rendered = sum(count for (kind, _), count in kinds.items() if kind in GENERATED)
    most = _most_generated(case, default=rendered) + _most_upgrades(case)
    if rendered > most + case.restored:
        yield case.violation("commit_unasked", f"{rendered} generated commits, {most} wishes")


def _most_generated(case: Case, *, default: int) -> int:
    """As many as there were wishes; a repository that is ahead of the database knows some that the row does not."""
    if case.restored:
        asked = wishes_of(line for line in case.lines if line.verb in GENERATING)
        return sum(wish.outcome != "no" for wish in asked)
    return max((state.changes + state.commissioning for state in case.fitting), default=default)


def _most_upgrades(case: Case) -> int:
    """Each wish for an upgrade may bring a commit, and so may each call-off."""
    asked = wishes_of(line for line in case.asked if line.verb in {"upgrade", "call off"})
    return sum(wish.outcome != "no" for wish in asked)


def _check_delivery(case: Case, repository: CheckedRepository) -> Iterator[Violation]:
    assert case.row is not None
    blob = repository.files.get(RELEASE_FILE)
    if repository.damage:
        return
    if blob is None:
        yield case.violation("update_not_delivered", f"there is no {RELEASE_FILE}")
        return
    release = yaml.load(repository.blobs[blob], Loader=yaml.CSafeLoader)
    wanted, values = case.row["spec"], release["spec"]["values"]
    told = (release["metadata"]["namespace"], stamp_of(release["spec"]), values["global"].get("other") is not None)
    if told != (wanted["namespace"], stamp_of(wanted), wanted.get("chart") is not None):
        yield case.violation("update_not_delivered", f"{told}, wanted {wanted}")
