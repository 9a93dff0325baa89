"""Every alert watches something that is really exported, and says what to do."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from supervised import eventually
from watched import Watched

NAME = re.compile(r"\b(?:edgewright|temporal)_[a-z_]+\b(?=[\[{) ]|$)")
DOCUMENTED = re.compile(r"`((?:edgewright)_[a-z_]+)`")


@pytest.fixture(scope="module")
def docs() -> Path:
    return Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def rules(docs: Path) -> list[dict[str, Any]]:
    parsed = yaml.safe_load((docs / "alerts" / "edgewright.rules.yml").read_text("utf-8"))
    return [rule for group in parsed["groups"] for rule in group["rules"]]


def exported(text: str) -> set[str]:
    """The name of every family of an exposition, and of every sample."""
    families = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    return families | set(re.findall(r"^([a-z_]+)[{ ]", text, re.MULTILINE))


def test_every_metric_in_a_rule_is_exported(rules: list[dict[str, Any]], watched: Watched) -> None:
    named = {name for rule in rules for name in NAME.findall(rule["expr"])}
    assert len(named) >= len(rules) - 2

    def missing() -> set[str]:
        return named - exported(watched.gateway_metrics()) - exported(watched.worker_metrics())

    eventually(lambda: not missing(), seconds=60)


def test_every_series_of_ours_is_documented_and_the_other_way_round(docs: Path, watched: Watched) -> None:
    text = watched.gateway_metrics() + watched.worker_metrics()
    families = {name for name in re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE) if name.startswith("edgewright_")}
    chapter = (docs / "operations.md").read_text("utf-8").partition("## Alerts")[0]
    assert set(DOCUMENTED.findall(chapter)) == families


def test_labels_in_rules_are_labels_that_are_exported(rules: list[dict[str, Any]], watched: Watched) -> None:
    pairs = {pair for rule in rules for pair in re.findall(r'(\w+="[^"]+")', rule["expr"])}

    def missing() -> set[str]:
        text = watched.gateway_metrics() + watched.worker_metrics()
        return {pair for pair in pairs if pair not in text}

    eventually(lambda: not missing(), seconds=60)


def test_every_alert_has_its_section_and_every_section_its_alert(docs: Path, rules: list[dict[str, Any]]) -> None:
    sections = re.findall(r"^### (Edgewright\w+)$", (docs / "operations.md").read_text("utf-8"), re.MULTILINE)
    assert sections == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning"}
