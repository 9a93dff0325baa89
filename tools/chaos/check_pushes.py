"""Every push that was answered is in the history and at the head, and nothing else is in `by-hand/`.

A deletion takes what was pushed away from the head, and the history with it into the archive.
"""

from collections.abc import Iterator

from tools.chaos.evidence import Case, Violation
from tools.chaos.golden import BY_HAND
from tools.chaos.repositories import CheckedCommit, CheckedRepository


def is_push(commit: CheckedCommit) -> bool:
    """Whether a person has made it: the centre writes elsewhere, and signs what it does."""
    return not commit.trailers and bool(commit.changed) and all(path.startswith(BY_HAND) for path in commit.changed)


def check_pushes(case: Case) -> Iterator[Violation]:
    for repository in case.repositories:
        if not repository.damage:
            yield from _check_pushes(case, repository)


def _check_pushes(case: Case, repository: CheckedRepository) -> Iterator[Violation]:
    commits = {commit.id for commit in repository.commits}
    pushes = [line for line in case.lines if line.verb == "push"]
    asked = {line.asked["file"]: line.asked["text"] for line in pushes}
    for line in pushes:
        if line.outcome != "yes":
            continue
        if line.said["commit"] not in commits:
            yield case.violation("push_lost", f"{line.wish} was answered with {line.said['commit']}")
        elif not repository.archived and line.asked["file"] not in repository.files:
            yield case.violation("push_lost", f"{line.asked['file']} is not at the head")
    for path, blob in repository.files.items():
        if path.startswith(BY_HAND) and path.endswith(".txt") and repository.blobs[blob] != asked.get(path):
            yield case.violation("push_foreign", f"nobody has pushed {path} like this")
