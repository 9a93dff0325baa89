"""Which objects a file names, however it is written, and what of it is not read."""

import json

import pytest

from edgewright.adapters.git.yaml_objects import Budget, NamedObject, TooLong, named_objects
from edgewright.domain.own_objects import ObjectKey

SPACE = ObjectKey("", "Namespace", "", "plant")
POD = ObjectKey("apps", "Deployment", "plant", "agent")
SPACE_YAML = "apiVersion: v1\nkind: Namespace\nmetadata: {name: plant}\n"
POD_YAML = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  namespace: plant\n  name: agent\n"
SPACE_JSON = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plant"}}


def named(text: str | bytes, *names: str, seconds: float = 10.0) -> list[NamedObject]:
    content = text if isinstance(text, bytes) else text.encode()
    return list(named_objects(content, names or ("plant",), Budget(seconds)))


def keys(text: str | bytes) -> list[ObjectKey]:
    return [each.key for each in named(text)]


@pytest.mark.parametrize(
    "text",
    [
        SPACE_YAML,
        f"\ufeff{SPACE_YAML}",
        SPACE_YAML.replace("\n", "\r\n"),
        f"# a comment\n--- # another\n{SPACE_YAML}...\n",
        f"%YAML 1.1\n---\n{SPACE_YAML}",
        'kind: \'Namespace\'\n"apiVersion": "v1"\nmetadata:\n  ? name\n  : !!str plant\n',
        "{apiVersion: v1, kind: Namespace, metadata: {name: plant}}",
        json.dumps(SPACE_JSON),
        json.dumps(SPACE_JSON, indent="\t"),
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: &n plant, labels: {own: *n}}\nspec: {a: [1, {b: 2}]}\n",
        "x: {deep: [{y: &n plant}]}\napiVersion: v1\nkind: Namespace\nmetadata: {name: *n}\n",
        "x: &m {name: plant}\napiVersion: v1\nkind: Namespace\nmetadata: *m\n",
        "x: &m {name: plant}\napiVersion: v1\nkind: Namespace\nmetadata: {<<: *m, labels: {}}\n",
        "x: &m {name: plant}\napiVersion: v1\nkind: Namespace\nmetadata: {<<: [{labels: {}}, *m]}\n",
        "? {a: b}\n: c\n? [d]\n: e\napiVersion: v1\nkind: Namespace\nmetadata: {name: plant}\n",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: plant, namespace: ~}\n",
    ],
)
def test_an_object_is_found_however_it_is_written(text: str) -> None:
    assert keys(text) == [SPACE]


def test_all_documents_and_lists_are_read() -> None:
    assert keys(f"{SPACE_YAML}---\n{POD_YAML}---\n---\n") == [SPACE, POD]
    listed = {"apiVersion": "v1", "kind": "List", "items": [SPACE_JSON, {"kind": "List", "items": [SPACE_JSON]}]}
    assert keys(json.dumps(listed)) == [SPACE, SPACE]
    typed = {"apiVersion": "v1", "kind": "NamespaceList", "items": [{"metadata": {"name": "plant"}}]}
    assert keys(json.dumps(typed)) == [SPACE]


@pytest.mark.parametrize(
    "text",
    [
        "kind: [unclosed\nname: plant\n",
        "plant: *nowhere\n",
        "a plant\n",
        "- plant\n",
        "kind: Namespace\nmetadata: plant\n",
        "kind: Namespace\nmetadata: {name: [plant]}\n",
        "&a [*a, plant]\n",
        "plant: &a {<<: *a}\nmetadata: {<<: *a}\nkind: x\n",
        "\0plant",
        "",
    ],
)
def test_what_is_no_manifest_names_nothing(text: str) -> None:
    assert keys(text) == []


def test_a_broken_document_hides_no_other() -> None:
    assert keys(f'plant: [\n---\n{SPACE_YAML}---\nplant: "\n') == [SPACE]
    assert keys(b"plant: \xff\xfe\n---\n" + SPACE_YAML.encode()) == [SPACE]


def test_names_inside_of_other_texts_are_no_objects() -> None:
    inner = "".join(f"    {line}\n" for line in SPACE_YAML.splitlines())
    assert keys(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x, namespace: y}}\ndata:\n  a: |\n{inner}") == [
        ObjectKey("", "ConfigMap", "y", "x")
    ]


def test_documents_that_have_no_name_of_ours_in_them_are_read_over() -> None:
    assert named(f"{SPACE_YAML}---\n{POD_YAML}", "agent") == [NamedObject(POD, unpruned=False)]


@pytest.mark.parametrize(("value", "unpruned"), [("disabled", True), ("Disabled", True), ("enabled", False)])
def test_it_says_whether_flux_is_to_leave_it(value: str, *, unpruned: bool) -> None:
    noted = f"metadata: {{name: plant, annotations: {{kustomize.toolkit.fluxcd.io/prune: {value}}}}}"
    assert named(f"apiVersion: v1\nkind: Namespace\n{noted}\n") == [NamedObject(SPACE, unpruned)]


def test_aliases_are_not_expanded() -> None:
    layers = "".join(f"a{n}: &a{n} {{kind: List, items: [{', '.join([f'*a{n - 1}'] * 30)}]}}\n" for n in range(1, 30))
    bomb = f"a0: &a0 {json.dumps(SPACE_JSON)}\n{layers}kind: List\nitems: [*a29]\n"
    assert keys(bomb) == [SPACE]


@pytest.mark.parametrize("text", ["[" * 200_000 + "plant", "plant: " + "{a: " * 200_000])
def test_what_takes_too_long_is_given_up(text: str) -> None:
    with pytest.raises(TooLong):
        named(text, seconds=0.5)
