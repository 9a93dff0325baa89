"""What one cluster asks for does not hold the loop that all others wait for."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from centre import Centre
from loop_watch import Held, loop_watched
from sealing_keys import sealing_certificate

from activities.secrets import LOOK_BACK, REQUEST_TRAILER
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, SealedValue, put_values, read_values, seal

KEYS = 1_000
"""As many changes as one request may have."""
ROUNDS = 3
"""What a bulk write does to the loop it does each time; a moment's hiccup of the machine comes once."""
BULK_COMMITS = 60
WAITING = 100
"""Requests of one value each, which have waited."""


def bulk(cluster: UUID, prefix: str) -> list[StagedChange]:
    """One request; two of them do not fit into one Secret."""
    certificate = sealing_certificate()
    ciphertext = seal(Plaintext(b"v" * 400), certificate, scope=Scope.STRICT, namespace="default", name="db")
    one = StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=1,
        namespace="default",
        name="db",
        key=prefix,
        ciphertext=ciphertext,
        fingerprint=certificate.fingerprint,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )
    return [replace(one, key=f"{prefix}-{number:04d}") for number in range(KEYS)]


async def test_a_bulk_write_holds_the_worker_for_no_longer_than_a_moment(centre: Centre) -> None:
    held = min([await held_by_a_bulk_write(centre, f"bulk-writer-{number}") for number in range(ROUNDS)], key=longest)
    assert held.callbacks > 0
    allowed = seconds_of_yaml(bulk(uuid4(), "yaml")) / 3
    assert held.seconds < allowed, f"{held.what} took {held.seconds:.3f} s of the loop, {allowed:.3f} s are allowed"


async def test_looking_for_an_earlier_commit_among_bulk_writes_does_not_hold_the_worker(centre: Centre) -> None:
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
        replace(change, request=uuid4(), name=f"db-{number}", sealed_at=waited)
        for number, change in enumerate(bulk(cluster, "one")[:WAITING])
    ]
    for change in waiting:
        await centre.ports.staging.stage([change])
    with loop_watched() as held:
        await centre.ports.fleet.change_secrets(cluster, [change.request for change in waiting])
    [last] = await centre.ports.staging.request(waiting[-1].request)
    assert last.state == StagedState.COMMITTED
    allowed = seconds_of_the_search(centre, cluster) / 3
    assert held.seconds < allowed, f"{held.what} took {held.seconds:.3f} s of the loop, {allowed:.3f} s are allowed"


def seconds_of_the_search(centre: Centre, cluster: UUID) -> float:
    """Processor time of looking through the log for each of the requests that wait."""
    log = centre.git.log(cluster, limit=LOOK_BACK)
    began = time.thread_time()
    for request in [str(uuid4()) for _ in range(WAITING)]:
        assert not any(request in commit.message for commit in log)
    return time.thread_time() - began


async def held_by_a_bulk_write(centre: Centre, name: str) -> Held:
    """Of a cluster of its own."""
    cluster = await centre.create(name)
    requests = [bulk(cluster, prefix) for prefix in ("first", "second")]
    for changes in requests:
        await centre.ports.staging.stage(changes)
    with loop_watched() as held:
        await centre.ports.fleet.change_secrets(cluster, [changes[0].request for changes in requests])
    ends = [(await centre.ports.staging.request(changes[0].request))[0].state for changes in requests]
    assert ends == [StagedState.COMMITTED, StagedState.REFUSED], "they do not fit into one Secret together"
    return held


def longest(held: Held) -> float:
    return held.seconds


def seconds_of_yaml(changes: Sequence[StagedChange]) -> float:
    """Processor time that a file of one request takes here: what is allowed has to be slow where the machine is."""
    values = {change.key: SealedValue(change.ciphertext or "", "a" * 64, change.sealed_at) for change in changes}
    began = time.thread_time()
    read_values(put_values(None, "default", "db", values))
    return time.thread_time() - began
