"""A short chaos run: kill -9 at random moments, Temporal's database put back, and nothing answered is lost."""

import asyncio
from pathlib import Path

import pytest

from tools.chaos.embedded_centre import EmbeddedCentre
from tools.chaos.run import ChaosPlan, run
from tools.chaos.verdict import broken_promises, report

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

SHORT = ChaosPlan(seed=301, kills=12, seconds=90.0)


def test_every_answered_request_holds_after_a_dozen_kills(tmp_path: Path) -> None:
    ran = asyncio.run(run(tmp_path, SHORT, EmbeddedCentre(tmp_path)))
    broken = broken_promises(ran)
    replay = f"make chaos SEED={SHORT.seed} KILLS={SHORT.kills} SECONDS={SHORT.seconds:.0f}"
    assert broken == [], "\n".join(
        [*broken, *report(ran), f"stores and journal are in {tmp_path}", f"the same wishes once more: {replay}"]
    )
    assert ran.put_back
