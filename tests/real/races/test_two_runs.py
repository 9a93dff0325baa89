"""Two runs of the printed line, or one and an uninstallation, that meet on a real API server at any request of one.

Where a run may stop is not written here: a run that nobody meets is counted first, and stops are taken from what it
has asked. `make test-real` tries some, others for each commit, so that a commit which passed passes again. They are
drawn within the tests: what pytest collects is always the same. What fails names its seed, and RACES_SEED draws the
same again. RACES=all tries each (`make races`).
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from edge_cluster.race_stage import RaceStage, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from edge_cluster.gate import GateRequest

pytestmark = [pytest.mark.real, pytest.mark.timeout(24 * 3600)]

COMMIT = ("git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD")
SEED = (
    os.environ.get("RACES_SEED")
    or subprocess.run(COMMIT, capture_output=True, check=False, text=True).stdout.strip()
    or "16"  # no clone, or one that is somebody else's
)
WANTED = os.environ.get("RACES", "1")
"""How many stops of each kind of meeting are tried; or all."""
LOG = logging.getLogger("races")
ANCHORS = "/clusterroles/edgewright-anchor"
AGAIN = "run the same line again"


logging.getLogger("httpx").setLevel(logging.WARNING)  # of thousands of requests, none says anything


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RaceStage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


def turns(requests: Sequence[GateRequest], *, writes_only: bool = False) -> list[int]:
    """Where a run may stop, as numbers from 1, from its first look at what others change.

    Before each write all that it knows is as old as it can be; before the first read that follows one, as new. What
    lies between is the same but for the age of a part.
    """
    begin = next(number for number, asked in enumerate(requests, 1) if ANCHORS in asked.path)
    found = []
    for number, asked in enumerate(requests, 1):
        follows = number > 1 and requests[number - 2].writes
        if number >= begin and (asked.writes or (not writes_only and (follows or number == begin))):
            found.append(number)
    return found


def number_of(stage: RaceStage, path: str) -> int:
    return next(number for number, asked in enumerate(stage.requests["attach"], 1) if asked.path == path)


def first_write(stage: RaceStage, of: str) -> int:
    return next(number for number, asked in enumerate(stage.requests[of], 1) if asked.writes)


def each_of(stage: RaceStage, of: str, meet: Callable[[int], None], *, writes_only: bool = False) -> None:
    """Tries those stops that are wanted; says of each that fails which it was, after all were tried."""
    there = turns(stage.requests[of], writes_only=writes_only)
    drawn = random.Random(f"{SEED} {meet.__name__}").sample(there, len(there))
    wanted = sorted(drawn if WANTED == "all" else drawn[: int(WANTED)])
    failed = []
    for at in wanted:
        begun = time.monotonic()
        try:
            meet(at)
            outcome = "as it should"
        except Exception as error:  # noqa: BLE001 - which one failed is told with all the others
            outcome = f"{type(error).__name__}: {error}"
            failed.append(f"before {at}, {stage.requests[of][at - 1]}: {outcome}")
            stage.end_all()
        seconds = time.monotonic() - begun
        asked = f"{at} of {len(stage.requests[of])}, {stage.requests[of][at - 1]}"
        LOG.info("%s before %s: %s, %.0f s", meet.__name__, asked, outcome, seconds)
        stage.reset()
    LOG.info("%s: %d of %d stops, RACES_SEED=%s", meet.__name__, len(wanted), len(there), SEED)
    assert not failed, f"Again: make races RACES={WANTED} SEED={SEED}\n" + "\n".join(failed)


def attach_twice(met: RaceStage) -> None:
    """Pastes a line twice; the first run stops."""

    def pasted_twice(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        run = first.run(line, at=at)
        assert run.stands()
        other = second.run(line).end()
        assert other.code == 0, other.said
        met.agent_lives()
        living = met.held()
        done = run.end()
        if at <= first_write(met, "attach") and done.code == 1:
            assert "has been used" in done.said and "Nothing was changed" in done.said, done.said
        else:
            assert done.code == 0, done.said
        assert met.held() == living
        met.check_attached()

    each_of(met, "attach", pasted_twice)


def test_a_line_that_was_pasted_twice_attaches_once(met: RaceStage) -> None:
    attach_twice(met)
    if WANTED == "all":  # runs that install Flux have more requests, and take longer to be cleared away
        with met.without_flux():
            attach_twice(met)


def test_a_refused_run_takes_nothing_from_one_that_was_accepted_meanwhile(met: RaceStage) -> None:
    def refused_afterwards(at: int) -> None:
        first, second = met.terminals
        run = first.run(met.line(), at=at)
        assert run.stands()
        other = second.run(met.line()).end()
        assert other.code == 0, other.said
        met.agent_lives()
        living = met.held()
        done = run.end()
        if at <= number_of(met, "/v1/register"):
            assert (done.code, "Refused by the centre" in done.said) == (1, True), done.said
        else:
            assert done.code == 0, done.said
        assert met.held() == living
        met.check_attached()

    each_of(met, "attach", refused_afterwards)


def test_a_run_goes_on_although_another_is_refused_meanwhile(met: RaceStage) -> None:
    def refused_meanwhile(at: int) -> None:
        first, second = met.terminals
        older = second.run(met.line(), at=number_of(met, "/v1/register"))
        assert older.stands()
        line = met.line()
        run = first.run(line, at=at)
        stood = run.stands()
        refused = older.end()
        assert (refused.code, "Refused by the centre" in refused.said) == (1, True), refused.said
        done = run.end()
        if done.code != 0:
            assert stood and done.code == 3 and AGAIN in done.said, done.said
            done = first.run(line).end()
        assert done.code == 0, done.said
        met.check_attached()

    each_of(met, "attach", refused_meanwhile)


def test_a_killed_run_is_gone_on_with(met: RaceStage) -> None:
    def killed(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        run = first.run(line, at=at)
        assert run.stands()
        run.kill()
        done = second.run(line).end()
        assert done.code == 0, done.said
        met.check_attached()

    each_of(met, "attach", killed, writes_only=True)


def test_a_run_that_gets_no_answer_goes_on_or_says_how_to(met: RaceStage) -> None:
    def unanswered(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        done = first.run(line, at=at, loses=True).end()
        assert first.gate.reached
        if done.code != 0:
            assert done.code in {3, 7} and "edgewright: " in done.said and "Done" not in done.said, done.said
            done = second.run(line).end()
        assert done.code == 0, done.said
        met.check_attached()

    each_of(met, "attach", unanswered, writes_only=True)


def test_a_run_notices_that_everything_was_taken_away_meanwhile(met: RaceStage) -> None:
    def taken_away(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        run = first.run(line, at=at)
        assert run.stands()
        away = second.run(line, "--uninstall").end()
        assert away.code == 0, away.said
        done = run.end()
        if done.code != 0:
            assert done.code == 3 and AGAIN in done.said and "Done: " not in done.said, done.said
            done = first.run(met.line()).end()
        assert done.code == 0, done.said
        met.check_attached()

    each_of(met, "attach", taken_away)


def test_a_line_that_is_run_while_an_uninstallation_stands_still_waits_or_goes_with_it(met: RaceStage) -> None:
    marks = "edgewright-anchor?"

    def run_beside(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        assert second.run(line).end().code == 0
        leaving = first.run(line, "--uninstall", at=at)
        assert leaving.stands()
        before = [asked for asked in first.gate.requests[:-1] if asked.writes]
        marked = any(marks in asked.path for asked in before)
        is_over = any(asked.method == "DELETE" and ANCHORS in asked.path for asked in before)
        done = second.run(line).end()
        if is_over:  # it only looks at what stays, and tells
            assert done.code == 0, done.said
        elif marked:
            assert (done.code, "let it end, or run it again" in done.said) == (6, True), done.said
        left = leaving.end()
        assert left.code == 0, left.said
        if is_over:
            met.check_attached()
        else:
            assert met.is_clean(), "something of ours is left, or somebody else's has gone"

    each_of(met, "uninstall", run_beside)


def test_an_uninstallation_that_was_killed_is_gone_on_with(met: RaceStage) -> None:
    def killed_leaving(at: int) -> None:
        first, second = met.terminals
        line = met.line()
        assert second.run(line).end().code == 0
        leaving = first.run(line, "--uninstall", at=at)
        assert leaving.stands()
        leaving.kill()
        done = second.run(line, "--uninstall").end()
        assert done.code == 0, done.said
        assert met.is_clean(), "something of ours is left, or somebody else's has gone"

    each_of(met, "uninstall", killed_leaving, writes_only=True)
