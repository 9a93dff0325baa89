"""What the siege does not put up with."""

from dataclasses import replace

import pytest

from bench.siege.attackers import OBEYED, OUT_OF_MEMORY, REFUSED_PAGES
from bench.siege.bystanders import WATCHED, Noticed
from bench.siege.loop_lag import Ticks
from bench.siege.verdict import GIT_MEGABYTES, MEMORY_MEGABYTES, Phase, troubles

NOTICED = Noticed(dict.fromkeys(WATCHED, 0.01), dict.fromkeys(WATCHED, 0.02), dict.fromkeys(WATCHED, 20), {}, [])
QUIET = Phase("quiet", NOTICED, {"gateway": 100.0, "git": 0.0}, {"worker": Ticks(200, 0)}, {})
PUSH = replace(QUIET, name="push-token", met={OUT_OF_MEMORY: 1})


def test_nothing_is_wrong_with_an_attack_that_nobody_noticed() -> None:
    assert troubles(PUSH, QUIET, ratios=True) == []


@pytest.mark.parametrize(("part", "allowed"), [("git", GIT_MEGABYTES), ("gateway", 100 + MEMORY_MEGABYTES)])
def test_memory_beyond_the_bound_is_a_broken_promise(part: str, allowed: float) -> None:
    assert troubles(replace(PUSH, megabytes=PUSH.megabytes | {part: allowed}), QUIET, ratios=False) == []
    assert len(troubles(replace(PUSH, megabytes=PUSH.megabytes | {part: allowed + 1}), QUIET, ratios=False)) == 1


def test_an_attack_that_did_not_arrive_shows_nothing() -> None:
    assert len(troubles(replace(PUSH, met={}), QUIET, ratios=False)) == 1


def test_a_web_page_that_is_obeyed_is_a_broken_promise() -> None:
    refused = replace(QUIET, name="browser-page", met={REFUSED_PAGES: 1, OBEYED: 0})
    assert troubles(refused, QUIET, ratios=False) == []
    assert len(troubles(replace(refused, met={REFUSED_PAGES: 1, OBEYED: 1}), QUIET, ratios=False)) == 1
