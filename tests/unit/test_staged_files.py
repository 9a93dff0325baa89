"""What staged requests make of a repository's files: whole or not at all, at the cost of few readings of a file."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
import yaml

from edgewright.application import staged_files
from edgewright.application.staged_files import AppliedRequests, apply_requests, apply_with_drivers
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.rendering.layout import DRIVER_PATTERN_PATH, DRIVERS_PATH
from edgewright.domain.rendering.secret_drivers import MOST_NAMESPACES
from edgewright.domain.secret_template import TemplateChange
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import SealedValue, change_values, read_template, read_values

PATH = SecretReference("default", "db").path
BROKEN = SecretReference("default", "broken").path
FILES = {BROKEN: b"by a person: {"}


def change(
    key: str | None, ciphertext: str | None = "AgB=", *, name: str = "db", template: TemplateChange | None = None
) -> StagedChange:
    return StagedChange(
        request=uuid4(),
        cluster=uuid4(),
        generation=1,
        place=SecretReference("default", name) if key is None else SecretKey("default", name, key),
        ciphertext=ciphertext,
        fingerprint=None if ciphertext is None else "f" * 64,
        sealed_at=datetime(2026, 1, 1, tzinfo=UTC),
        actor="token:test",
        template=template,
    )


def requests(*changes: StagedChange | list[StagedChange]) -> list[tuple[UUID, list[StagedChange]]]:
    return [(uuid4(), one if isinstance(one, list) else [one]) for one in changes]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the Secrets whose file was parsed and written, in order."""
    names: list[str] = []

    def counted(
        document: bytes | None,
        secret: SecretReference,
        changes: Mapping[str, SealedValue | None],
        template: TemplateChange | None,
    ) -> bytes | None:
        names.append(secret.name)
        return change_values(document, secret, changes, template)

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
    document = change_values(None, SecretReference("default", "db"), {"a": SealedValue("AgB=", None, None)})
    applied = apply_requests({PATH: document}.get, requests(change("a", None)))
    assert applied.files == {PATH: None}


def test_every_request_may_be_refused() -> None:
    asked = requests(*(change(f"k{n}", name="broken") for n in range(5)))
    applied = apply_requests(FILES.get, asked)
    assert (applied.files, applied.taken, len(applied.refused)) == ({}, [], 5)


def test_templates_of_requests_are_merged_in_their_order() -> None:
    first, second = TemplateChange(None, {"a": "1", "b": "1"}), TemplateChange("example.com/t", {"b": None, "c": "3"})
    asked = requests(
        change("k", template=first), change("k", template=second), change("k"), change("o", name="other")
    )
    applied = apply_requests(FILES.get, asked)
    assert len(applied.taken) == 4
    template = read_template(applied.files[PATH] or b"")
    assert (template.type, template.labels) == ("example.com/t", {"a": "1", "c": "3"})
    assert read_template(applied.files[SecretReference("default", "other").path] or b"").labels == {}


def test_of_two_types_the_first_is_taken_and_the_other_request_refused() -> None:
    tls, ssh = TemplateChange("kubernetes.io/tls"), TemplateChange("kubernetes.io/ssh-auth")
    asked = requests(
        [change("tls.crt", template=tls), change("tls.key")], change("ssh-privatekey", template=ssh), change("more")
    )
    applied = apply_requests(FILES.get, asked)
    assert applied.taken == [asked[0][0], asked[2][0]]
    assert [refusal.code for refusal in applied.refused.values()] == ["secret_type_immutable"]
    document = applied.files[PATH] or b""
    assert read_template(document).type == "kubernetes.io/tls"
    assert set(read_values(document)) == {"tls.crt", "tls.key", "more"}


def test_a_secret_that_is_deleted_first_may_come_back_with_another_type() -> None:
    document = change_values(None, SecretReference("default", "db"), {"k": SealedValue("AgB=", None, None)})
    wish = TemplateChange("kubernetes.io/ssh-auth")
    applied = apply_requests(
        {PATH: document}.get, requests(change("k", None), change("ssh-privatekey", template=wish))
    )
    assert len(applied.taken) == 2
    assert read_template(applied.files[PATH] or b"").type == "kubernetes.io/ssh-auth"


def test_a_deletion_that_leaves_a_secret_no_edge_would_take_is_refused_alone() -> None:
    values = dict.fromkeys(("tls.crt", "tls.key"), SealedValue("AgB=", None, None))
    document = change_values(None, SecretReference("default", "db"), values, TemplateChange("kubernetes.io/tls"))
    asked = requests(change("tls.key", None), change("ca.crt"))
    applied = apply_requests({PATH: document}.get, asked)
    assert applied.taken == [asked[1][0]]
    assert [refusal.code for refusal in applied.refused.values()] == ["secret_keys_missing"]


PATTERN = b"""---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: edge-secrets, namespace: edgewright}
spec: {path: ./edo/secrets, prune: true}
"""


def repository(*paths: str) -> dict[str, bytes]:
    return {DRIVER_PATTERN_PATH: PATTERN, **dict.fromkeys(paths, b"")}


def apply_on(files: Mapping[str, bytes], asked: list[tuple[UUID, list[StagedChange]]]) -> AppliedRequests:
    return apply_with_drivers(files.get, lambda: list(files), asked)


def in_namespace(namespace: str, ciphertext: str | None = "AgB=", *, creates: bool = False) -> StagedChange:
    return replace(change("k", ciphertext), place=SecretKey(namespace, "db", "k"), creates_namespace=creates)


def test_first_secrets_of_namespaces_bring_their_drivers_in_the_same_commit() -> None:
    there = repository("edo/secrets/here/README.md")
    applied = apply_on(there, requests(in_namespace("here"), in_namespace("line-1"), in_namespace("line-2")))
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(applied.files[DRIVERS_PATH] or b"")]
    assert names == ["edge-secrets-here", "edge-secrets-line-1", "edge-secrets-line-2"]
    assert {"edo/secrets/line-1/README.md", "edo/secrets/line-2/README.md"} <= set(applied.files)


def test_a_further_secret_of_a_namespace_lists_nothing() -> None:
    there = repository("edo/secrets/here/README.md")
    applied = apply_with_drivers(there.get, lambda: pytest.fail("listed"), requests(in_namespace("here")))
    assert set(applied.files) == {"edo/secrets/here/db.yaml"}


def test_the_last_key_deleted_leaves_the_driver() -> None:
    sealed = apply_on(repository(), requests(in_namespace("line-1")))
    there = {**repository(), **{path: content for path, content in sealed.files.items() if content is not None}}
    applied = apply_on(there, requests(in_namespace("line-1", None)))
    assert applied.files == {"edo/secrets/line-1/db.yaml": None}


def test_a_request_that_is_refused_brings_neither_driver_nor_namespace() -> None:
    there = {**repository(), SecretReference("line-1", "db").path: b"by a person: {"}
    applied = apply_on(there, requests(in_namespace("line-1", creates=True), in_namespace("line-2", creates=True)))
    assert len(applied.refused) == 1
    assert "edo/secrets/line-2/namespace.yml" in applied.files
    assert not [path for path in applied.files if "/line-1/" in path]


def test_requests_beyond_the_last_namespace_are_refused_alone() -> None:
    """The gateway refuses them, too; those that come at the same time meet here."""
    there = repository(*(f"edo/secrets/n{number}/README.md" for number in range(MOST_NAMESPACES - 1)))
    asked = requests(in_namespace("line-1"), in_namespace("line-2"), in_namespace("line-1"), in_namespace("n7"))
    applied = apply_on(there, asked)
    assert applied.taken == [asked[0][0], asked[2][0], asked[3][0]]
    assert [refusal.code for refusal in applied.refused.values()] == ["too_many_namespaces"]


def labelled(label: str, *, name: str = "db") -> StagedChange:
    return change(None, None, name=name, template=TemplateChange(labels={label: "1"}))


def test_labels_of_several_requests_meet_in_one_file_and_values_stay() -> None:
    first = apply_requests(FILES.get, requests(change("k", "AgC="))).files
    asked = requests(labelled("a"), change("user"), labelled("b"))
    applied = apply_requests(first.get, asked)
    document = applied.files[PATH] or b""
    assert read_template(document).labels == {"a": "1", "b": "1"}
    assert {key: value.ciphertext for key, value in read_values(document).items()} == {"k": "AgC=", "user": "AgB="}
    assert applied.taken == [request for request, _ in asked]


def test_a_label_for_a_secret_that_was_deleted_meanwhile_is_refused() -> None:
    first = apply_requests(FILES.get, requests(change("k"))).files
    [before, gone, after] = requests(labelled("a"), change("k", None), labelled("b"))
    applied = apply_requests(first.get, [before, gone, after])
    assert (applied.taken, applied.files[PATH]) == ([before[0], gone[0]], None)
    assert applied.refused[after[0]].code == "secret_unknown"


def test_what_is_written_after_the_last_key_was_deleted_begins_without_labels() -> None:
    """As where each has a commit of its own: labels and type go with the file."""
    wish = TemplateChange("example.com/t", {"old": "1"})
    first = apply_requests(FILES.get, requests(change("k", template=wish))).files
    asked = requests(labelled("late"), change("k", None), change("k", None, name="other"), change("k2"), change("k3"))
    applied = apply_requests(first.get, asked)
    assert applied.taken == [request for request, _ in asked]
    document = applied.files[PATH] or b""
    assert set(read_values(document)) == {"k2", "k3"}
    assert (read_template(document).type, read_template(document).labels) == ("Opaque", {})
