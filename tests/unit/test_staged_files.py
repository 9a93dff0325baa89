"""What staged requests make of a repository's files: whole or not at all, at the cost of few readings of a file."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from activities import staged_files
from activities.staged_files import apply_requests
from edgewright.domain.kubernetes_names import secret_path
from edgewright.domain.secret_template import TemplateChange
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import SealedValue, change_values, read_values

PATH = secret_path("default", "db")
BROKEN = secret_path("default", "broken")
FILES = {BROKEN: b"by a person: {"}


def change(key: str, ciphertext: str | None = "AgB=", *, name: str = "db") -> StagedChange:
    return StagedChange(
        request=uuid4(),
        cluster=uuid4(),
        generation=1,
        namespace="default",
        name=name,
        key=key,
        ciphertext=ciphertext,
        fingerprint=None if ciphertext is None else "f" * 64,
        sealed_at=datetime(2026, 1, 1, tzinfo=UTC),
        actor="token:test",
    )


def requests(*changes: StagedChange | list[StagedChange]) -> list[tuple[UUID, list[StagedChange]]]:
    return [(uuid4(), one if isinstance(one, list) else [one]) for one in changes]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the Secrets whose file was parsed and written, in order."""
    names: list[str] = []

    def counted(
        document: bytes | None,
        namespace: str,
        name: str,
        changes: Mapping[str, SealedValue | None],
        template: TemplateChange | None,
    ) -> bytes | None:
        names.append(name)
        return change_values(document, namespace, name, changes, template)

    monkeypatch.setattr(staged_files, "change_values", counted)
    return names


def test_requests_without_trouble_read_and_write_each_file_once(written: list[str]) -> None:
    asked = requests(*(change(f"k{n}") for n in range(100)), change("k", name="other"))
    applied = apply_requests(FILES.get, asked)
    assert applied.taken == [request for request, _ in asked]
    assert len(read_values(applied.files[PATH] or b"")) == 100
    assert written == ["db", "other"]


def test_one_request_in_the_way_is_found_by_halves_and_refused_alone(written: list[str]) -> None:
    asked = requests(*(change(f"k{n}") for n in range(64)))
    bad = asked[40] = (asked[40][0], [change("k", name="broken"), change("torn")])
    applied = apply_requests(FILES.get, asked)
    assert applied.taken == [request for request, _ in asked if request != bad[0]]
    assert {request: refusal.code for request, refusal in applied.refused.items()} == {
        bad[0]: "sealed_secret_malformed"
    }
    assert len(read_values(applied.files[PATH] or b"")) == 63, "nothing of the refused request, and all of the others"
    assert len(written) < 4 * 7, "twice the depth of the halving, two files each"


def test_the_last_change_of_a_key_counts_across_halves() -> None:
    asked = requests(change("a"), change("k", name="broken"), change("a", None), change("b"))
    applied = apply_requests(FILES.get, asked)
    assert list(applied.refused) == [asked[1][0]]
    assert set(read_values(applied.files[PATH] or b"")) == {"b"}


def test_a_file_goes_with_its_last_key() -> None:
    document = change_values(None, "default", "db", {"a": SealedValue("AgB=", None, None)})
    applied = apply_requests({PATH: document}.get, requests(change("a", None)))
    assert applied.files == {PATH: None}


def test_every_request_may_be_refused() -> None:
    asked = requests(*(change(f"k{n}", name="broken") for n in range(5)))
    applied = apply_requests(FILES.get, asked)
    assert (applied.files, applied.taken, len(applied.refused)) == ({}, [], 5)
