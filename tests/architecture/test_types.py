"""What the type checker has to refuse: a word where a member of an enumeration is meant, and a step left unsorted."""

import re
from pathlib import Path

import pytest
from mypy import api

HEAD = """
from uuid import UUID
from edgewright.domain.cluster import Phase, StepName, StepState
from edgewright.domain.lifecycle import Plan
from edgewright.domain.projection import StepRecord
from edgewright.domain.events import EventKind, NewEvent
from edgewright.messages.cluster import PendingVerb
from workflows.publication import Publication
from workflows.verbs import Verbs

def told(kind: EventKind) -> NewEvent:
    return NewEvent(id=UUID(int=1), cluster=None, actor="centre", kind=kind, message="It happened.")

def published(publication: Publication) -> None:
    publication.tell(EventKind.STEP_DONE, "A step is done.")

DONE = StepRecord(name=StepName.CREATE_ACCOUNTS, state=StepState.DONE)
"""
"""Fine, and so is what it imports."""
REFUSED = {
    "the state of a step as a word": 'StepRecord(name=StepName.CREATE_ACCOUNTS, state="done")',
    "another enumeration's member": "StepRecord(name=StepName.CREATE_ACCOUNTS, state=Phase.ACTIVE)",
    "a verb as a word": 'PendingVerb(kind="pause", number=1)',
    "a verb that a handler adds as a word": 'Verbs.add(Verbs(UUID(int=1), (), 0, 0), "pause")',
    "a plan's kind as a word": 'Plan(kind="delete")',
    "a kind of event as a word": 'NewEvent(id=UUID(int=1), cluster=None, actor="", kind="step.done", message="")',
    "a kind that a workflow tells as a word": 'Publication.tell(Publication(UUID(int=1), None, ()), "step.done", "")',
}


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Line → what mypy says of it, with the product's own configuration; each line but for those of HEAD is wrong."""
    folder = tmp_path_factory.mktemp("types")
    snippet = folder / "snippet.py"
    snippet.write_text(HEAD + "\n".join(REFUSED.values()) + "\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MYPYPATH", str(root))
        said, trouble, _ = api.run([f"--cache-dir={folder / 'cache'}", "--follow-imports=silent", str(snippet)])
    assert trouble == ""
    return {int(line): text for line, text in re.findall(r"snippet\.py:(\d+): error: (.+)", said)}


def test_what_is_right_is_not_refused(found: dict[int, str]) -> None:
    assert [text for line, text in found.items() if line <= len(HEAD.splitlines())] == []


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_member_is_refused(found: dict[int, str], what: str) -> None:
    assert "has incompatible type" in found[len(HEAD.splitlines()) + 1 + list(REFUSED).index(what)]
