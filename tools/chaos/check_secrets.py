"""Every secret that was answered opens on the edge that it was meant for, and no other one is there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgewright.application.repository_ahead import PUT_BACK_TRAILER
from tools.chaos.evidence import Case, Violation
from tools.chaos.repositories import CheckedCommit, CheckedRepository, is_secret
from tools.chaos.sealed import Opened, ciphertexts
from tools.chaos.secret_history import AttemptedWish, Place, places_of, secret_wishes


@dataclass(frozen=True)
class Introduced:
    """A ciphertext that a commit brought in."""

    commit: str
    place: str
    opened: Opened


def check_secrets(case: Case) -> Iterator[Violation]:
    for repository in case.repositories:
        if repository.damage:
            continue  # that is told elsewhere
        introduced = list(_introduced(case, repository))
        yield from _check_commits(case, repository, introduced)
        if case.desired in {"present", "removed"} and not repository.archived:
            yield from _check_head(case, repository)


def head_values(case: Case, repository: CheckedRepository) -> dict[str, Opened]:
    """``namespace/name/key`` -> what the edge makes of it, at the head."""
    found: dict[str, Opened] = {}
    for path, blob in repository.files.items():
        if is_secret(path):
            found.update(case.opener.values(repository.blobs[blob]))
    return found


def _introduced(case: Case, repository: CheckedRepository) -> Iterator[Introduced]:
    """A restore may put back what a deletion took away: the same ciphertext, which is not new."""
    there: dict[str, Mapping[str, tuple[str, str]]] = {}
    known: set[tuple[str, tuple[str, str]]] = set()
    for commit in repository.commits:
        for path, blob in commit.changed.items():
            if not is_secret(path):
                continue
            before = there.get(path, {})
            there[path] = ciphertexts(repository.blobs[blob]) if blob else {}
            for place, sealed in there[path].items():
                is_back = PUT_BACK_TRAILER in commit.trailers and (place, sealed) in known
                known.add((place, sealed))
                if before.get(place) != sealed and not is_back:
                    yield Introduced(commit.id, place, case.opener.open(*sealed))


def _check_commits(case: Case, repository: CheckedRepository, introduced: list[Introduced]) -> Iterator[Violation]:
    commits = {commit.id: commit for commit in repository.commits}
    where: dict[tuple[str, str | None], list[str]] = {}
    for each in introduced:
        where.setdefault((each.place, each.opened.value), []).append(each.commit)
        if each.opened.value is None:
            yield case.violation("secret_unopenable", f"{each.place} in {each.commit}")
    for (place, value), found in where.items():
        if value is not None and len(found) > 1:
            yield case.violation("commit_doubled", f"{place} was committed {len(found)} times: {found}")
    for wish in secret_wishes(case):
        for place, value in wish.last.asked["changes"]:
            found = where.get((place, value), []) if value is not None else []
            if wish.last.outcome == "yes":
                yield from _check_commit(case, commits, str(wish.last.said["commit"]), place, value, found)
            elif found and _says_that_it_did_not_happen(wish):
                refused = f"{wish.last.wish} {place} was refused ({wish.last.code}) and is in {found}"
                yield case.violation("refused_yet_committed", refused)


def _says_that_it_did_not_happen(wish: AttemptedWish) -> bool:
    """Not of a cluster that was deleted after an attempt without an answer: then the cluster is what is not there."""
    return wish.outcome == "no" or (
        wish.last.outcome == "no" and wish.last.code not in {"cluster_unknown", "cluster_deleted"}
    )


def _check_commit(
    case: Case, commits: Mapping[str, CheckedCommit], commit: str, place: str, value: str | None, found: list[str]
) -> Iterator[Violation]:
    """The commit that was answered is there and holds the value."""
    if commit not in commits:
        yield case.violation("commit_lost", f"{place} was answered with {commit}")
    elif value is not None and found != [commit]:
        yield case.violation("secret_lost", f"{place} was answered with {commit} and is in {found}")


def _check_head(case: Case, repository: CheckedRepository) -> Iterator[Violation]:
    places, there = places_of(case), head_values(case, repository)
    allowed = set().union(*(state.keys for state in case.fitting)) if case.fitting else None
    for place in sorted(places.keys() | there.keys()):
        yield from _check_place(case, place, places.get(place), there.get(place), allowed)


def _check_place(
    case: Case, place: str, wished: Place | None, opened: Opened | None, allowed: set[int] | None
) -> Iterator[Violation]:
    assert case.row is not None
    if wished is None:
        yield case.violation("secret_foreign", f"nobody wrote {place}")
        return
    if wished.missed:
        yield case.violation("secret_lost", f"{place} was not found by {wished.missed}")
    value = opened.value if opened else None
    if opened is not None and value is None:
        yield case.violation("secret_unopenable", place)
    elif value not in wished.values:
        name = "secret_lost" if value is None else "secret_wrong"
        yield case.violation(name, f"{place} is {value}, wished: {sorted(map(str, wished.values))}")
    elif opened is not None and allowed is not None and opened.key not in allowed:
        yield case.violation("secret_of_other_hardware", f"{place} is sealed for key {opened.key}, not {allowed}")
    again = place in case.row["must_reenter"]
    if wished.taken and not again and opened is None:
        yield case.violation("reentry_lost", f"{place} was taken away and is not listed to be entered again")
    if again and opened is not None and not case.put_backs:  # an older value may be there again
        yield case.violation("reentry_wrong", f"{place} is listed to be entered again, and is there")
