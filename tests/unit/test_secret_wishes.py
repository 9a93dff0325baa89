"""A wish for secrets is checked, sealed and staged by one use case, which no gateway is part of."""

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import Store, code_of
from memory_git_server import MemoryGitServer
from sealing_keys import certificate_pem, open_envelope, private_key
from shared_statements import open_database

from edgewright.application.secret_sealing import KeyChange
from edgewright.application.secret_wishes import SecretWish, SecretWishes, StateBeforeWish, outcome_of
from edgewright.domain.cluster import Desired
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.kubernetes_names import OtherText, SecretKey, SecretPlace, SecretReference
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.secret_staging import StagedState
from edgewright.sealing import Plaintext

NOW = datetime.now(UTC)
CERTIFICATE = certificate_pem(private_key(), not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))
PLACE = SecretKey("default", "db", "password")
VALUE = b"MARKED-s3cr3t"


class CountedSealing:
    """A timer that counts values."""

    values = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.values += 1
        yield


@dataclass
class WishStage:
    """The use case, on a cluster with an edge.

    Args:
        asked: how often changes were asked for.
    """

    store: Store
    wishes: SecretWishes
    row: ClusterRow
    sealing: CountedSealing
    asked: int = 0

    def wish(self, *places: SecretPlace, **how: Any) -> SecretWish:
        wish = SecretWish(self.row.uuid, uuid4(), repeatable=True, actor="token:test", places=places, dry_run=False)
        return replace(wish, **how)

    async def take(self, wish: SecretWish, *changes: KeyChange, **row: Any) -> Sequence[str]:
        async def read() -> Sequence[KeyChange]:
            self.asked += 1
            return changes

        before = await self.wishes.before(wish)
        return await self.wishes.take(replace(self.row, **row), wish, before, read)


@pytest.fixture
async def stage(fresh_database: Path, tmp_path: Path) -> AsyncIterator[WishStage]:
    file = tmp_path / "edgewright.db"
    shutil.copy(fresh_database, file)
    async with open_database(f"sqlite+aiosqlite:///{file}") as database:
        store = Store.on(database)
        cluster = await store.create()
        git = MemoryGitServer()
        git.create_repository(cluster)
        git.commit(cluster, {"README.md": b"x"}, CommitMessage("Begin", "test"), expected_head=None)

        async def flux_namespace() -> str:
            return "flux-of-ours"

        sealing = CountedSealing()
        wishes = SecretWishes(git, store.staging, flux_namespace=flux_namespace, timer=sealing)
        row = replace(await store.row(cluster), certificate_pem=CERTIFICATE, edge_status=EdgeStatus())
        yield WishStage(store, wishes, row, sealing)


async def test_a_wish_is_sealed_and_staged_and_nothing_of_it_is_in_clear(stage: WishStage) -> None:
    gone = SecretKey("kube-system", "old", "k")
    wish = stage.wish(PLACE, gone)
    listed = [OtherText("alone"), gone]
    await stage.take(wish, KeyChange(PLACE, Plaintext(VALUE)), KeyChange(gone, None), must_reenter=listed)
    sealed, deleted = await stage.store.staging.request(wish.request)
    assert (sealed.place, sealed.state, sealed.actor) == (PLACE, StagedState.STAGED, "token:test")
    assert open_envelope(sealed.ciphertext or "", private_key(), b"default/db") == VALUE
    assert (deleted.place, deleted.ciphertext) == (gone, None), "listed to be entered again, and never can be"
    assert VALUE.decode() not in repr([sealed, deleted, wish])


async def test_a_request_that_is_sent_again_is_not_read_again(stage: WishStage) -> None:
    wish = stage.wish(PLACE)
    assert await stage.wishes.before(wish) == StateBeforeWish((await stage.wishes.before(wish)).head, repeated=False)
    for _ in range(2):
        await stage.take(wish, KeyChange(PLACE, Plaintext(VALUE)))
    assert stage.asked == 1
    assert await code_of(stage.take(replace(wish, places=[]))) == "idempotency_key_reused"
    for first in (replace(wish, repeatable=False), replace(wish, dry_run=True)):
        assert not (await stage.wishes.before(first)).repeated


async def test_a_dry_run_checks_everything_and_stages_nothing(stage: WishStage) -> None:
    wish = stage.wish(PLACE, dry_run=True, expected={"default"})
    status = EdgeStatus.model_validate({"namespaces": ["kube-system"]})
    [warning] = await stage.take(wish, KeyChange(PLACE, Plaintext(VALUE)), edge_status=status)
    assert warning.startswith("The edge does not have the namespace default")
    assert await stage.store.staging.request(wish.request) == []
    assert await code_of(stage.take(wish, KeyChange(PLACE, None))) == "secret_unknown"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"desired": Desired.DELETED, "paused": True}, "deleting"),
        ({"desired": Desired.REMOVED, "paused": True}, "removed"),
        ({"paused": True}, "paused"),
    ],
)
async def test_a_cluster_that_takes_no_secrets_refuses_before_a_value_is_read(
    stage: WishStage, row: dict[str, Any], code: str
) -> None:
    assert await code_of(stage.take(stage.wish(PLACE), **row)) == code
    assert stage.asked == 0


@pytest.mark.parametrize(
    ("change", "row", "code"),
    [
        (KeyChange(SecretKey("flux-of-ours", "a", "k"), Plaintext(VALUE)), {}, "namespace_reserved"),
        (KeyChange(SecretKey("kube-system", "a", "k"), Plaintext(VALUE)), {}, "namespace_reserved"),
        (KeyChange(SecretKey("default", "kustomization", "k"), Plaintext(VALUE)), {}, "secret_name_invalid"),
        (KeyChange(PLACE, Plaintext(VALUE)), {"edge_status": None}, "no_edge_status"),
        (KeyChange(PLACE, Plaintext(VALUE)), {"certificate_pem": None}, "no_certificate"),
        (KeyChange(PLACE, None), {}, "secret_unknown"),
        (KeyChange(SecretReference("default", "db"), None), {}, "secret_unknown"),
    ],
)
async def test_what_is_refused_is_not_staged(
    stage: WishStage, change: KeyChange, row: dict[str, Any], code: str
) -> None:
    wish = stage.wish(change.place)
    assert await code_of(stage.take(wish, change, **row)) == code
    assert await stage.store.staging.request(wish.request) == []


async def test_what_has_become_of_a_request_is_told_by_its_rows(stage: WishStage) -> None:
    wish = stage.wish(PLACE)
    await stage.take(wish, KeyChange(PLACE, Plaintext(VALUE)))

    async def outcome(request: UUID) -> str:
        return outcome_of(await stage.store.staging.request(request))

    assert await code_of(outcome(uuid4())) == await code_of(outcome(wish.request)) == "commit_unconfirmed"
    await stage.store.staging.committed([wish.request], "c" * 40)
    assert await outcome(wish.request) == "c" * 40


def many(name: str, count: int, value: bytes = b"v") -> list[KeyChange]:
    return [KeyChange(SecretKey("default", name, f"key-{at}"), Plaintext(value)) for at in range(count)]


def places_of(changes: Sequence[KeyChange]) -> list[SecretPlace]:
    return [change.place for change in changes]


async def test_what_no_secret_has_room_for_is_refused_before_a_value_is_sealed(stage: WishStage) -> None:
    changes = many("bulk", 21, bytes(1024 * 1024 // 20))
    assert await code_of(stage.take(stage.wish(*places_of(changes)), *changes)) == "secret_too_large"
    assert stage.sealing.values == 0
