"""What one cluster asks for does not hold the loop that all others wait for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre
from loop_watch import BusiestCallback, Called, calls_of, loop_watched, thread_of
from sealing_keys import sealing_certificate

import edgewright.application.secret_commits
from edgewright.application.committed_requests import REQUEST_TRAILER, already_committed
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, SealedValue, put_values, read_values, seal

KEYS = 1_000
"""As many changes as one request may have."""
BULK_COMMITS = 60
WAITING = 100
"""Requests of one value each, which have waited."""


def bulk(cluster: UUID, prefix: str) -> list[StagedChange]:
    """One request; two of them do not fit into one Secret."""
    certificate = sealing_certificate()
    ciphertext = seal(Plaintext(b"v" * 400), certificate, scope=Scope.STRICT, secret=SecretReference("default", "db"))
    one = StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=1,
        place=SecretKey("default", "db", prefix),
        ciphertext=ciphertext,
        fingerprint=certificate.fingerprint,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )
    return [replace(one, place=SecretKey("default", "db", f"{prefix}-{number:04d}")) for number in range(KEYS)]


async def test_a_bulk_write_holds_the_worker_for_no_longer_than_a_moment(centre: WorkflowCentre) -> None:
    held = await held_by_a_bulk_write(centre, "bulk-writer")
    assert held.callbacks > 0
    allowed = calls_for_yaml(bulk(uuid4(), "yaml")) // 4
    assert held.calls < allowed, f"{held.what} makes {held.calls} calls at once, {allowed} are allowed"


async def test_looking_for_an_earlier_commit_among_bulk_writes_does_not_hold_the_worker(
    centre: WorkflowCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that has waited for more than a moment may be a repetition: the log tells, and messages are long."""
    cluster = await centre.create("behind-bulk-writes")
    head = centre.git.head(cluster)
    for number in range(BULK_COMMITS):
        lines = "\n".join(f"Seal default/bulk/{number}-{key:04d} (by token:{uuid4()})" for key in range(KEYS))
        trailers = ((REQUEST_TRAILER, str(uuid4())),)
        message = CommitMessage(f"Change {KEYS} secret values", "test", trailers, lines)
        head = centre.git.commit(cluster, {"by-hand/n": str(number).encode()}, message, expected_head=head)
    waited = datetime.now(UTC) - timedelta(minutes=1)
    waiting = [
        replace(change, request=uuid4(), place=SecretKey("default", f"db-{number}", "k"), sealed_at=waited)
        for number, change in enumerate(bulk(cluster, "one")[:WAITING])
    ]
    for change in waiting:
        await centre.ports.staging.stage([change])
    searched = Called()
    search = thread_of(already_committed, searched)
    monkeypatch.setattr(edgewright.application.secret_commits, "already_committed", search)
    await centre.fleet.change_secrets(cluster, [change.request for change in waiting])
    [last] = await centre.ports.staging.request(waiting[-1].request)
    assert last.state == StagedState.COMMITTED
    assert searched.threads
    assert not searched.by_this_thread


async def held_by_a_bulk_write(centre: WorkflowCentre, name: str) -> BusiestCallback:
    """What two requests do to the loop when they are committed."""
    cluster = await centre.create(name)
    requests = [bulk(cluster, prefix) for prefix in ("first", "second")]
    for changes in requests:
        await centre.ports.staging.stage(changes)
    with loop_watched() as held:
        await centre.fleet.change_secrets(cluster, [changes[0].request for changes in requests])
    ends = [(await centre.ports.staging.request(changes[0].request))[0].state for changes in requests]
    assert ends == [StagedState.COMMITTED, StagedState.REFUSED], "they do not fit into one Secret together"
    return held


def calls_for_yaml(changes: Sequence[StagedChange]) -> int:
    """What a file of one request takes."""
    values = {
        str(change.place).rpartition("/")[2]: SealedValue(change.ciphertext or "", "a" * 64, change.sealed_at)
        for change in changes
    }
    return calls_of(lambda: read_values(put_values(None, SecretReference("default", "db"), values)))
