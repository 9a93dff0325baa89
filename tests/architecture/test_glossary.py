"""Each word that people meet has its line in the glossary, and the glossary has no other ones."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from edgewright.domain.cluster import (
    Acceptance,
    ConditionType,
    CredentialState,
    Desired,
    LeaseState,
    Order,
    Phase,
    ResealState,
    StepName,
    StepState,
    TokenState,
)
from edgewright.domain.events import EventKind
from edgewright.domain.notifications import NotificationType
from edgewright.domain.opened_secrets import EdgeState
from edgewright.domain.projection import PlanKind
from edgewright.messages.cluster import VerbKind
from edgewright.ports.operators import Permission
from edgewright.ports.secret_staging import StagedState

CHAPTERS: dict[str, type[StrEnum]] = {
    "What is desired of a cluster": Desired,
    "Phases": Phase,
    "Conditions": ConditionType,
    "What a cluster's workflow is asked to do": VerbKind,
    "Plans": PlanKind,
    "Registration tokens": TokenState,
    "Acceptance": Acceptance,
    "Cluster credentials": CredentialState,
    "Operator tokens": Permission,
    "Leases": LeaseState,
    "What the agent is asked to do": Order,
    "Notifications": NotificationType,
    "Secrets in a re-sealing": ResealState,
}


def _first_cells(chapter: str) -> list[list[str]]:
    """The cells of each row of the tables of a chapter whose first cell is a word of the code."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in chapter.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.fixture(scope="module")
def chapters(root: Path) -> dict[str, str]:
    """Heading → text."""
    parts = re.split(r"^## (.+)$", (root / "docs" / "glossary.md").read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("heading", "words"), CHAPTERS.items())
def test_the_code_and_the_glossary_have_the_same_words(
    chapters: dict[str, str], heading: str, words: type[StrEnum]
) -> None:
    assert {row[0].strip("`") for row in _first_cells(chapters[heading])} == {word.value for word in words}


def test_each_kind_of_event_is_explained(chapters: dict[str, str]) -> None:
    explained = [row[0].strip("`") for row in _first_cells(chapters["Kinds of events"])]
    assert explained == [kind.value for kind in EventKind]


def test_each_step_and_each_state_of_a_step_is_explained(chapters: dict[str, str]) -> None:
    explained = {row[0].strip("`") for row in _first_cells(chapters["Steps"])}
    assert explained == {step.value for step in StepName} | {state.value for state in StepState}


def test_each_state_of_a_secret_on_its_edge_is_explained(chapters: dict[str, str]) -> None:
    explained = [row[0].strip("`") for row in _first_cells(chapters["Secrets on the edge"])]
    assert explained == [state.value for state in EdgeState]


def test_each_state_of_a_staged_change_is_explained(chapters: dict[str, str]) -> None:
    explained = {row[0].strip("`") for row in _first_cells(chapters["Sealed secrets"])}
    assert explained == {state.value for state in StagedState}


def test_each_condition_says_what_true_false_and_unknown_mean(chapters: dict[str, str]) -> None:
    for row in _first_cells(chapters["Conditions"]):
        assert len(row) == len(("condition", "True", "False", "Unknown")), row[0]
        assert all(row), row[0]
