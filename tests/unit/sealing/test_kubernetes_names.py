from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.kubernetes_names import (
    OtherText,
    SecretKey,
    SecretPlace,
    SecretReference,
    check_namespace,
    check_secret_key,
    check_secret_name,
    check_stored_name,
    secret_place,
)
from edgewright.errors import Invalid

Check = Callable[[str], str]

NEVER = [
    "",
    " ",
    "a b",
    "a/b",
    "..",
    ".",
    "../a",
    "a\n",
    "\na",
    "a\0",
    "a%2fb",
    "a\\b",
    "\N{CYRILLIC SMALL LETTER A}",
    "٣",
]


def code_of_refusal(check: Check, name: str) -> str:
    with pytest.raises(Invalid) as refusal:
        check(name)
    assert refusal.value.hint
    assert not name or len(name) < 3 or name not in refusal.value.detail
    return refusal.value.code


@pytest.mark.parametrize("name", ["a", "0", "default", "kube-system", "a-0", "a" * 63])
def test_namespaces_of_kubernetes_are_accepted(name: str) -> None:
    assert check_namespace(name) == name


@pytest.mark.parametrize("name", [*NEVER, "A", "a.b", "-a", "a-", "a_b", "a" * 64])
def test_other_namespaces_are_refused(name: str) -> None:
    assert code_of_refusal(check_namespace, name) == "namespace_invalid"


@pytest.mark.parametrize("name", ["a", "db", "a.b", "a-b.c-0", "0.0", "a" * 250, ".".join(["a" * 60] * 4)])
def test_secret_names_of_kubernetes_are_accepted(name: str) -> None:
    assert check_secret_name(name) == name


@pytest.mark.parametrize("name", [*NEVER, "A", "a..b", ".a", "a.", "-a", "a-", "a.-b", "a-.b", "a_b", "a" * 254])
def test_other_secret_names_are_refused(name: str) -> None:
    assert code_of_refusal(check_secret_name, name) == "secret_name_invalid"


@pytest.mark.parametrize("length", [251, 253])
def test_a_name_whose_file_no_edge_could_check_out_is_refused(length: int) -> None:
    assert code_of_refusal(check_secret_name, "a" * length) == "secret_name_invalid"
    assert len(SecretReference("a", "a" * 250).path.rpartition("/")[2].encode()) == 255


@pytest.mark.parametrize("key", ["a", "A", "_", "-", "a.b", ".netrc", "tls.crt", "A_B-c.0", "a..b", "a" * 253])
def test_keys_of_kubernetes_are_accepted(key: str) -> None:
    assert check_secret_key(key) == key


@pytest.mark.parametrize("key", [*NEVER, "..a", "...", "a:b", "a" * 254])
def test_other_keys_are_refused(key: str) -> None:
    assert code_of_refusal(check_secret_key, key) == "secret_key_invalid"


def test_the_path_is_the_one_that_existing_clusters_use() -> None:
    assert SecretReference("fplus-edge", "my-secret").path == "edo/secrets/fplus-edge/my-secret.yaml"


def test_as_text_a_value_is_named_by_namespace_name_and_key() -> None:
    key = SecretKey("line-1", "db", "password")
    assert (str(key), str(key.secret), key.secret.secret) == ("line-1/db/password", "line-1/db", key.secret)


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (SecretKey("Line", "db", "k"), "namespace_invalid"),
        (SecretKey("line", "../db", "k"), "secret_name_invalid"),
        (SecretKey("line", "db", "../k"), "secret_key_invalid"),
        (SecretReference("line/", "db"), "namespace_invalid"),
        (SecretReference("line", "DB"), "secret_name_invalid"),
    ],
)
def test_a_place_that_kubernetes_would_refuse_is_refused(place: SecretPlace, code: str) -> None:
    with pytest.raises(Invalid) as refusal:
        place.check()
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("line/db", SecretReference("line", "db")),
        ("line/db/tls.key", SecretKey("line", "db", "tls.key")),
        ("line/db/a/b", SecretKey("line", "db", "a/b")),  # as somebody has put it into a file
        ("line/db/", SecretKey("line", "db", "")),
        ("/", SecretReference("", "")),
        ("line", OtherText("line")),
        ("", OtherText("")),
    ],
)
def test_a_place_is_read_from_its_text(text: str, place: SecretPlace | OtherText) -> None:
    assert secret_place(text) == place


@given(st.text() | st.text(alphabet="a/-"))
def test_a_place_that_was_read_from_a_text_has_that_text(text: str) -> None:
    assert str(secret_place(text)) == text


def test_a_place_that_kubernetes_takes_is_returned_unchanged() -> None:
    assert SecretKey("line", "db", "tls.key").check() == SecretKey("line", "db", "tls.key")
    assert SecretReference("line", "db").check() == SecretReference("line", "db")


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_name_leads_out_of_the_folder(namespace: str, name: str) -> None:
    try:
        path = SecretReference(namespace, name).path
    except Invalid:
        return
    assert path.split("/") == ["edo", "secrets", namespace, f"{name}.yaml"]
    assert ".." not in path.split("/")


def test_a_name_whose_file_flux_takes_for_instructions_is_not_stored() -> None:
    assert code_of_refusal(check_stored_name, "kustomization") == "secret_name_invalid"
    assert check_secret_name("kustomization") == "kustomization", "what is there already can be deleted"
    for name in ("kustomization.yaml", "kustomization-2", "db"):
        assert check_stored_name(name) == name
