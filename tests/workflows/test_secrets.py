"""Secrets on their way into a repository: coalesced, once, and never in anybody's way."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import remove_content
from sealing_keys import certificate_pem, private_key
from temporalio.testing import ActivityEnvironment

from activities.repository import SecretActivities
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Waiting
from edgewright.messages.steps import CommitSecrets
from edgewright.ports.git_server import CommitId, CommitMessage, WriterFence
from edgewright.ports.secret_staging import PendingChanges, StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, parse_certificate, read_values, seal, sealed_secret

CERTIFICATE = parse_certificate(certificate_pem(private_key()), now=datetime.now(UTC))


def staged(cluster: UUID, name: str, key: str, value: bytes | None, request: UUID | None = None) -> StagedChange:
    ciphertext = None
    if value is not None:
        ciphertext = seal(Plaintext(value), CERTIFICATE, scope=Scope.STRICT, secret=SecretReference("default", name))
    return StagedChange(
        request=request or uuid4(),
        cluster=cluster,
        generation=1,
        place=SecretKey("default", name, key),
        ciphertext=ciphertext,
        fingerprint=CERTIFICATE.fingerprint if ciphertext else None,
        sealed_at=datetime.now(UTC),
        actor="token:test",
    )


async def put(centre: WorkflowCentre, changes: Sequence[StagedChange]) -> Sequence[StagedChange]:
    await centre.ports.staging.stage(changes)
    await centre.fleet.change_secrets(changes[0].cluster, [changes[0].request])
    return await centre.ports.staging.request(changes[0].request)


async def keys(centre: WorkflowCentre, cluster: UUID, name: str) -> set[str]:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    document = await asyncio.to_thread(centre.git.read, cluster, SecretReference("default", name).path, at=head)
    return set(read_values(document)) if document else set()


async def test_a_staged_secret_is_committed_and_its_row_knows_the_commit(centre: WorkflowCentre) -> None:
    cluster = await centre.create("one-secret")
    rows = await put(centre, [staged(cluster, "db", "password", b"s3cr3t")])
    assert rows[0].state is StagedState.COMMITTED
    assert rows[0].commit == await asyncio.to_thread(centre.git.head, cluster)
    assert rows[0].ciphertext is None
    assert await keys(centre, cluster, "db") == {"password"}


async def test_the_same_request_again_has_its_first_commit(centre: WorkflowCentre) -> None:
    cluster = await centre.create("repeated")
    change = staged(cluster, "db", "password", b"one")
    first = await put(centre, [change])
    await put(centre, [staged(cluster, "other", "key", b"two")])
    again = await put(centre, [change])
    assert again[0].commit == first[0].commit
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=10)) == 3


async def test_writers_of_one_secret_all_win_in_few_commits(centre: WorkflowCentre) -> None:
    cluster = await centre.create("crowded")
    await asyncio.gather(*(put(centre, [staged(cluster, "db", f"key-{n}", b"v")]) for n in range(24)))
    assert await keys(centre, cluster, "db") == {f"key-{n}" for n in range(24)}
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=100)) < 24


async def test_a_request_of_many_changes_is_one_commit(centre: WorkflowCentre) -> None:
    cluster = await centre.create("bulk")
    request = uuid4()
    await put(centre, [staged(cluster, f"s{n}", "k", b"v", request) for n in range(30)])
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=10)) == 2


async def test_the_last_key_takes_the_file_with_it(centre: WorkflowCentre) -> None:
    cluster = await centre.create("emptied")
    await put(centre, [staged(cluster, "db", "password", b"v")])
    await put(centre, [staged(cluster, "db", "password", None)])
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    assert SecretReference("default", "db").path not in await asyncio.to_thread(centre.git.list, cluster, "", at=head)


async def commit_all(centre: WorkflowCentre, changes: Sequence[StagedChange]) -> list[StagedChange]:
    """What became of requests of one change each that were committed in one go."""
    for change in changes:
        await centre.ports.staging.stage([change])
    activities = SecretActivities(centre.ports.directory, centre.ports.staging, centre.ports.git)
    await ActivityEnvironment().run(activities.commit_secrets, CommitSecrets(cluster=changes[0].cluster))
    return [row for change in changes for row in await centre.ports.staging.request(change.request)]


async def test_of_many_changes_of_one_file_the_last_word_counts(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("last-word")
        await put(idle_centre, [staged(cluster, "db", "old", b"v")])
    said = [("a", b"1"), ("b", b"1"), ("a", None), ("old", None), ("b", b"2"), ("c", None), ("a", b"2"), ("b", None)]
    rows = await commit_all(idle_centre, [staged(cluster, "db", key, value) for key, value in said])
    assert {row.state for row in rows} == {StagedState.COMMITTED}
    assert len({row.commit for row in rows}) == 1
    assert await keys(idle_centre, cluster, "db") == {"a"}
    gone = await commit_all(idle_centre, [staged(cluster, "db", "a", None), staged(cluster, "db", "d", None)])
    assert {row.state for row in gone} == {StagedState.COMMITTED}
    assert await keys(idle_centre, cluster, "db") == set()


async def test_a_request_that_cannot_be_committed_is_refused_alone(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("one-refused")
    head = await asyncio.to_thread(idle_centre.git.head, cluster)
    broken = {SecretReference("default", "broken").path: b"by a person: {"}
    message = CommitMessage("Break a file", actor="token:test")
    await asyncio.to_thread(idle_centre.git.commit, cluster, broken, message, expected_head=head)
    first, bad, last = [staged(cluster, name, "k", b"v") for name in ("db", "broken", "db")]
    rows = await commit_all(idle_centre, [first, bad, replace(last, place=SecretKey("default", "db", "l"))])
    assert [row.state for row in rows] == [StagedState.COMMITTED, StagedState.REFUSED, StagedState.COMMITTED]
    assert rows[1].refusal_code == "sealed_secret_malformed"
    assert await keys(idle_centre, cluster, "db") == {"k", "l"}


async def test_a_secret_whose_file_is_damaged_is_refused_and_loses_nothing(idle_centre: WorkflowCentre) -> None:
    """A missing object is no missing file: a file written anew would lack every other key."""
    async with working(idle_centre):
        cluster = await idle_centre.create("damaged")
        await put(idle_centre, [staged(cluster, "db", "user", b"v")])
    head = await asyncio.to_thread(idle_centre.git.head, cluster)
    remove_content(idle_centre.git.folder(cluster), SecretReference("default", "db").path)
    for count in (1, 2):
        rows = await commit_all(idle_centre, [staged(cluster, "db", f"k{n}", b"v") for n in range(count)])
        assert {(row.state, row.refusal_code) for row in rows} == {(StagedState.REFUSED, "repository_damaged")}
        assert SecretReference("default", "db").path in rows[0].refusal
    assert await asyncio.to_thread(idle_centre.git.head, cluster) == head
    [row] = await commit_all(idle_centre, [staged(cluster, "other", "k", b"v")])
    assert row.state is StagedState.COMMITTED, "the rest of the repository is whole"


async def test_staged_secrets_that_nobody_waits_for_any_more_are_committed_all_the_same(
    idle_centre: WorkflowCentre,
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("left-over")
    change = staged(cluster, "db", "password", b"v")
    await idle_centre.ports.staging.stage([change])
    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        await eventually(lambda: committed(idle_centre, change.request))


async def committed(centre: WorkflowCentre, request: UUID) -> bool:
    return all(row.state is StagedState.COMMITTED for row in await centre.ports.staging.request(request))


class DiesAfterCommit:
    """A worker that commits and dies before it records that."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.deaths = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    async def committed(self, requests: Sequence[UUID], commit: str) -> None:
        if not self.deaths:
            self.deaths += 1
            raise Waiting("died between commit and record", retry_after=0.1)
        await self._real.committed(requests, commit)


async def test_a_commit_that_was_not_recorded_is_found_and_not_made_twice(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("half-done")
    async with working(idle_centre, staging=DiesAfterCommit(idle_centre.ports.staging)):
        rows = await put(idle_centre, [staged(cluster, "db", "password", b"v")])
    assert rows[0].state is StagedState.COMMITTED
    assert len(await asyncio.to_thread(idle_centre.git.log, cluster, limit=10)) == 2


class OvertakenAfterCommit(DiesAfterCommit):
    """The same, and before it is tried again the cluster is wanted no more."""

    def __init__(self, real: Any, overtake: Callable[[], Awaitable[object]]) -> None:
        super().__init__(real)
        self._overtake = overtake

    async def committed(self, requests: Sequence[UUID], commit: str) -> None:
        if not self.deaths:
            await self._overtake()
        await super().committed(requests, commit)


@pytest.mark.parametrize("end", ["request_deletion", "request_removal"])
async def test_what_is_in_the_repository_is_not_said_to_be_refused(idle_centre: WorkflowCentre, end: str) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("overtaken")
    overtake = partial(getattr(idle_centre.ports.wishes, end), cluster, actor="token:test")
    staging = OvertakenAfterCommit(idle_centre.ports.staging, overtake)
    async with working(idle_centre, staging=staging):
        [change] = await put(idle_centre, [staged(cluster, "db", "password", b"v")])
    assert staging.deaths == 1
    assert (change.state, change.refusal_code) == (StagedState.COMMITTED, "")


class FailsAtFirst:
    """A database that cannot be asked once."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.failures = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    async def pending(self, cluster: UUID, *, limit: int) -> PendingChanges:
        if not self.failures:
            self.failures += 1
            raise Waiting("not now", retry_after=0.1)
        found: PendingChanges = await self._real.pending(cluster, limit=limit)
        return found


async def test_a_request_that_was_forgotten_and_is_sent_again_is_not_taken_for_committed(
    idle_centre: WorkflowCentre,
) -> None:
    day = timedelta(hours=25)
    async with working(idle_centre):
        cluster = await idle_centre.create("forgotten")
        first = replace(staged(cluster, "db", "password", b"old"), sealed_at=datetime.now(UTC) - day)
        [before] = await put(idle_centre, [first])
        assert await idle_centre.ports.ended_requests.forget() == 1
    database = FailsAtFirst(idle_centre.ports.staging)
    async with working(idle_centre, staging=database):
        again = replace(staged(cluster, "db", "password", b"new", first.request), sealed_at=datetime.now(UTC) + day)
        [after] = await put(idle_centre, [again])
    assert database.failures == 1
    assert after.state is StagedState.COMMITTED
    assert after.commit == await asyncio.to_thread(idle_centre.git.head, cluster) != before.commit


class HangingCommits:
    """Git whose commits hang until they are let go."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.hang = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def commit(
        self,
        repository: UUID,
        changes: dict[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        if self.hang:
            raise Waiting("The Git storage is away.", code="git_unavailable", retry_after=5)
        commit: CommitId = self._real.commit(repository, changes, message, expected_head=expected_head, fence=fence)
        return commit


async def test_operators_verbs_work_while_ten_secret_writes_hang(idle_centre: WorkflowCentre) -> None:
    git = HangingCommits(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("hanging")
        git.hang = True
        changes = [staged(cluster, "db", f"k{n}", b"v") for n in range(10)]
        for change in changes:
            await idle_centre.ports.staging.stage([change])
        writers = [
            asyncio.create_task(idle_centre.fleet.change_secrets(cluster, [change.request])) for change in changes
        ]
        fleet = idle_centre.fleet
        paused = await fleet.pause(cluster, reason="storage", actor="token:test")
        assert any(c.type == "Paused" and c.status == "True" for c in paused.conditions)
        await fleet.resume(cluster, actor="token:test")
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", force=True)
        await fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.phase == "Deleted"))
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


async def test_an_update_that_cannot_be_settled_in_time_says_so_and_the_row_finds_it_later(
    idle_centre: WorkflowCentre,
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("slow")
    change = staged(cluster, "db", "password", b"v")
    await idle_centre.ports.staging.stage([change])
    waiting = asyncio.create_task(idle_centre.fleet.change_secrets(cluster, [change.request]))
    await asyncio.wait([waiting], timeout=1)
    waiting.cancel()
    async with working(idle_centre):
        # An update that nobody took may be lost with its caller; the sweep finds the row and nudges, as here.
        await idle_centre.fleet.nudge(cluster)
        await eventually(lambda: committed(idle_centre, change.request))


async def test_an_unknown_request_is_settled_at_once(centre: WorkflowCentre) -> None:
    cluster = await centre.create("unknown-request")
    await centre.fleet.change_secrets(cluster, [uuid4()])


async def test_a_message_that_is_not_ours_does_not_wedge_the_cluster(centre: WorkflowCentre) -> None:
    cluster = await centre.create("abused")
    handle = centre.handle(cluster)
    for signal in ("reconcile", "delete_typo", "edge_status", "sealing_key_rotated"):
        await handle.signal(signal, args=["nonsense"] if signal != "edge_status" else [["a", "list"]])
    await centre.fleet.change_secrets(cluster, [])
    row = await centre.row(cluster)
    assert row.projection and row.projection.ready


KEYS = 1_000
"""As many changes as one request may have."""


def bulk(cluster: UUID, prefix: str) -> list[StagedChange]:
    """One request; two of them do not fit into one file."""
    one = staged(cluster, "db", "k", b"v" * 400, uuid4())
    return [replace(one, place=SecretKey("default", one.place.name, f"{prefix}-{n:04d}")) for n in range(KEYS)]


def runs_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.fixture
def yaml_threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each file of sealed secrets that was parsed or written: whether that happened on an event loop."""
    on_a_loop: list[bool] = []

    def noted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def note(content: Any) -> Any:
            on_a_loop.append(runs_on_a_loop())
            return function(content)

        return note

    for name in ("load_document", "dump_document"):
        monkeypatch.setattr(sealed_secret, name, noted(getattr(sealed_secret, name)))
    return on_a_loop


async def test_bulk_requests_that_do_not_fit_together_end_at_once_and_hold_no_event_loop(
    idle_centre: WorkflowCentre, yaml_threads: list[bool]
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("bulky")
    first, second = bulk(cluster, "first"), bulk(cluster, "second")
    activities = SecretActivities(idle_centre.ports.directory, idle_centre.ports.staging, idle_centre.ports.git)
    commit = CommitSecrets(cluster=cluster)
    await idle_centre.ports.staging.stage(first)
    await idle_centre.ports.staging.stage(second)
    yaml_threads.clear()
    while (await ActivityEnvironment().run(activities.commit_secrets, commit)).requests:
        pass
    ends = [(await idle_centre.ports.staging.request(changes[0].request))[0] for changes in (first, second)]
    assert [end.state for end in ends] == [StagedState.COMMITTED, StagedState.REFUSED]
    assert ends[1].refusal_code == "secret_too_large"
    assert "Spread the keys over several Secrets." in ends[1].refusal
    assert len(await asyncio.to_thread(idle_centre.git.log, cluster, limit=10)) == 2
    assert len(yaml_threads) < 20, "once per round, request and half; it was once per change, 2,000 times"
    assert not any(yaml_threads), "a file takes too long for an event loop that others wait for"
