"""Type, labels and annotations of a Secret: what is taken, what stays, and what comes of it in the file."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import yaml
from sealing_keys import NOW

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.secret_template import (
    ANNOTATIONS_BYTES,
    MOST_ANNOTATIONS,
    MOST_LABELS,
    REQUIRED_KEYS,
    TLS,
    SecretTemplate,
    TemplateChange,
    check_template_change,
)
from edgewright.errors import Conflict, EdgewrightError, Invalid
from edgewright.sealing import (
    SealedValue,
    ciphertext_digest,
    read_template,
    read_values,
    remove_keys,
    replace_values,
)
from edgewright.sealing import change_values as change_file

PAIR = ("tls.crt", "tls.key")
WEB = SecretReference("press", "web")
MANAGED = {"sealedsecrets.bitnami.com/managed": "true"}
MANAGED_LINE = b"sealedsecrets.bitnami.com/managed: 'true'\n"


def value(ciphertext: str = "AQAA", sealed_at: datetime = NOW) -> SealedValue:
    return SealedValue(ciphertext, "ab" * 32, sealed_at)


def change_values(
    document: bytes | None, template: TemplateChange | None = None, /, **changes: SealedValue | None
) -> bytes | None:
    named = {key.replace("_", "."): each for key, each in changes.items()}
    return change_file(document, WEB, named, template)


def sealed(template: TemplateChange | None = None, *keys: str) -> bytes:
    document = change_file(None, WEB, {key: value() for key in keys or PAIR}, template)
    assert document is not None
    return document


def template_in(document: bytes) -> Any:
    return yaml.safe_load(document)["spec"]["template"]


def test_type_labels_and_annotations_are_in_the_template_and_nowhere_else() -> None:
    document = sealed(TemplateChange(TLS, {"app.kubernetes.io/name": "web", "on": "y"}, {"note": "a: b\n# c"}))
    assert template_in(document) == {
        "type": TLS,
        "metadata": {
            "name": "web",
            "namespace": "press",
            "labels": {"app.kubernetes.io/name": "web", "on": "y"},
            "annotations": {"note": "a: b\n# c", **MANAGED},
        },
    }
    assert set(yaml.safe_load(document)["metadata"]) == {"name", "namespace", "annotations"}
    assert read_template(document) == SecretTemplate(
        TLS, {"app.kubernetes.io/name": "web", "on": "y"}, {"note": "a: b\n# c"}
    )


def test_a_secret_without_a_wish_is_opaque() -> None:
    assert sealed(None, "a") == sealed(TemplateChange(), "a")
    named = {"name": "web", "namespace": "press"}
    assert template_in(sealed(None, "a")) == {"type": "Opaque", "metadata": {**named, "annotations": MANAGED}}


@pytest.mark.parametrize(
    "change",
    [
        lambda file: change_values(file, k=value("AQAB")),
        lambda file: change_values(file, second=None),
        lambda file: change_values(file, TemplateChange(None, {"a": "1"})),
        lambda file: remove_keys(file, ["second"]),
        lambda file: replace_values(file, WEB, {"k": (ciphertext_digest("AQAA"), value("AQAC"))})[0],
    ],
)
def test_every_change_lets_the_controller_take_over_what_is_left_of_a_deleted_secret(
    change: Callable[[bytes], bytes | None],
) -> None:
    """Files of earlier versions lack the annotation. Nobody is shown it, for nobody may change it."""
    before = sealed(None, "k", "second").replace(b"      annotations:\n        " + MANAGED_LINE, b"")
    assert "annotations" not in template_in(before)["metadata"]
    after = change(before)
    assert after is not None and template_in(after)["metadata"]["annotations"] == MANAGED
    assert read_template(after).annotations == {}
    refused = after.replace(MANAGED_LINE, MANAGED_LINE.replace(b"true", b"false"))
    kept = change_values(refused, k=value("AQAD"))
    assert kept is not None and MANAGED_LINE not in kept, "what a person has put there stays"


def test_they_stay_whatever_happens_to_the_values() -> None:
    wanted = TemplateChange(TLS, {"app": "web"}, {"note": "kept"})
    expected = SecretTemplate(TLS, {"app": "web"}, {"note": "kept"})
    document = sealed(wanted)
    more = change_values(document, ca=value(), tls_crt=value("AQAB"))
    assert more is not None and read_template(more) == expected
    fewer = change_values(more, ca=None)
    assert fewer is not None and read_template(fewer) == expected
    assert set(read_values(fewer)) == set(PAIR)
    removed = remove_keys(more, ["ca"])
    assert removed is not None and read_template(removed) == expected
    resealed, gone = replace_values(document, WEB, {"tls.key": (ciphertext_digest("AQAA"), value("AQAC"))})
    assert resealed is not None and not gone and read_template(resealed) == expected


def test_changes_are_merged_and_null_takes_away() -> None:
    first = sealed(TemplateChange(None, {"a": "1", "b": "2"}, {"x": "1"}), "k")
    second = change_values(first, TemplateChange(None, {"b": None, "c": "3", "d": None}, {"x": None}), k=value())
    assert second is not None
    assert read_template(second) == SecretTemplate("Opaque", {"a": "1", "c": "3"}, {})
    assert template_in(second)["metadata"]["annotations"] == MANAGED


def test_what_others_have_in_the_template_stays() -> None:
    document = b"""
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: web, namespace: press}
spec:
  encryptedData: {k: AQAA}
  template:
    data: {url: "x"}
    immutable: false
    metadata: {labels: {theirs: "1"}, annotations: {sealedsecrets.bitnami.com/managed: "true"}, finalizers: [a]}
"""
    changed = change_values(document, TemplateChange(None, {"ours": "2"}), k=value())
    assert changed is not None
    assert template_in(changed) == {
        "data": {"url": "x"},
        "immutable": False,
        "type": "Opaque",
        "metadata": {
            "labels": {"ours": "2", "theirs": "1"},
            "annotations": {"sealedsecrets.bitnami.com/managed": "true"},
            "finalizers": ["a"],
        },
    }


def test_the_type_of_a_secret_that_is_there_cannot_be_changed() -> None:
    document = sealed(TemplateChange(TLS))
    assert change_values(document, TemplateChange(TLS), ca=value()) is not None
    for wish in ("Opaque", "kubernetes.io/ssh-auth"):
        with pytest.raises(Conflict) as refusal:
            change_values(document, TemplateChange(wish), ca=value())
        assert refusal.value.code == "secret_type_immutable"
        assert refusal.value.hint is not None and refusal.value.hint.startswith("Delete the Secret")
    gone = change_values(document, tls_crt=None, tls_key=None)
    assert gone is None
    assert read_template(sealed(TemplateChange("example.com/other"), "k")).type == "example.com/other"


@pytest.mark.parametrize("secret_type", REQUIRED_KEYS)
def test_a_type_is_refused_without_the_keys_that_it_needs(secret_type: str) -> None:
    groups = REQUIRED_KEYS[secret_type]
    whole = [group[-1] for group in groups]
    assert read_template(sealed(TemplateChange(secret_type), *whole)).type == secret_type
    for missing in whole:
        keys = {key for key in whole if key != missing} | {"other"}
        with pytest.raises(Invalid) as refusal:
            sealed(TemplateChange(secret_type), *keys)
        assert refusal.value.code == "secret_keys_missing"
        assert missing in refusal.value.detail
        with pytest.raises(Invalid) as refusal:
            change_file(sealed(TemplateChange(secret_type), *whole, "other"), WEB, {missing: None})
        assert refusal.value.code == "secret_keys_missing"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (TemplateChange("kubernetes.io/service-account-token"), "secret_type_invalid"),
        (TemplateChange("bootstrap.kubernetes.io/token"), "secret_type_invalid"),
        (TemplateChange(""), "secret_type_invalid"),
        (TemplateChange("a b"), "secret_type_invalid"),
        (TemplateChange("a" * 254), "secret_type_invalid"),
        (TemplateChange("Opaque\n"), "secret_type_invalid"),
        (TemplateChange("helm.sh/release.v1"), "secret_metadata_reserved"),
        (TemplateChange("Helm.sh/release.v1"), "secret_metadata_reserved"),
        (TemplateChange(labels={"": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"-a": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"a" * 64: "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"UPPER.com/a": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"a/b/c": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"/a": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={f"{'a' * 254}/a": "x"}), "secret_label_invalid"),
        (TemplateChange(labels={"a": "x" * 64}), "secret_label_invalid"),
        (TemplateChange(labels={"a": "x\n"}), "secret_label_invalid"),
        (TemplateChange(labels={"a": "no spaces"}), "secret_label_invalid"),
        (TemplateChange(labels={f"l{n}": "" for n in range(MOST_LABELS + 1)}), "secret_label_invalid"),
        (TemplateChange(annotations={"a b": "x"}), "secret_annotation_invalid"),
        (TemplateChange(annotations={"a": "\x00"}), "secret_annotation_invalid"),
        (TemplateChange(annotations={"a": "\ud800"}), "secret_annotation_invalid"),
        (TemplateChange(annotations={"a": "x" * ANNOTATIONS_BYTES}), "secret_annotation_invalid"),
        (TemplateChange(annotations={f"a{n}": "" for n in range(MOST_ANNOTATIONS + 1)}), "secret_annotation_invalid"),
        (TemplateChange(labels={"edgewright.dev/x": "1"}), "secret_metadata_reserved"),
        (
            TemplateChange(labels={"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}),
            "secret_metadata_reserved",
        ),
        (TemplateChange(labels={"kustomize.toolkit.fluxcd.io/name": None}), "secret_metadata_reserved"),
        (TemplateChange(annotations={"kustomize.toolkit.fluxcd.io/prune": "disabled"}), "secret_metadata_reserved"),
        (TemplateChange(annotations={"meta.helm.sh/release-name": "x"}), "secret_metadata_reserved"),
        (TemplateChange(annotations={"helm.sh/resource-policy": "keep"}), "secret_metadata_reserved"),
        (
            TemplateChange(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
            "secret_metadata_reserved",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else str(case)[:60],
)
def test_what_kubernetes_would_refuse_or_somebody_else_owns_is_refused(change: TemplateChange, code: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_template_change(change)
    assert refusal.value.code == code


def test_what_kubernetes_takes_is_taken() -> None:
    change = TemplateChange(
        "example.com/My_Type.v1",
        {"a": "", "A.b_c-d": "Z" * 63, f"{'a' * 63}.example.com/x": "1.2", "notfluxcd.io/x": "1", "gone": None},
        {"example.com/json": '{"ü": "\U0001f600\n\t"}', "gone": None},
    )
    assert check_template_change(change) is change
    document = sealed(change, "k")
    assert read_template(document).annotations == {"example.com/json": '{"ü": "\U0001f600\n\t"}'}


def test_small_changes_do_not_add_up_beyond_the_limits() -> None:
    document = sealed(TemplateChange(None, {f"l{n}": "" for n in range(MOST_LABELS)}, {"a": "x" * 40_000}), "k")
    for change in (TemplateChange(labels={"more": ""}), TemplateChange(annotations={"b": "x" * 40_000})):
        with pytest.raises(EdgewrightError) as refusal:
            change_values(document, change, k=value())
        assert refusal.value.code in {"secret_label_invalid", "secret_annotation_invalid"}
    replaced = change_values(document, TemplateChange(None, {"l0": None, "more": ""}), k=value())
    assert replaced is not None and len(read_template(replaced).labels) == MOST_LABELS
