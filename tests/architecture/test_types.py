"""What the type checker has to refuse: a word where a member of an enumeration is meant, and a step left unsorted."""

import re
from pathlib import Path

import pytest
from mypy import api

HEAD = """
from uuid import UUID
from edgewright.domain.absence import UnopenedValue
from edgewright.domain.cluster import Phase, StepName, StepState
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.lifecycle import Plan
from edgewright.domain.projection import StepRecord
from edgewright.domain.events import EventKind, NewEvent
from edgewright.messages.cluster import PendingVerb
from edgewright.sealing import change_values
from workflows.publication import Publication
from workflows.verbs import Verbs

def told(kind: EventKind) -> NewEvent:
    return NewEvent(id=UUID(int=1), cluster=None, actor="centre", kind=kind, message="It happened.")

def published(publication: Publication) -> None:
    publication.tell(EventKind.STEP_DONE, "A step is done.")

WRITTEN = change_values(None, SecretReference("default", "db"), {})
CLOSED = UnopenedValue(SecretKey("default", "db", "password"), "0" * 64)
DONE = StepRecord(name=StepName.CREATE_ACCOUNTS, state=StepState.DONE)
"""
"""Fine, and so is what it imports."""
REFUSED = {
    "the state of a step as a word": 'StepRecord(name=StepName.CREATE_ACCOUNTS, state="done")',
    "another enumeration's member": "StepRecord(name=StepName.CREATE_ACCOUNTS, state=Phase.ACTIVE)",
    "a Secret as a tuple": 'change_values(None, ("default", "db"), {})',
    "a Secret where one value of it is meant": 'UnopenedValue(SecretReference("default", "db"), "0")',
    "a verb as a word": 'PendingVerb(kind="pause", number=1)',
    "a verb that a handler adds as a word": 'Verbs.add(Verbs(UUID(int=1), (), 0, 0), "pause")',
    "a plan's kind as a word": 'Plan(kind="delete")',
    "a kind of event as a word": 'NewEvent(id=UUID(int=1), cluster=None, actor="", kind="step.done", message="")',
    "a kind that a workflow tells as a word": 'Publication.tell(Publication(UUID(int=1), None, ()), "step.done", "")',
}
UNSORTED = "            | StepName.REMOVE_ADDRESS\n"
"""Taken out where steps are sorted, it stands for a deletion step that somebody has added and not sorted."""
SORTING = {"policies": "workflows/policies.py", "lifecycle": "edgewright/domain/lifecycle.py"}

Found = dict[tuple[str, int], str]


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """File and line → what mypy says of it, with the product's own configuration."""
    folder = tmp_path_factory.mktemp("types")
    sources = {"snippet": HEAD + "\n".join(REFUSED.values()) + "\n"}
    for name, path in SORTING.items():
        before, unsorted, after = (root / path).read_text("utf-8").partition(UNSORTED)
        assert unsorted, f"{path} sorts no steps in this form any more"
        sources[f"unsorted_{name}"] = before + after
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MYPYPATH", str(root))
        files = [str(folder / f"{name}.py") for name in sources]
        said, trouble, _ = api.run([f"--cache-dir={folder / 'cache'}", "--follow-imports=silent", *files])
    assert trouble == ""
    errors = re.findall(r"(\w+)\.py:(\d+): error: (.+)", said)
    return {(file, int(line)): text for file, line, text in errors}


def test_what_is_right_is_not_refused(found: Found) -> None:
    right = len(HEAD.splitlines())
    assert [text for (file, line), text in found.items() if file == "snippet" and line <= right] == []


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_member_is_refused(found: Found, what: str) -> None:
    assert "has incompatible type" in found["snippet", len(HEAD.splitlines()) + 1 + list(REFUSED).index(what)]


@pytest.mark.parametrize("name", SORTING)
def test_a_step_that_nobody_has_sorted_is_refused(found: Found, name: str) -> None:
    [told] = [text for (file, _), text in found.items() if file == f"unsorted_{name}"]
    assert 'Argument 1 to "assert_never" has incompatible type "Literal[StepName.REMOVE_ADDRESS]"' in told
