"""The centre, or a part of it, goes away while an edge is attached, rotates, re-seals or takes what is new."""

from __future__ import annotations

import base64
import os
import signal
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest
from desk import Desk
from edge_cluster.attaching import Attaching, centre_variables, desk_beside
from edge_cluster.contents import contents
from edge_cluster.interposed import holding, run_while
from edge_cluster.patience import eventually
from failing.storage import GIT, FaultyStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

CALLS = {"the script": 1, "Flux": 2, "the agent": 3, "the policy": 4, "the right": 5, "the registration": 6}
"""What the line asks the centre for, in order."""
REFUSED_OR_CUT_OFF = ("curl: (7)", "curl: (52)", "curl: (56)")
"""What curl says while a server dies: its socket may outlive it by a moment."""
PARTS = ("gateway", "worker", "temporal")
SIX = [f"s{number}" for number in range(6)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Beside a centre whose Git storage can be made read-only."""
    folder = tmp_path_factory.mktemp("desk")
    centre = FaultyStorage(folder / "home", centre_variables())
    centre.mount()
    with desk_beside(centre, folder / "papers") as desk:
        yield desk


@pytest.fixture
def attached(attaching: Attaching) -> Iterator[str]:
    """UUID of a cluster whose edge is available and can be given secrets; it has none at the end."""
    uuid = attaching.commission("steady")
    done = attaching.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    attaching.factory.install_chart()
    eventually(lambda: attaching.condition(uuid, "SealingKeyCurrent")[0] == "True")
    yield uuid
    items = attaching.told(f"/v1/cluster/{uuid}/secret")["items"]
    put(attaching, uuid, {each["name"]: None for each in items})
    attaching.fetch_now()
    eventually(lambda: not set(SIX) & on_the_edge(attaching).keys())


def kill(attaching: Attaching, part: str) -> None:
    """kill -9; `up` starts it again."""
    os.kill(attaching.desk.centre.children()[part], signal.SIGKILL)


def put(attaching: Attaching, uuid: str, values: dict[str, str | None]) -> int:
    """Writes secrets of the namespace default in one request, deletes those without a value; returns the status."""
    changes = [
        {"namespace": "default", "name": name, "key": "password"}
        | ({"delete": True} if value is None else {"value_base64": base64.b64encode(value.encode()).decode()})
        for name, value in values.items()
    ]
    if not changes:
        return 200
    return attaching.desk.centre.api("POST", f"/v1/cluster/{uuid}/secret", json={"changes": changes}).status_code


def on_the_edge(attaching: Attaching) -> dict[str, str]:
    """Name of each Secret of the namespace default -> what the edge's controller has opened."""
    items = attaching.factory.cluster.find("secret")["items"]
    return {
        each["metadata"]["name"]: base64.b64decode(each.get("data", {}).get("password", "")).decode()
        for each in items
    }


def test_a_centre_that_dies_before_any_call_of_the_line_or_before_its_answer_delays_it_and_no_more(
    attaching: Attaching, tmp_path: Path
) -> None:
    cluster, centre = attaching.factory.cluster, attaching.desk.centre
    before = contents(cluster)
    uuid = attaching.commission("unlucky")
    line = attaching.line(uuid)
    for call, at in CALLS.items():
        with holding(tmp_path, at=at) as signs:
            done = run_while(line.run, signs, centre.kill_everything)
        centre.up()
        if call == "the script":
            assert done.stderr.startswith(REFUSED_OR_CUT_OFF), done.stderr
        else:
            assert done.returncode == 7, call
            assert "cannot be reached; run the same line again" in done.stderr
        if call != "the registration":
            assert contents(cluster) == before, call
    made = attaching.password()
    assert made, "it was made before the registration, and is kept for it"
    with holding(tmp_path, at=CALLS["the registration"], loses_answer=True) as signs:
        done = run_while(line.run, signs, centre.kill_everything)
    assert done.returncode == 7
    centre.up()
    assert [told for told in attaching.timeline(uuid) if "registered as" in told], "only the answer was lost"

    done = line.run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: attaching.is_available(uuid))
    assert attaching.password() == made
    assert len([told for told in attaching.timeline(uuid) if "registered as" in told]) == 1


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_centre_that_dies_during_the_registration_costs_a_repetition_at_most(
    attaching: Attaching, tmp_path: Path, part: str
) -> None:
    uuid = attaching.commission(f"without-{part}")
    line = attaching.line(uuid)
    with holding(tmp_path, at=CALLS["the registration"]) as signs:
        done = run_while(line.run, signs, lambda: kill(attaching, part))
    if done.returncode != 0:
        assert (done.returncode, part) == (7, "gateway"), done.stderr

        def goes_on() -> bool:
            again = line.run()
            assert again.returncode in {0, 7} or "Failed to connect" in again.stderr, again.stderr
            return again.returncode == 0 and "Done:" in again.stdout

        eventually(goes_on)
    eventually(lambda: attaching.is_available(uuid))
    told = attaching.timeline(uuid)
    assert len([each for each in told if "registered as" in each]) == 1
    eventually(lambda: "Now Active (was AwaitingBootstrap)." in attaching.timeline(uuid))


def has_another_password(attaching: Attaching, before: set[str | None]) -> bool:
    return attaching.password("flux-secrets") not in before


def has_rotated_its_own(attaching: Attaching, uuid: str, before: list[str]) -> bool:
    return "agent" in Counter(attaching.rotated(uuid)) - Counter(before)


def has_rotated_both(attaching: Attaching, uuid: str, before: list[str]) -> bool:
    return attaching.rotated(uuid) == sorted([*before, "agent", "flux"])


def test_parts_of_the_centre_that_die_while_an_edge_rotates_leave_it_with_what_the_centre_knows(
    attaching: Attaching, attached: str
) -> None:
    for part in PARTS:
        before = {attaching.password(name) for name in ("edgewright-agent", "flux-secrets")}
        rotations = attaching.rotated(attached)
        asked = attaching.desk.centre.api("POST", f"/v1/cluster/{attached}/credential/rotate")
        assert asked.status_code == 202, asked.text
        eventually(partial(has_another_password, attaching, before))  # the agent's own is next
        kill(attaching, part)
        eventually(partial(has_rotated_its_own, attaching, attached, rotations))
        attaching.fetch_now()
        eventually(partial(has_rotated_both, attaching, attached, rotations))
        assert not before & {attaching.password(name) for name in ("edgewright-agent", "flux-secrets")}
    eventually(lambda: attaching.is_available(attached))


def test_parts_of_the_centre_that_die_while_an_edge_reseals_lose_no_value(
    attaching: Attaching, attached: str
) -> None:
    expected = {name: f"value of {name}" for name in SIX}
    assert put(attaching, attached, dict(expected)) == 200
    attaching.fetch_now()
    eventually(lambda: expected.items() <= on_the_edge(attaching).items())
    for part in PARTS:
        attaching.factory.sealed_secrets.renew_key()
        eventually(lambda: states(attaching, attached) == {"stale"})
        asked = attaching.desk.centre.api("POST", f"/v1/cluster/{attached}/reseal", json={"reason": "a test"})
        assert asked.status_code == 202, asked.text
        kill(attaching, part)
        eventually(lambda: states(attaching, attached) == {"current"})
        attaching.fetch_now()  # the next re-sealing begins with what is on the edge
    eventually(lambda: attaching.condition(attached, "Synced")[0] == "True")
    assert expected.items() <= on_the_edge(attaching).items()


def states(attaching: Attaching, uuid: str) -> set[str]:
    """The states of the secrets, which say whether they are sealed with the newest key."""
    return {each["state"] for each in attaching.told(f"/v1/cluster/{uuid}/secret")["items"]}


def test_git_storage_that_is_read_only_for_a_while_keeps_back_what_is_new_and_nothing_else(
    attaching: Attaching, attached: str
) -> None:
    centre = attaching.desk.centre
    assert isinstance(centre, FaultyStorage)
    assert put(attaching, attached, {"s0": "old"}) == 200
    attaching.fetch_now()
    eventually(lambda: on_the_edge(attaching).get("s0") == "old")
    eventually(lambda: attaching.condition(attached, "Synced")[0] == "True")
    with centre.read_only(GIT):
        assert put(attaching, attached, {"s0": "new"}) == 503
        eventually(lambda: "read-only" in attaching.told(f"/v1/cluster/{attached}")["waiting_for"])
        heard = attaching.told(f"/v1/cluster/{attached}")["lease"]["last_heard"]
        eventually(lambda: attaching.told(f"/v1/cluster/{attached}")["lease"]["last_heard"] > heard)
        assert attaching.is_available(attached)
        attaching.fetch_now()
        assert attaching.has_fetched(), "Flux goes on reading"
        assert on_the_edge(attaching)["s0"] == "old"
    assert put(attaching, attached, {"s0": "new"}) == 200
    attaching.fetch_now()
    eventually(lambda: on_the_edge(attaching)["s0"] == "new")
    eventually(lambda: attaching.condition(attached, "Synced")[0] == "True")
