import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sealing_keys import NOW

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Conflict, Invalid, Stalled, TooLarge
from edgewright.sealing import (
    SECRET_LIMIT,
    Scope,
    SealedValue,
    change_values,
    check_secret_size,
    put_values,
    read_scope,
    read_values,
    remove_keys,
    sealed_secret,
    total_plaintext_size,
)
from edgewright.sealing.sealed_secret import (
    ANNOTATIONS_LIMIT,
    DOCUMENT_LIMIT,
    MANAGED_ANNOTATION,
    SMALL_DOCUMENT,
)
from edgewright.sealing.yaml_document import load_document

GOLDEN = Path(__file__).with_name("golden_sealed_secret.yaml")
NEW, OLD = "ab" * 32, "cd" * 32
PATH = "edo/secrets/press/db.yaml"

HAND_MADE = b"""\
# made with kubeseal
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata:
  name: db
  namespace: press
  creationTimestamp: null
  labels: {team: "1"}
spec:
  encryptedData:
    password: AgBy
    user: AgBx
  template:
    metadata:
      labels:
        since: 2024-01-01
    type: kubernetes.io/basic-auth
...
"""


def envelope(size: int) -> str:
    """What sealing ``size`` bytes with a 2,048-bit key gives, as far as anybody without the key can tell."""
    return base64.b64encode((256).to_bytes(2, "big") + bytes(256 + size + 16)).decode()


def value(ciphertext: str = "AQAA", fingerprint: str | None = NEW, sealed_at: datetime | None = NOW) -> SealedValue:
    return SealedValue(ciphertext, fingerprint, sealed_at)


def put(document: bytes | None = None, scope: Scope = Scope.STRICT, **values: SealedValue) -> bytes:
    return put_all(document, values, scope)


def put_all(document: bytes | None, values: Mapping[str, SealedValue], scope: Scope = Scope.STRICT) -> bytes:
    return put_values(document, SecretReference("press", "db"), values, scope)


def parsed(document: bytes) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(document)
    return content


def test_the_file_is_the_golden_one() -> None:
    values = {
        "password": value("AQBzZWFsZWQ/+w=="),
        "1e3": value("AQBzZWFsZWQ=", OLD, NOW - timedelta(days=90)),
        "y": value("AQBzZWFsZWQ="),
        "tls.crt": value("AQBzZWFsZWQ="),
    }
    assert put_values(None, SecretReference("press", "db"), values) == GOLDEN.read_bytes()


def test_every_reader_takes_every_key_for_text() -> None:
    keys = [
        "y",
        "n",
        "on",
        "NO",
        "true",
        "null",
        "1",
        "1e3",
        "0x1F",
        "0b1",
        "1_000",
        "-1",
        ".5",
        "-.inf",
        "2024-01-01",
    ]
    keys += ["1.2.3", "_", "-", "--", "-a", "0o7", "12e03", "No", "OFF", "a"]
    document = put_values(None, SecretReference("press", "db"), {key: value() for key in keys})
    lines = document.decode().partition("encryptedData:\n")[2].partition("  template:")[0].splitlines()
    plain = {line.split(":")[0].strip() for line in lines if not line.strip().startswith("'")}
    assert plain == {"a"}
    assert set(read_values(document)) == set(keys)


@given(
    st.dictionaries(st.from_regex(r"[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,40}", fullmatch=True), st.just(value()), min_size=1)
)
def test_what_is_put_is_read_whatever_the_key(values: dict[str, SealedValue]) -> None:
    document = put_values(None, SecretReference("press", "db"), values)
    assert read_values(document) == values
    assert set(parsed(document)["spec"]["encryptedData"]) == set(values)


def test_the_order_of_putting_does_not_show() -> None:
    first, second = value("AQAA"), value("AQAB", OLD)
    together = put(a=first, b=second)
    assert put(b=second, a=first) == together
    assert put(put(b=second), a=first) == together
    assert put(put(a=second, b=second), a=first) == together


def test_putting_what_is_there_changes_no_byte() -> None:
    document = put(a=value(), b=value("AQAB", None, None))
    assert put(document, a=value()) == document
    assert put_all(document, read_values(document)) == document


def test_other_keys_stay_when_one_is_replaced() -> None:
    document = put(put(a=value(), b=value("AQAB", OLD)), a=value("AQAC"))
    assert read_values(document) == {"a": value("AQAC"), "b": value("AQAB", OLD)}


def test_times_are_kept_in_utc_and_whole_seconds() -> None:
    east = timezone(timedelta(hours=9))
    sealed_at = datetime(2026, 3, 1, 21, 0, 0, 999999, tzinfo=east)
    read = read_values(put(a=value(sealed_at=sealed_at)))["a"]
    assert read.sealed_at == NOW
    assert read.sealed_at.tzinfo is UTC


@pytest.mark.parametrize(("fingerprint", "sealed_at"), [(NEW, None), (None, NOW), (NEW, NOW.replace(tzinfo=None))])
def test_half_known_values_are_a_defect_of_the_caller(fingerprint: str | None, sealed_at: datetime | None) -> None:
    with pytest.raises(ValueError):
        value("AQAA", fingerprint, sealed_at)


def test_fingerprints_stand_on_the_object_and_never_in_the_secret_that_comes_of_it() -> None:
    content = parsed(put(b=value(), a=value("AQAB", OLD)))
    assert json.loads(content["metadata"]["annotations"]["edgewright.dev/sealed-keys"]) == {
        "a": [OLD, "2026-03-01T12:00:00Z"],
        "b": [NEW, "2026-03-01T12:00:00Z"],
    }
    assert content["spec"]["template"]["metadata"]["annotations"].keys() == {MANAGED_ANNOTATION}


def test_a_file_made_by_hand_is_read_with_unknown_certificates() -> None:
    assert read_values(HAND_MADE) == {"password": value("AgBy", None, None), "user": value("AgBx", None, None)}
    assert list(read_values(HAND_MADE)) == ["password", "user"]


def test_what_a_person_added_stays() -> None:
    content = parsed(put(HAND_MADE, password=value()))
    assert content["spec"]["template"]["type"] == "kubernetes.io/basic-auth"
    assert content["spec"]["template"]["metadata"]["labels"] == {"since": "2024-01-01"}
    assert content["metadata"]["labels"] == {"team": "1"}
    assert read_values(put(HAND_MADE, password=value())) == {
        "password": value(),
        "user": value("AgBx", None, None),
    }


def test_an_object_without_a_namespace_gets_that_of_its_path() -> None:
    document = HAND_MADE.replace(b"  namespace: press\n", b"")
    assert parsed(put(document, a=value()))["metadata"]["namespace"] == "press"


@pytest.mark.parametrize(
    "annotation",
    [
        "",
        "nonsense",
        "[]",
        "7",
        '{"a": 1}',
        '{"a": ["x"]}',
        '{"a": ["x", "yesterday"]}',
        '{"b": ["x"]}',
        "[" * 100000,
    ],
)
def test_an_annotation_that_is_not_ours_says_nothing(annotation: str) -> None:
    content = parsed(put(a=value()))
    content["metadata"]["annotations"]["edgewright.dev/sealed-keys"] = annotation
    document = yaml.safe_dump(content).encode()
    assert read_values(document) == {"a": value("AQAA", None, None)}
    assert put(document, a=value()) == put(a=value())


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"---\n",
        b"[]",
        b"text",
        b"a: [",
        b"\xff\xfe\xfa",
        HAND_MADE + HAND_MADE.replace(b"# made", b"---\n# made"),
        HAND_MADE.replace(b"kind: SealedSecret", b"kind: Secret"),
        HAND_MADE.replace(b"v1alpha1", b"v1"),
        HAND_MADE.replace(b"password: AgBy", b"password: 7"),
        HAND_MADE.replace(b"password: AgBy", b"password: [AgBy]"),
        HAND_MADE.replace(b"password: AgBy", b"user: AgBy"),
        HAND_MADE.replace(b"password: AgBy", b"1: AgBy"),
        HAND_MADE.replace(b"password: AgBy", b"password: &x AgBy").replace(b"AgBx", b"*x"),
        HAND_MADE.replace(b"password: AgBy", b"password: !!binary AgBy"),
        HAND_MADE.replace(b'team: "1"', b"team: !!bool perhaps"),
        HAND_MADE.replace(b"labels: {", b"labels: !!set {"),
        HAND_MADE.replace(b'team: "1"', b"team: 0x_"),
        HAND_MADE.replace(b"  name: db\n", b""),
        b"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: db}\nspec: []\n",
        b"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: [db]\n",
        b"a: " + b"[" * 200000,
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda document: read_values(document, where=PATH),
        lambda document: read_scope(document, where=PATH),
        lambda document: remove_keys(document, ["password"], where=PATH),
        lambda document: put(document, a=value()),
    ],
    ids=["read", "scope", "remove", "put"],
)
def test_a_file_that_is_no_sealed_secret_needs_a_person(document: bytes, use: Callable[[bytes], object]) -> None:
    with pytest.raises(Stalled) as refusal:
        use(document)
    assert refusal.value.code == "sealed_secret_malformed"
    assert refusal.value.where == PATH
    assert refusal.value.hint


def test_a_file_may_be_64_levels_deep_and_no_more() -> None:
    def deep(levels: int) -> bytes:
        nested = b"[" * (levels - 1) + b"]" * (levels - 1)
        return HAND_MADE.replace(b"...\n", b"extra: " + nested + b"\n")

    assert set(read_values(deep(64))) == {"password", "user"}
    with pytest.raises(Stalled, match="64 levels") as refusal:
        read_values(deep(65))
    assert refusal.value.code == "sealed_secret_malformed"


@pytest.mark.parametrize("change", [(b"name: db", b"name: other"), (b"namespace: press", b"namespace: other")])
def test_nothing_is_put_into_the_file_of_another_secret(change: tuple[bytes, bytes]) -> None:
    with pytest.raises(Stalled) as refusal:
        put(HAND_MADE.replace(*change), a=value())
    assert refusal.value.code == "sealed_secret_malformed"


def test_the_refusal_of_a_file_quotes_nothing_of_it() -> None:
    secret = "marker-3141592"
    for document in (f"kind: Secret\nstringData: {{a: {secret}}}", f"a: '{secret}", f"{secret}: [", f"a: *{secret}"):
        with pytest.raises(Stalled) as refusal:
            read_values(document.encode())
        assert secret not in f"{refusal.value} {refusal.value.hint} {refusal.value.where}"


def test_removed_keys_take_their_record_with_them() -> None:
    document = remove_keys(put(a=value(), b=value("AQAB", OLD)), ["a"])
    assert document == put(b=value("AQAB", OLD))
    assert remove_keys(put(a=value(), b=value("AQAB", None, None)), ["a"]) == put(b=value("AQAB", None, None))


def test_the_file_goes_with_its_last_key() -> None:
    assert remove_keys(put(a=value(), b=value()), ["b", "a", "never-there"]) is None


def test_removing_what_is_not_there_changes_no_byte() -> None:
    assert remove_keys(HAND_MADE, ["never-there"]) == HAND_MADE


def test_strict_scope_has_no_annotation_and_wider_ones_stand_where_the_controller_looks() -> None:
    assert read_scope(put(a=value())) is Scope.STRICT
    for scope in (Scope.NAMESPACE_WIDE, Scope.CLUSTER_WIDE):
        document = put(None, scope, a=value())
        content = parsed(document)
        annotation = {f"sealedsecrets.bitnami.com/{scope}": "true"}
        assert read_scope(document) is scope
        assert content["metadata"]["annotations"].items() >= annotation.items()
        assert content["spec"]["template"]["metadata"]["annotations"] == {**annotation, MANAGED_ANNOTATION: "true"}


def test_a_key_of_another_scope_would_break_the_others_and_is_refused() -> None:
    document = put(None, Scope.NAMESPACE_WIDE, a=value(), b=value())
    with pytest.raises(Conflict) as refusal:
        put(document, a=value())
    assert refusal.value.code == "secret_scope_differs"
    assert put(document, a=value(), b=value("AQAB")) == put(a=value(), b=value("AQAB"))


@pytest.mark.parametrize(
    ("namespace", "name", "key", "code"),
    [
        ("../x", "db", "a", "namespace_invalid"),
        ("press", "../../x", "a", "secret_name_invalid"),
        ("press", "db", "a/b", "secret_key_invalid"),
    ],
)
def test_names_are_checked_before_anything_is_written(namespace: str, name: str, key: str, code: str) -> None:
    with pytest.raises(Invalid) as refusal:
        put_values(None, SecretReference(namespace, name), {key: value()})
    assert refusal.value.code == code


def test_all_keys_of_a_secret_share_one_mebibyte() -> None:
    half = value(envelope(SECRET_LIMIT // 2))
    document = put(a=half, b=half)
    assert total_plaintext_size(read_values(document)) == SECRET_LIMIT
    check_secret_size(read_values(document))
    with pytest.raises(TooLarge) as refusal:
        put(document, c=value(envelope(1)))
    assert refusal.value.code == "secret_too_large"
    assert total_plaintext_size(read_values(put(document, c=value(envelope(0))))) == SECRET_LIMIT
    assert total_plaintext_size(read_values(put(document, a=value(envelope(1))))) == SECRET_LIMIT // 2 + 1


def test_rubbish_in_a_file_is_not_in_the_way_of_its_repair() -> None:
    assert total_plaintext_size(read_values(HAND_MADE)) == 0
    repaired = put(HAND_MADE, password=value(envelope(5)), user=value(envelope(4)))
    assert total_plaintext_size(read_values(repaired)) == 9


def test_one_value_of_a_mebibyte_fits_into_a_file() -> None:
    document = put(a=value(envelope(SECRET_LIMIT)))
    assert len(document) < 1.5 * 1024 * 1024
    assert len(max(document.splitlines(), key=len)) > SECRET_LIMIT


def test_a_file_that_the_edge_could_not_store_is_refused() -> None:
    many_small = {f"key-{number}": value(envelope(0), None, None) for number in range(4000)}
    with pytest.raises(TooLarge, match="Its file") as refusal:
        put_all(None, many_small)
    assert refusal.value.code == "secret_too_large"


def test_more_annotations_than_kubernetes_stores_are_refused() -> None:
    long_keys = {f"{number:0253}": value("AQAA") for number in range(800)}
    with pytest.raises(TooLarge, match="annotations"):
        put_all(None, long_keys)


def test_limits_of_a_file_are_those_that_the_documents_state() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "crypto.md").read_text("utf-8").split())
    stated = re.search(
        r"at most (\d+) MiB \(Kubernetes' limit\).*"
        r" annotations (\d+) KiB, the whole file ([\d.]+) MiB less (\d+) KiB",
        page,
    )
    assert stated
    secret, annotations, file, less = map(float, stated.groups())
    assert secret * 1024 * 1024 == SECRET_LIMIT
    assert annotations * 1024 == ANNOTATIONS_LIMIT
    assert file * 1024 * 1024 - less * 1024 == DOCUMENT_LIMIT


@pytest.mark.parametrize("size", [4, 3 * SMALL_DOCUMENT])
def test_a_file_that_is_read_tried_and_committed_is_parsed_once(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def counted(document: bytes) -> dict[str, Any]:
        parsed.append(document)
        return load_document(document)

    monkeypatch.setattr(sealed_secret, "load_document", counted)
    before = put_values(None, SecretReference("press", "db"), {f"key-{uuid4()}": value("AgB1" * (size // 4))})
    for _ in range(2):
        assert "added" not in read_values(before)
        after = change_values(before, SecretReference("press", "db"), {"added": value("AgB2")})
        assert after is not None and "added" in read_values(after)
    assert parsed == [before, after], "and what one of them changes is not what the next one reads"
