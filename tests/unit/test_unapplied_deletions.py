"""Which commits an edge may still be at, when a Secret that was deleted comes back with another type."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from memory_git_server import MemoryGitServer

from edgewright.application.committed_requests import REMOVED_KEYS_TRAILER, removed_keys_of, removed_keys_trailers
from edgewright.application.unapplied_deletions import UnappliedDeletions
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.secret_template import TemplateChange
from edgewright.errors import Conflict
from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import SealedValue, change_values

CLUSTER = UUID(int=1)
DB = SecretReference("default", "db")
OLD_TYPE, NEW_TYPE = "example.com/old", "example.com/new"
FENCE = ("Edgewright-Fence", "1/3")
NAMED = (REMOVED_KEYS_TRAILER, str(DB))
BULK = "Seal default/other/k (by token:a)\nRemove default/db/k (by token:b)"


def document(secret_type: str) -> bytes | None:
    value = SealedValue("AgB=", "f1", datetime(2026, 1, 1, tzinfo=UTC))
    return change_values(None, DB, {"k": value}, TemplateChange(secret_type))


def summary(message: str) -> CommitSummary:
    return CommitSummary("c" * 40, message, "somebody", 0)


def staged(place: SecretKey | SecretReference, ciphertext: str | None = None) -> StagedChange:
    return StagedChange(UUID(int=2), CLUSTER, 1, place, ciphertext, None, datetime.now(UTC), "token:test")


def came_and_went(git: MemoryGitServer, removal: CommitMessage) -> CommitId:
    """A repository in which the Secret was made and deleted; returns the commit before both."""
    git.create_repository(CLUSTER)
    first = git.commit(CLUSTER, {"README.md": b"x"}, CommitMessage("Begin", "test"), expected_head=None)
    sealed = CommitMessage("Seal default/db/k", "test", (FENCE,))
    made = git.commit(CLUSTER, {DB.path: document(OLD_TYPE)}, sealed, expected_head=first)
    git.commit(CLUSTER, {DB.path: None}, removal, expected_head=made)
    return first


@pytest.mark.parametrize(
    "removal",
    [
        CommitMessage("Whatever people read", "test", (FENCE, NAMED)),
        CommitMessage("Change 2 secret values", "test", (FENCE, (REMOVED_KEYS_TRAILER, "default/a"), NAMED)),
        CommitMessage("Remove default/db/k", "test", (FENCE,)),
        CommitMessage("Change 2 secret values", "test", (FENCE,), BULK),
    ],
    ids=["trailer", "among others", "subject of 0.3.0", "body of 0.3.0"],
)
def test_what_came_and_went_since_the_edge_applied_anything_keeps_its_type(removal: CommitMessage) -> None:
    git = MemoryGitServer()
    first = came_and_went(git, removal)
    unapplied = UnappliedDeletions(git, CLUSTER, "press-shop", git.head(CLUSTER), first)
    with pytest.raises(Conflict) as refusal:
        unapplied.refuse_other_type(DB, NEW_TYPE)
    assert refusal.value.code == "secret_type_immutable"
    unapplied.refuse_other_type(DB, OLD_TYPE)
    unapplied.refuse_other_type(SecretReference("default", "d"), NEW_TYPE)
    applied = UnappliedDeletions(git, CLUSTER, "press-shop", git.head(CLUSTER), git.head(CLUSTER))
    applied.refuse_other_type(DB, NEW_TYPE)


def test_a_commit_names_each_secret_that_it_takes_keys_from_and_no_other() -> None:
    changes = [
        staged(SecretKey("default", "db", "k")),
        staged(SecretKey("default", "db", "other")),
        staged(SecretKey("default", "kept", "k"), "AgB="),
        staged(SecretReference("default", "labelled")),
        staged(SecretKey("a", "b", "k")),
    ]
    trailers = removed_keys_trailers(changes)
    assert trailers == [(REMOVED_KEYS_TRAILER, "a/b"), (REMOVED_KEYS_TRAILER, "default/db")]
    told = "\n".join(": ".join(each) for each in trailers)
    assert removed_keys_of(summary(f"Change\n\n{told}\n")) == {SecretReference("a", "b"), DB}


def test_words_say_it_only_where_a_commit_of_the_centre_has_no_line_for_it() -> None:
    words, fence = "Remove default/db/k\n\n", ": ".join(FENCE)
    assert removed_keys_of(summary(f"{words}{fence}\n")) == {DB}
    assert removed_keys_of(summary(f"{words}{fence}\n{REMOVED_KEYS_TRAILER}: a/b\n")) == {SecretReference("a", "b")}
    assert removed_keys_of(summary(words)) == frozenset(), "anybody may push a commit with these words"
