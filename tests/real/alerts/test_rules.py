"""The alert rules, by the real promtool: they are valid, they fire when they must, and each one is tested."""

import subprocess
from pathlib import Path

import pytest
import yaml
from debian import debian_program

ALERTS = Path(__file__).parents[3] / "docs" / "alerts"
RULES = ALERTS / "edgewright.rules.yml"
TESTS = ALERTS / "edgewright.tests.yml"
NAMES = [rule["alert"] for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]

pytestmark = pytest.mark.real


def promtool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [debian_program("promtool"), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_rules_are_valid() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(NAMES)} rules found" in checked.stdout


def test_rules_fire_when_they_must_and_are_silent_otherwise() -> None:
    tested = promtool("test", "rules", TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("name", NAMES)
def test_no_alert_could_be_left_out_unseen(name: str, tmp_path: Path) -> None:
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    for group in rules["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule["alert"] != name]
    (tmp_path / RULES.name).write_text(yaml.safe_dump(rules))
    (tmp_path / TESTS.name).write_text(TESTS.read_text("utf-8"))
    assert promtool("test", "rules", tmp_path / TESTS.name).returncode != 0
