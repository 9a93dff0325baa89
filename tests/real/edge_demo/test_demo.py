"""``make edge-demo`` leaves an edge to play with, as often as it is typed, and ``make edge-demo-down`` nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from edge_cluster.agent import NAMESPACE
from supervised import eventually
from workshop import components_dir

from api.orders import SHORTEST_INTERVAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

CHECKOUT = Path(__file__).parents[3]
PATIENCE = 300.0
SECONDS_OF_A_SECRET = 60.0
BROKEN, TAKEN = "by-hand/app.yaml", "already exists and is not managed by SealedSecret"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of somebody who has never used it; only what is built is there already."""
    yield tmp_path
    make("edge-demo-down", tmp_path)


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "EDGEWRIGHT_COMPONENTS_DIR": str(components_dir()), **more}


def make(target: str, home: Path) -> str:
    done = subprocess.run(
        ["make", "--silent", "-C", CHECKOUT, target],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(said: str) -> dict[str, str]:
    [line] = re.findall(r"^  export (.*)$", said, re.MULTILINE)
    return dict(word.split("=", 1) for word in line.replace(":$PATH", f":{os.environ['PATH']}").split())


def processes_of(home: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(home) in " ".join(process.cmdline()) or process.environ().get("HOME") == str(home):
                found.append(" ".join(process.cmdline())[:120])
        except psutil.Error:
            continue
    return found


def to_try(said: str) -> list[list[str]]:
    """The lines that it tells somebody to paste, by what they show; without the one that sets variables."""
    [told] = re.findall(r"^Try next:$(.*)^No container runs", said, re.MULTILINE | re.DOTALL)
    blocks = [re.findall(r"^  (?!export )(.*)$", block, re.MULTILINE) for block in told.split("\n\n")]
    return [block for block in blocks if block]


@dataclass(frozen=True)
class Desk:
    """The desk of somebody who does what the demonstration tells them to.

    Args:
        environment: with the variables that it told them to set.
    """

    environment: Mapping[str, str]

    def paste(self, line: str) -> subprocess.CompletedProcess[str]:
        """One line, into a shell in the checkout."""
        return subprocess.run(
            ["sh", "-c", line],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE + 60,
            check=False,
        )

    def done(self, line: str) -> str:
        """The same; it has to succeed."""
        pasted = self.paste(line)
        assert pasted.returncode == 0, f"{line}: {pasted.stdout}{pasted.stderr}"
        return pasted.stdout

    def page(self) -> dict[str, Any]:
        """What the centre says of the demo's cluster."""
        shown: dict[str, Any] = json.loads(self.done("bin/edgewright cluster show press-shop --json"))
        return shown

    def condition(self, kind: str) -> dict[str, str]:
        return next(each for each in self.page()["conditions"] if each["type"] == kind)

    def asked(self) -> str:
        """When Flux was asked last to fetch, and did; empty: it was not."""
        path = "{.status.lastHandledReconcileAt}"
        return self.done(f"kubectl get gitrepository self-link --namespace {NAMESPACE} --output 'jsonpath={path}'")

    def two_beats(self) -> float:
        """Seconds; the edge calls three times in each lease."""
        lease: int = self.page()["lease_seconds"]
        return 2 * max(SHORTEST_INTERVAL, lease // 3)


def soon(told: Callable[[], bool], what: str, *, since: float, most: float) -> None:
    """Waits longer than it may take, so that a failure says how long it took."""
    eventually(told, seconds=PATIENCE)
    took = time.monotonic() - since
    assert took <= most, f"{what} after {took:.0f} s instead of {most:.0f} s at most"


def test_an_edge_to_play_with(home: Path) -> None:
    said = make("edge-demo", home)
    assert "press-shop is attached and Available." in said
    again = make("edge-demo", home)
    assert exported(again) == exported(said)
    desk = Desk(environment(home, **exported(said)))
    begin, refused, broken, death = to_try(said)
    opened_in_seconds(desk, begin)
    refused_and_healed(desk, refused)
    broken_and_healed(desk, broken)

    [kill] = death
    centre = psutil.Process(int(kill.removeprefix("kill ")))
    desk.done(kill)
    gone, _ = psutil.wait_procs([centre], timeout=PATIENCE)
    assert gone == [centre]
    eventually(lambda: desk.paste(begin[0]).returncode == 0, seconds=PATIENCE)

    assert "nothing is left" in make("edge-demo-down", home)
    assert processes_of(home) == []
    assert [path for path in home.rglob("*edge-demo*") if path.exists()] == []
    assert "does not run" in make("edge-demo-down", home)


def opened_in_seconds(desk: Desk, lines: list[str]) -> None:
    show, put, get, *others = lines
    desk.done(show)
    put_and_opened(desk, put)
    assert desk.done(get) == "s3cr3t"
    for line in others:
        desk.done(line)


def put_and_opened(desk: Desk, put: str) -> None:
    """Because the agent asked Flux to fetch: its own interval is minutes, and begins anew with each fetch."""
    asked, began = desk.asked(), time.monotonic()
    desk.done(put)
    took = time.monotonic() - began
    assert took < SECONDS_OF_A_SECRET, f"opened after {took:.0f} s instead of {SECONDS_OF_A_SECRET:.0f} s at most"
    assert desk.asked() != asked, f"opened after {took:.0f} s without asking"


def refused_and_healed(desk: Desk, lines: list[str]) -> None:
    create, put, delete, put_again = lines
    most = desk.two_beats()
    desk.done(create)
    began = time.monotonic()
    refused = desk.paste(put)
    assert refused.returncode == 4 and TAKEN in refused.stderr, refused.stdout + refused.stderr

    def told() -> bool:
        healthy = desk.condition("Healthy")
        return healthy["reason"] == "SecretRefused" and TAKEN in healthy["message"]

    soon(told, "the refusal is told", since=began, most=most)
    desk.done(delete)
    began = time.monotonic()
    put_and_opened(desk, put_again)
    soon(lambda: desk.condition("Healthy")["status"] == "True", "healed", since=began, most=most)


def broken_and_healed(desk: Desk, lines: list[str]) -> None:
    clone, breaks, commit, push, revert, push_again = lines
    most = desk.two_beats()
    for line in (clone, breaks, commit):
        desk.done(line)
    pushed = pushed_at(desk, push)
    soon(lambda: BROKEN in desk.condition("Synced")["message"], "the file is named", since=pushed, most=most)
    assert desk.condition("Synced")["status"] == "False"
    desk.done(revert)
    pushed = pushed_at(desk, push_again)
    soon(lambda: desk.condition("Synced")["status"] == "True", "healed", since=pushed, most=most)


def pushed_at(desk: Desk, push: str) -> float:
    """As everybody does whose repository others commit to: the centre may do so at any moment."""
    began = time.monotonic()

    def is_pushed() -> bool:
        nonlocal began
        began = time.monotonic()
        done = desk.paste(push)
        is_late = "fetch first" in done.stderr or "cannot lock ref" in done.stderr
        assert done.returncode == 0 or is_late, done.stderr
        return done.returncode == 0

    eventually(is_pushed)
    return began
