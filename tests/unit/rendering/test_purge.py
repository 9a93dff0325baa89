"""The rights to purge: as few as can be, and a part of Flux's that holds up no other."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

import edgewright.agent
from edgewright.agent import purging
from edgewright.agent.leaving import is_empty
from edgewright.agent.observation import Kustomized
from edgewright.domain.rendering import READ_BY_PURGE, purge_files, render_repository, workload_removal
from edgewright.domain.rendering.removal import PART, RIGHTS

HEAD = "a" * 40


def rendered(render_input: Any, **changes: Any) -> dict[str, list[dict[str, Any]]]:
    spec = render_input(**changes)
    files = {path: one for path, one in render_repository(spec).items() if path in READ_BY_PURGE}
    made = purge_files(files, spec.uuid, spec.namespace)
    return {path: list(yaml.safe_load_all(content)) for path, content in made.items()}


def test_the_rights_are_to_delete_one_kind_and_secrets_of_one_namespace(render_input: Any) -> None:
    rights = rendered(render_input)["edo/purge/rights.yaml"]
    assert {(one["kind"], one["metadata"].get("namespace")) for one in rights} == {
        *(("ClusterRole", None), ("ClusterRoleBinding", None)),
        *(("Role", "kube-system"), ("RoleBinding", "kube-system")),
    }
    rules = [rule for one in rights for rule in one.get("rules", ())]
    assert rules == [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resourceNames": ["sealedsecrets.bitnami.com"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["delete"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["delete"]},
    ]
    account = {"kind": "ServiceAccount", "name": "edgewright-detach", "namespace": "edgewright"}
    assert [one["subjects"] for one in rights if "subjects" in one] == [[account], [account]]


def test_keys_are_where_the_values_of_the_cluster_have_sealed_secrets(render_input: Any) -> None:
    rights = rendered(render_input, values={"sealed-secrets": {"namespace": "vault"}})["edo/purge/rights.yaml"]
    assert {one["metadata"].get("namespace", "vault") for one in rights} == {"vault"}


def test_no_rights_where_the_release_brings_no_sealed_secrets(render_input: Any) -> None:
    assert rendered(render_input, values={"sealed-secrets": {"enabled": False}}) == {}


def test_no_rights_without_a_source_to_copy() -> None:
    assert purge_files({}, uuid4(), "edgewright") == {}


def test_what_applies_them_reads_the_same_repository_and_goes_with_the_cluster(render_input: Any) -> None:
    spec = render_input()
    source, driver = rendered(render_input)["edo/cluster/purge.yaml"]
    assert (source["kind"], source["spec"]["url"]) == ("GitRepository", spec.url_self)
    assert source["spec"]["secretRef"] == {"name": "flux-secrets"}
    assert driver["spec"]["prune"] is True and driver["spec"]["path"] == "./edo/purge"
    for one in (source, driver):
        assert one["metadata"]["labels"] == {"edgewright.dev/cluster": str(spec.uuid)}
        assert "annotations" not in one["metadata"], "Flux takes it away again"


def test_an_agent_of_any_version_says_empty_although_the_rights_are_there() -> None:
    own = Kustomized(name="by-hand", path="by-hand", source="self-link", applied=f"main@sha1:{HEAD}", holds=0)
    purge = Kustomized(name=PART, path="./edo/purge", source=PART, applied=None, holds=4)
    assert is_empty([own, purge], HEAD)


def test_agent_and_centre_use_the_same_names() -> None:
    assert (purging.PART, purging.RIGHTS) == (PART, RIGHTS)
    permanent = Path(edgewright.agent.__file__).with_name("detach.yaml").read_text()
    [rule] = [
        rule
        for one in yaml.safe_load_all(permanent)
        for rule in one.get("rules", ())
        if RIGHTS in rule.get("resourceNames", ())
    ]
    assert rule["verbs"] == ["delete"], "the installation takes these rights away and gives none of them"
    assert "customresourcedefinitions" not in permanent


def test_a_second_delivery_brings_the_same_rights(render_input: Any) -> None:
    """The removal commit may be made again on its own outcome: an attempt died before it told of it."""
    sealing = {"sealed-secrets": {"namespace": "sealing"}}
    spec = render_input(values=sealing)
    files = dict(render_repository(spec))
    commits = []
    for _ in range(2):
        read = {path: files[path] for path in READ_BY_PURGE if path in files}
        changes = {**workload_removal(sorted(files)), **purge_files(read, spec.uuid, spec.namespace)}
        files = {path: one for path, one in {**files, **changes}.items() if one is not None}
        commits.append(files)
    assert commits[0] == commits[1]
    assert b"namespace: sealing" in commits[1]["edo/purge/rights.yaml"]
