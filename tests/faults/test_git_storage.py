"""The repositories cannot be written: what is answered, what is shown, and that it is all delivered afterwards."""

from contextlib import AbstractContextManager

import pytest
from failing.caller import Caller, problem_code
from failing.storage import GIT, FaultyStorage

pytestmark = pytest.mark.timeout(300)


def broken(faulty: FaultyStorage, fault: str) -> AbstractContextManager[None]:
    return faulty.read_only(GIT) if fault == "read-only" else faulty.full(GIT)


@pytest.mark.parametrize(
    ("fault", "reason"), [("read-only", "read-only file system"), ("full", "no space left on device")]
)
async def test_what_cannot_be_written_now_is_taken_told_of_and_delivered_later(
    faulty: FaultyStorage, caller: Caller, fault: str, reason: str
) -> None:
    sentence = f"Git storage cannot be used: {reason}."
    before, going = await caller.cluster(f"before-git-{fault}"), await caller.cluster(f"going-git-{fault}")
    old = await caller.put_secret(before, "default/db/password", "old")
    assert old.status_code == 204
    with broken(faulty, fault):
        created = await caller.create(f"during-git-{fault}")
        assert created.status_code == 201
        during = str(created.json()["uuid"])
        assert (await caller.change(before, f"changed-git-{fault}")).status_code == 200
        assert (await caller.delete(going)).status_code == 202

        put = await caller.put_secret(before, "default/db/password", "new")
        assert (put.status_code, problem_code(put)) == (503, "commit_unconfirmed")
        assert put.json()["hint"] == "Send it again with the same Idempotency-Key to learn the outcome."
        assert put.headers["Retry-After"] == "2"

        for cluster in (during, before):
            shown = await caller.until(cluster, lambda shown: reason in shown["waiting_for"], seconds=30)
            assert sentence in shown["waiting_for"]
        shown = await caller.show(during)
        assert not shown["ready"]
        commissioned = next(c for c in shown["conditions"] if c["type"] == "Commissioned")
        assert commissioned["status"] == "False" and reason in commissioned["message"]
        waiting = await caller.get(f"/v1/cluster/{during}/ready")
        assert (waiting.status_code, problem_code(waiting)) == (503, "not_ready")
        assert sentence in waiting.json()["detail"]
        timeline = (await caller.get(f"/v1/cluster/{during}/timeline")).json()
        assert any(reason in item["message"] for item in timeline["items"])
        assert [step["state"] for step in timeline["waiting"]] == ["waiting"]

        assert (await caller.get(f"/v1/cluster/{before}/secret")).status_code == 200
        refs = await caller.get(f"/uuid/{before}/info/refs", service="git-upload-pack")
        assert refs.status_code == 200, "edges go on reading"

    again = await caller.put_secret(before, "default/db/password", "new")
    assert again.status_code == 204
    assert again.headers["Edgewright-Commit"] != old.headers["Edgewright-Commit"]
    await caller.until_ready(during)
    await caller.until_gone(going)
    await caller.until(before, lambda shown: not shown["waiting_for"].startswith("step "), seconds=60)


async def test_an_empty_folder_in_its_place_is_no_storage(faulty: FaultyStorage, caller: Caller) -> None:
    """Its volume is not mounted. Nothing is made there, and nothing counts as gone because it is not there."""
    before, going = await caller.cluster("before-mount"), await caller.cluster("going-mount")
    old = await caller.put_secret(before, "default/db/password", "old")
    assert old.status_code == 204
    with faulty.not_mounted(GIT):
        ready = await caller.get("/readyz")
        assert (ready.status_code, ready.json()["where"]) == (503, "git")
        during = str((await caller.create("during-mount")).json()["uuid"])
        assert (await caller.delete(going)).status_code == 202
        for cluster in (during, going):
            await caller.until(cluster, lambda shown: "The Git storage is empty" in shown["waiting_for"], seconds=30)
        put = await caller.put_secret(before, "default/db/password", "new")
        assert put.status_code == 503, put.text
    assert (await caller.put_secret(before, "default/db/password", "new")).status_code == 204
    await caller.until_ready(during)
    await caller.until_gone(going)
    assert not (faulty.home / GIT / f"{going}.git").exists()
