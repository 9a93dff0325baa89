"""What the type checker has to refuse: a word where a member of an enumeration is meant, a step left unsorted, the
name of a column that no record has, and any column of a row that no record was made of."""

import re
from pathlib import Path

import pytest
from mypy import api

HEAD = """
from uuid import UUID
from edgewright.domain.absence import UnopenedValue
from edgewright.domain.cluster import Fence, Phase, StepName, StepState
from edgewright.domain.kubernetes_names import SecretKey, SecretReference, secret_place
from edgewright.domain.lifecycle import Plan
from edgewright.domain.projection import StepRecord
from edgewright.domain.events import EventKind, NewEvent
from edgewright.messages.cluster import PendingVerb
from edgewright.ports.audit import RecordedCommit
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.resealing import Verdict
from edgewright.sealing import change_values
from workflows.publication import Publication
from workflows.verbs import Verbs

def told(kind: EventKind) -> NewEvent:
    return NewEvent(id=UUID(int=1), cluster=None, actor="centre", kind=kind, message="It happened.")

def published(publication: Publication) -> None:
    publication.tell(EventKind.STEP_DONE, "A step is done.")

WRITTEN = change_values(None, SecretReference("default", "db"), {})
READ = secret_place("default/db/password")
STEPS: ClusterSteps
FENCE = Fence(cluster=UUID(int=1), generation=1, change=1)
CLOSED = UnopenedValue(SecretKey("default", "db", "password"), "0" * 64)
DONE = StepRecord(name=StepName.CREATE_ACCOUNTS, state=StepState.DONE)
"""
"""Fine, and so is what it imports."""
REFUSED = {
    "the state of a step as a word": 'StepRecord(name=StepName.CREATE_ACCOUNTS, state="done")',
    "another enumeration's member": "StepRecord(name=StepName.CREATE_ACCOUNTS, state=Phase.ACTIVE)",
    "a Secret as a tuple": 'change_values(None, ("default", "db"), {})',
    "a Secret where one value of it is meant": 'UnopenedValue(SecretReference("default", "db"), "0")',
    "a value that a move takes away as a text": '[STEPS.record_reentry(FENCE, taken=["default/db/k"])]',
    "a Secret that is re-sealed as a text": 'Verdict("default/db")',
    "a value that the timeline tells of as a text": 'RecordedCommit("c0ffee", "default/db/password")',
    "a place that may be none where a Secret is meant": "Verdict(READ)",
    "a verb as a word": 'PendingVerb(kind="pause", number=1)',
    "a verb that a handler adds as a word": 'Verbs.add(Verbs(UUID(int=1), (), 0, 0), "pause")',
    "a plan's kind as a word": 'Plan(kind="delete")',
    "a kind of event as a word": 'NewEvent(id=UUID(int=1), cluster=None, actor="", kind="step.done", message="")',
    "a kind that a workflow tells as a word": 'Publication.tell(Publication(UUID(int=1), None, ()), "step.done", "")',
}
UNSORTED = "            | StepName.REMOVE_ADDRESS\n"
"""Taken out where steps are sorted, it stands for a deletion step that somebody has added and not sorted."""
SORTING = {"policies": "workflows/policies.py", "lifecycle": "edgewright/domain/lifecycle.py"}
DATABASE = "edgewright/adapters/database"
MISSPELLED = {
    "access/accounts": ("role=row.role", "role=row.roel", "AccountRecord"),
    "access/credential_proof": ("_after_use(used.state", "_after_use(used.sate", "CredentialRecord"),
    "access/edge_access": ("desired=of.desired", "desired=of.desierd", "OrdersColumns"),
    "access/operators": ("expires_at=row.expires_at", "expires_at=row.expires", "OperatorTokenRecord"),
    "access/registration": ("if not token.bound_uid", "if not token.bound_udi", "RegistrationTokenRecord"),
    "clusters/cluster_lists": ("phase=row.phase", "phase=row.phaes", "ListedColumns"),
    "clusters/wanted_reading": ("desired=row.desired", "desired=row.desierd", "ClusterRecord"),
    "config_store/entries": ("row.body, row.etag", "row.body, row.eatg", "EntryRecord"),
    "notifications/giving_up": ("problem = webhook.last_problem", "problem = webhook.last", "WebhookRecord"),
    "notifications/notification_rows": ("timestamp=row.at", "timestamp=row.ta", "NotificationRecord"),
    "notifications/webhooks": ("status=row.last_status", "status=row.last_satus", "WebhookRecord"),
    "rows/cluster_rows": ("desired=row.desired", "desired=row.desierd", "ClusterRecord"),
    "rows/lease_rows": ('"before": row.lease_state}', '"before": row.lease_sate}', "ClusterRecord"),
    "rows/staged_rows": ("actor=row.actor", "actor=row.acotr", "StagedRecord"),
    "secrets/resealing": ("actor=asked.asked_by", "actor=asked.askde_by", "ResealingRecord"),
    "secrets/secret_staging": ('"fingerprint": row.fingerprint', '"fingerprint": row.fingerpint', "StagedRecord"),
    "upkeep/presence": ("at if gap else presence.listening_since", "at if gap else presence.since", "PresenceRecord"),
}
"""Module of the database → what stands there once, the same misspelled, and the record that has no such column."""

READING = """
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from edgewright.adapters.database.tables import clusters

COUNTED = select(func.count().label("clusters"), func.min(clusters.c.created_at).label("oldest"))

async def read(connection: AsyncConnection) -> None:
    found = await connection.execute(select(clusters))
    [first, *others] = [tuple(row) for row in found]
    clusters_, oldest = (await connection.execute(COUNTED)).one()
"""
"""Fine: no column is named."""
NAMED = {
    "of each row": "    [row.desired for row in found]",
    "of one row": "    found.one().desired",
    "that a function makes": "    (await connection.execute(COUNTED)).one().oldest",
}

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
    for name, (right, wrong, _) in MISSPELLED.items():
        source = (root / DATABASE / f"{name}.py").read_text("utf-8")
        assert source.count(right) == 1, f"{name} reads no column in this form any more"
        sources[_misspelled(name)] = source.replace(right, wrong)
    sources[f"{DATABASE}/reading"] = READING + "\n".join(NAMED.values()) + "\n"
    (folder / DATABASE).mkdir(parents=True)
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


def _misspelled(name: str) -> str:
    return f"misspelled_{name.replace('/', '_')}"


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


@pytest.mark.parametrize("name", MISSPELLED)
def test_a_column_that_no_record_has_is_refused(found: Found, name: str) -> None:
    _, wrong, record = MISSPELLED[name]
    [told] = [text for (file, _), text in found.items() if file == _misspelled(name)]
    assert f'"{record}" has no attribute "{wrong.rpartition(".")[2].rstrip("}")}"' in told


def test_a_reading_that_names_no_column_of_a_row_is_not_refused(found: Found) -> None:
    assert [text for (file, line), text in found.items() if file == "reading" and line <= READING.count("\n")] == []


@pytest.mark.parametrize("what", NAMED)
def test_a_column_of_a_row_that_no_record_was_made_of_is_refused(found: Found, what: str) -> None:
    assert "Make a record of the row" in found["reading", READING.count("\n") + 1 + list(NAMED).index(what)]
