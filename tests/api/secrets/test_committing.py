"""Secrets: each request is committed once, many of them in one commit."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from gateway_centre import STATUS_APP, GatewayCentre
from sealed_values import STATUS, change, in_git, nobody_commits, path
from staged_secrets import DiesBeforeItRecords

from api.secret_lane import MOST_CHANGES
from edgewright.adapters.git.refs import FENCE
from edgewright.application.committed_requests import requests_named
from edgewright.application.secret_commits import SecretCommits
from edgewright.application.secret_wishes import outcome_of
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.errors import Conflict, EdgewrightError, NotFound, Waiting
from edgewright.ports.operators import Permission
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import SECRET_LIMIT


async def test_the_same_idempotency_key_gets_the_first_commit(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await operator.put(path(cluster), content=b"one", headers=headers)
    await operator.put(path(cluster, "other"), content=b"two", headers=headers)
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert again.headers["Edgewright-Commit"] == first.headers["Edgewright-Commit"]
    assert in_git(centre, cluster, "default", "db") == {"password": b"one", "other": b"two"}


async def test_somebody_elses_idempotency_key_is_another_key(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await operator.put(path(cluster), content=b"one", headers=headers)
    somebody = await centre.operator(Permission.SECRETS)
    second = await somebody.put(path(cluster), content=b"two", headers=headers)
    assert second.headers["Edgewright-Commit"] != first.headers["Edgewright-Commit"]
    assert in_git(centre, cluster, "default", "db") == {"password": b"two"}


async def test_an_unconfirmed_commit_is_found_with_the_same_key(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "late"}
    with nobody_commits(centre, cluster):
        answer = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "commit_unconfirmed")
    assert int(answer.headers["Retry-After"]) >= 1
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert again.status_code == 204
    assert in_git(centre, cluster, "default", "db") == {"password": b"one"}


async def test_a_secret_that_a_dead_gateway_has_committed_is_not_refused_after_it(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "dead"}
    with nobody_commits(centre, cluster):
        assert (await operator.put(path(cluster), content=b"one", headers=headers)).status_code == 503
    dies = SecretCommits(centre.ports.directory, DiesBeforeItRecords(centre.ports.staging), centre.git)
    with pytest.raises(Waiting):
        await dies.commit(cluster)
    moved = await admin.post(f"/v1/cluster/{cluster}/recreate", json={"new_hardware": True})
    assert moved.status_code == 202, moved.text
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (again.status_code, again.headers["Edgewright-Commit"]) == (204, centre.git.head(cluster))


@pytest.mark.parametrize(
    "error", [Conflict("Refused.", code="refused_by_workflow"), NotFound("None runs.", code="workflow_unknown")]
)
async def test_what_a_workflow_does_not_take_is_not_refused(
    centre: GatewayCentre,
    cluster: UUID,
    operator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    error: EdgewrightError,
) -> None:
    """It is staged all the same, and will be committed."""

    async def fails(*_: object) -> None:
        raise error

    headers = {"Idempotency-Key": "not-taken"}
    with nobody_commits(centre, cluster):
        monkeypatch.setattr(centre.fleet, "change_secrets", fails)
        answer = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "commit_unconfirmed")
    assert (await operator.put(path(cluster), content=b"one", headers=headers)).status_code == 204


async def test_a_repository_that_is_put_back_while_a_secret_is_staged_does_not_refuse_it(
    centre: GatewayCentre,
    cluster: UUID,
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The commit that the request was tried on is not there any more."""
    namespaces = {**STATUS, "namespaces": ["kube-system"]}
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=namespaces)).status_code == 204
    folder, kept, lost = centre.git.folder(cluster), tmp_path / "kept", tmp_path / "lost"
    shutil.copytree(folder, kept)
    assert (await operator.put(path(cluster, "lost"), content=b"zero")).status_code == 204
    stage = centre.ports.staging.stage

    async def put_back(changes: Sequence[StagedChange]) -> Sequence[StagedChange]:
        there = await stage(changes)
        folder.rename(lost)
        kept.rename(folder)
        return there

    monkeypatch.setattr(centre.ports.staging, "stage", put_back)
    answer = await operator.put(path(cluster), content=b"one")
    assert (answer.status_code, answer.headers.get("Edgewright-Commit")) == (204, centre.git.head(cluster))
    assert in_git(centre, cluster, "default", "db") == {"password": b"one"}


async def test_nobody_says_that_a_secret_was_refused_while_its_repository_is_damaged(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    headers = {"Idempotency-Key": "damaged"}
    with nobody_commits(centre, cluster):
        assert (await operator.put(path(cluster), content=b"one", headers=headers)).status_code == 503
    moved = await admin.post(f"/v1/cluster/{cluster}/recreate", json={"new_hardware": True})
    assert moved.status_code == 202, moved.text
    fence = centre.git.folder(cluster) / FENCE
    fence.write_text("damaged")
    unknown = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (unknown.status_code, unknown.json()["code"]) == (503, "commit_unconfirmed")
    fence.unlink()
    refused = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "new_hardware")


async def test_a_dry_run_does_not_say_where_its_request_was_staged(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    """With its ``Idempotency-Key``, the request itself was staged before, and committed by a gateway that died."""
    headers = {"Idempotency-Key": "tried"}
    with nobody_commits(centre, cluster):
        assert (await operator.put(path(cluster), content=b"one", headers=headers)).status_code == 503
    dies = SecretCommits(centre.ports.directory, DiesBeforeItRecords(centre.ports.staging), centre.git)
    with pytest.raises(Waiting):
        await dies.commit(cluster)
    made = centre.git.head(cluster)

    async def body() -> AsyncIterator[bytes]:
        assert (await operator.put(path(cluster, "other"), content=b"two")).status_code == 204
        yield b"one"

    tried = await operator.put(path(cluster), params={"dryrun": ""}, content=body(), headers=headers)
    assert tried.status_code == 204, tried.text
    requests = [request for commit in centre.git.log(cluster, limit=10) for request in requests_named(commit)]
    assert len(requests) == len(set(requests)) == 2
    again = await operator.put(path(cluster), content=b"one", headers=headers)
    assert again.headers["Edgewright-Commit"] == made


async def test_nobody_says_that_a_secret_was_refused_while_its_repository_cannot_be_read(
    centre: GatewayCentre,
    cluster: UUID,
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = {"Idempotency-Key": "away"}
    with nobody_commits(centre, cluster):
        assert (await operator.put(path(cluster), content=b"one", headers=headers)).status_code == 503
    moved = await admin.post(f"/v1/cluster/{cluster}/recreate", json={"new_hardware": True})
    assert moved.status_code == 202, moved.text

    def away(*_: object, **__: object) -> None:
        raise Waiting("The storage is away.", code="git_unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(centre.git, "raise_fence", away)
        unknown = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (unknown.status_code, unknown.json()["code"]) == (503, "commit_unconfirmed")
    refused = await operator.put(path(cluster), content=b"one", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "new_hardware")


async def test_a_secret_is_committed_while_temporal_is_away_and_its_workflow_finds_the_commit_later(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    centre.fleet.available = False
    answer = await operator.put(path(cluster), content=b"one")
    assert (answer.status_code, answer.headers["Edgewright-Commit"]) == (204, centre.git.head(cluster))
    assert in_git(centre, cluster, "default", "db") == {"password": b"one"}
    reading = await centre.steps.read_wanted(cluster)
    assert reading is not None
    assert (reading.secrets_pending, reading.secrets_commit) == (0, answer.headers["Edgewright-Commit"])
    assert cluster in await centre.ports.directory.unfinished(), "the sweep nudges it once Temporal is back"


async def test_a_gateway_commits_no_large_request_and_nothing_before_it(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    """The files of large requests take a time that would be everybody's."""
    changes = [change(f"s{number}", "k", b"v") for number in range(MOST_CHANGES + 1)]
    centre.fleet.available = False
    late = await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": changes})
    assert (late.status_code, late.json()["code"]) == (503, "commit_unconfirmed")
    after = await operator.put(path(cluster, "k", "s0"), content=b"newer")
    assert (after.status_code, after.json()["code"]) == (503, "commit_unconfirmed"), "it is the newer value"
    centre.fleet.available = True
    assert (await operator.put(path(cluster, "other"), content=b"1")).status_code == 204
    assert in_git(centre, cluster, "default", "s0") == {"k": b"newer"}


async def test_many_changes_are_one_commit(centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient) -> None:
    await operator.put(path(cluster, "old", "one"), content=b"0")
    before = len(centre.git.log(cluster, limit=100))
    changes = [change("one", "a", b"1"), change("one", "old", None), change("two", "b", b"\xff2")]
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": changes})
    assert answer.status_code == 200
    assert answer.json() == {"commit": centre.git.head(cluster), "warnings": []}
    assert len(centre.git.log(cluster, limit=100)) == before + 1
    assert in_git(centre, cluster, "default", "one") == {"a": b"1"}
    assert in_git(centre, cluster, "default", "two") == {"b": b"\xff2"}


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (change("one", "absent", None), 404),
        (change("UPPER", "k", b"x"), 422),
        ({**change("one", "k", b"x"), "value_base64": "%%%"}, 422),
        ({**change("one", "k", b"x"), "delete": True}, 422),
        ({"namespace": "default", "name": "one", "key": "k"}, 422),
        (change("good", "a", b"again"), 422),
        (change("large", "k", b"x" * (SECRET_LIMIT + 1)), 413),
    ],
)
async def test_one_wrong_change_stops_all(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, wrong: dict[str, object], status: int
) -> None:
    before = centre.git.head(cluster)
    answer = await operator.post(
        f"/v1/cluster/{cluster}/secret", json={"changes": [change("good", "a", b"1"), wrong]}
    )
    assert answer.status_code == status, answer.text
    assert centre.git.head(cluster) == before


async def test_a_key_that_is_used_for_other_changes_is_refused(cluster: UUID, operator: httpx.AsyncClient) -> None:
    bulk, headers = f"/v1/cluster/{cluster}/secret", {"Idempotency-Key": "b"}
    first = await operator.post(bulk, json={"changes": [change("one", "a", b"1")]}, headers=headers)
    again = await operator.post(bulk, json={"changes": [change("one", "a", b"1")]}, headers=headers)
    assert again.json() == first.json()
    other = await operator.post(bulk, json={"changes": [change("two", "a", b"1")]}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_more_than_eight_mebibytes_at_once_are_refused(cluster: UUID, operator: httpx.AsyncClient) -> None:
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", content=b" " * (8 * 1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_a_burst_of_writers_all_succeed_with_few_commits(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = len(centre.git.log(cluster, limit=100))
    answers = await asyncio.gather(*(operator.put(path(cluster, f"k{n}"), content=b"%d" % n) for n in range(24)))
    assert {answer.status_code for answer in answers} == {204}
    assert in_git(centre, cluster, "default", "db") == {f"k{n}": b"%d" % n for n in range(24)}
    assert len(centre.git.log(cluster, limit=100)) - before < 24


async def test_a_request_is_committed_although_one_of_its_keys_was_overtaken() -> None:
    overtaken = StagedChange(
        request=uuid4(),
        cluster=uuid4(),
        generation=1,
        place=SecretKey("default", "db", "password"),
        ciphertext=None,
        fingerprint=None,
        sealed_at=datetime.now(UTC),
        actor="token:test",
        state=StagedState.SUPERSEDED,
    )
    committed = replace(
        overtaken, place=SecretKey("default", "db", "user"), state=StagedState.COMMITTED, commit="c0ffee"
    )
    assert outcome_of([overtaken, committed]) == "c0ffee"
    with pytest.raises(Waiting):
        outcome_of([overtaken, replace(committed, state=StagedState.STAGED)])
    with pytest.raises(Conflict) as refusal:
        outcome_of([overtaken])
    assert refusal.value.code == "superseded"
