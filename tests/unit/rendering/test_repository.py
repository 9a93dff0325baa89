"""The generated files of a driving repository."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgewright.domain.rendering import (
    RENDERER_VERSION,
    RenderInput,
    render_changes,
    render_digest,
    render_repository,
)
from edgewright.domain.templates import TemplateError

GOLDEN = Path(__file__).parent / "golden"


def documents(files: Any, path: str) -> list[Any]:
    return list(yaml.safe_load_all(files[path]))


def with_file(spec: Any, file: str, manifests: Any) -> dict[str, Any]:
    return {**spec.flux_template, file: manifests}


def refusal_of(spec: Any) -> TemplateError:
    with pytest.raises(TemplateError) as refusal:
        render_repository(spec)
    assert refusal.value.detail.startswith(str(refusal.value.where))
    return refusal.value


def test_a_cluster_gets_exactly_the_golden_files(render_input: Any) -> None:
    """Other bytes are a commit in every repository there is: raise RENDERER_VERSION, then renew the files."""
    golden = {path.relative_to(GOLDEN).as_posix(): path.read_bytes() for path in GOLDEN.rglob("*") if path.is_file()}
    rendered = render_repository(render_input())
    assert rendered == golden
    assert RENDERER_VERSION == 3


def test_a_bare_cluster_gets_all_but_flux_itself(render_input: Any) -> None:
    usual, bare = render_repository(render_input()), render_repository(render_input(bare=True))
    assert set(usual) - set(bare) == {"edo/cluster/flux-system.yaml"}
    assert all(usual[path] == content for path, content in bare.items())


def test_a_broken_file_that_a_bare_cluster_does_not_get_does_not_block_it(render_input: Any) -> None:
    spec = render_input()
    broken = with_file(spec, "flux-system.yaml", [{"apiVersion": "{{ unknown }}"}])
    render_repository(render_input(bare=True, flux_template=broken))
    refusal_of(render_input(flux_template=broken))


def test_every_folder_that_flux_reads_exists_from_the_first_commit(render_input: Any) -> None:
    files = render_repository(render_input())
    read = [
        manifest["spec"]["path"]
        for path in files
        if path.endswith(".yaml")
        for manifest in documents(files, path)
        if manifest["kind"] == "Kustomization" and manifest["spec"]["sourceRef"]["name"] == "self-link"
    ]
    assert sorted(read) == ["./by-hand", "./edo/cluster"]
    for folder in read:
        assert any(path.startswith(folder.removeprefix("./") + "/") for path in files)


def test_folders_without_manifests_hold_nothing_that_flux_takes_for_one(render_input: Any) -> None:
    for path in render_repository(render_input()):
        if not path.startswith("edo/cluster/"):
            assert not path.endswith((".yaml", ".yml"))


def test_the_helm_release_says_which_cluster_it_is_and_the_entry_has_the_last_word(render_input: Any) -> None:
    spec = render_input(values={"cluster": {"organisation": "Other", "site": None}, "extra": ["{{ name }}"]})
    [release] = documents(render_repository(spec), "edo/cluster/edge-cluster.yaml")
    assert release["metadata"]["name"] == f"edge-cluster-{spec.uuid}"
    assert release["metadata"]["namespace"] == "edgewright"
    assert release["spec"]["values"] == {
        "cluster": {"name": "press-shop", "uuid": str(spec.uuid), "organisation": "Other", "site": None},
        "extra": ["{{ name }}"],
        "sealed-secrets": {"enabled": True},
    }


def test_the_namespace_is_set_where_a_flux_object_says_none(render_input: Any) -> None:
    spec = render_input()
    release = copy.deepcopy(dict(spec.helm_release_template))
    del release["template"]["metadata"]["namespace"]
    source = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket", "metadata": {"name": "b"}}
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "line-1"}}
    elsewhere = {**source, "metadata": {"name": "b", "namespace": "elsewhere"}}
    files = render_repository(
        render_input(
            helm_release_template=release, flux_template=with_file(spec, "more.yaml", [source, other, elsewhere])
        )
    )
    assert documents(files, "edo/cluster/edge-cluster.yaml")[0]["metadata"]["namespace"] == "edgewright"
    bucket, namespace, bucket_elsewhere = documents(files, "edo/cluster/more.yaml")
    assert bucket["metadata"]["namespace"] == "edgewright"
    assert "namespace" not in namespace["metadata"]
    assert bucket_elsewhere["metadata"]["namespace"] == "elsewhere"


def test_each_document_starts_with_dashes(render_input: Any) -> None:
    self_link = render_repository(render_input())["edo/cluster/self-link.yaml"].decode()
    assert self_link.startswith("---\n")
    assert self_link.count("---\n") == 2
    assert "\r" not in self_link


def shuffled(value: Any) -> Any:
    """The same JSON with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(element) for element in value] if isinstance(value, list) else value


def test_the_order_in_which_a_database_stores_keys_changes_no_byte(render_input: Any) -> None:
    spec = render_input()
    same = render_input(
        **{
            field: shuffled(getattr(spec, field))
            for field in ("values", "chart_template", "helm_release_template", "flux_template")
        }
    )
    assert render_repository(same) == render_repository(spec)
    assert render_digest(same) == render_digest(spec)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "other"),
        ("namespace", "other"),
        ("bare", True),
        ("values", {}),
        ("url_self", "https://other/uuid/1"),
        ("url_helm", "https://other/uuid/2"),
        ("chart_template", {"chart": "other", "values": {}}),
        ("helm_release_template", {}),
        ("flux_template", {}),
    ],
)
def test_the_digest_tells_of_every_input(render_input: Any, field: str, value: Any) -> None:
    assert render_digest(render_input(**{field: value})) != render_digest(render_input())


def test_the_digest_is_a_stable_sha_256(render_input: Any) -> None:
    digest = render_digest(render_input())
    assert len(bytes.fromhex(digest)) == 32
    assert digest == render_digest(render_input(values=json.loads(json.dumps(render_input().values))))


def test_a_number_that_json_does_not_have_is_a_template_error_and_no_crash(render_input: Any) -> None:
    spec = render_input(values={"x": math.nan})
    assert refusal_of(spec).where == "HelmRelease template#/template/spec/values/x"
    with pytest.raises(TemplateError):
        render_digest(spec)


GOOD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}


@pytest.mark.parametrize(
    ("manifests", "where", "reason"),
    [
        ("text", "", "list"),
        ([], "", "at least one"),
        (["{{ name }}"], "#/0", "object"),
        ([GOOD, {**GOOD, "kind": ""}], "#/1/kind", "text"),
        ([{"kind": "ConfigMap", "metadata": {"name": "x"}}], "#/0/apiVersion", "text"),
        ([{**GOOD, "metadata": {}}], "#/0/metadata/name", "text"),
        ([{**GOOD, "metadata": {"name": 7}}], "#/0/metadata/name", "text"),
        ([{**GOOD, "metadata": {"name": "x", "namespace": None}}], "#/0/metadata/namespace", "text"),
        ([{**GOOD, "metadata": "x"}], "#/0/metadata", "object"),
        ([{**GOOD, "data": {"a": ["{{ url.other }}"]}}], "#/0/data/a/0", "url.other"),
        ([{**GOOD, "data": {"a": "bell\x7f"}}], "#/0/data/a", "U+007F"),
        ([{**GOOD, "data": {"a": "\ud800"}}], "#/0/data/a", "U+D800"),
        ([{**GOOD, "data": {"<<": "x"}}], "#/0/data/<<", "<<"),
        ([GOOD, GOOD], "#/1", "already"),
    ],
)
def test_a_bad_manifest_is_refused_with_file_path_and_reason(
    render_input: Any, manifests: Any, where: str, reason: str
) -> None:
    spec = render_input()
    refusal = refusal_of(render_input(flux_template=with_file(spec, "bad.yaml", manifests)))
    assert refusal.where == f"Flux template bad.yaml{where}"
    assert reason in refusal.reason
    assert refusal.code == "template_invalid"


def test_one_object_in_two_files_is_refused_and_names_both(render_input: Any) -> None:
    spec = render_input()
    refusal = refusal_of(render_input(flux_template=with_file(spec, "z.yaml", ["{{ helm }}"])))
    assert "z.yaml" in refusal.detail
    assert "edge-cluster.yaml" in refusal.detail


@pytest.mark.parametrize(
    "file",
    [
        "../x.yaml",
        "a/b.yaml",
        "x.yml",
        "x",
        ".yaml",
        ".x.yaml",
        "a..yaml",
        "x.yaml\n",
        "x y.yaml",
        "-x.yaml",
        "x" * 200 + ".yaml",
        "kustomization.yaml",
        "Kustomization.yaml",
        "Self-Link.yaml",
    ],
)
def test_a_file_name_that_could_leave_or_upset_the_folder_is_refused(render_input: Any, file: str) -> None:
    refusal_of(render_input(flux_template=with_file(render_input(), file, [GOOD])))


@pytest.mark.parametrize("template", [{}, {"x.yaml": [GOOD]}, [], None])
def test_a_flux_template_without_a_self_link_is_refused(render_input: Any, template: Any) -> None:
    assert "self-link.yaml" in refusal_of(render_input(flux_template=template)).detail


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"chart": "charts/broker"}, "#/prefix"),
        ({"chart": "charts/broker", "prefix": "Bad_Prefix"}, "#/prefix"),
        ({"chart": "../broker", "prefix": "b"}, "#/chart"),
        ({"chart": "/etc", "prefix": "b"}, "#/chart"),
        ({"chart": ""}, "#/chart"),
        ({"chart": 7}, "#/chart"),
        ({"source": "Other Source"}, "#/source"),
        ({"values": []}, "#/values"),
        ({"values": {"a": "{{ chart }}"}}, "#/values/a"),
    ],
)
def test_a_bad_chart_template_is_refused_with_path_and_reason(
    render_input: Any, change: dict[str, Any], where: str
) -> None:
    spec = render_input()
    refusal = refusal_of(render_input(chart_template={**spec.chart_template, **change}))
    assert refusal.where == f"Helm chart template{where}"


def test_a_chart_in_a_folder_of_another_source_needs_a_prefix_and_then_works(render_input: Any) -> None:
    chart = {"chart": "charts/broker", "prefix": "broker", "source": "site-charts", "values": {}}
    [release] = documents(render_repository(render_input(chart_template=chart)), "edo/cluster/edge-cluster.yaml")
    assert release["spec"]["chart"]["spec"]["chart"] == "charts/broker"
    assert release["spec"]["chart"]["spec"]["sourceRef"]["name"] == "site-charts"


@pytest.mark.parametrize("missing", ["chart", "values"])
def test_a_chart_template_without_a_part_is_refused(render_input: Any, missing: str) -> None:
    template = {key: value for key, value in render_input().chart_template.items() if key != missing}
    assert f"'{missing}'" in refusal_of(render_input(chart_template=template)).detail


@pytest.mark.parametrize("template", [{}, {"template": "text"}, {"template": {"apiVersion": "v1"}}])
def test_a_bad_helm_release_template_is_refused_by_its_own_name(render_input: Any, template: Any) -> None:
    assert str(refusal_of(render_input(helm_release_template=template)).where).startswith("HelmRelease template")


def test_values_without_bounds_are_refused(render_input: Any) -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert "configuration entry" in str(refusal_of(render_input(values=deep)).where)


def test_the_first_commit_writes_every_file(render_input: Any) -> None:
    rendered = render_repository(render_input())
    assert render_changes(rendered, []) == rendered


def test_a_later_commit_drops_stale_files_and_leaves_secrets_and_hand_work_alone(render_input: Any) -> None:
    rendered = render_repository(render_input(bare=True))
    kept = ["edo/secrets/default/db.yaml", "by-hand/app.yaml", "edo/other/x.yaml", "LICENSE"]
    changes = render_changes(rendered, [*rendered, "edo/cluster/flux-system.yaml", *kept])
    assert changes["edo/cluster/flux-system.yaml"] is None
    assert not set(kept) & set(changes)
    assert {path for path, content in changes.items() if content is None} == {"edo/cluster/flux-system.yaml"}


def test_the_note_by_hand_is_the_owners_and_returns_only_to_an_empty_folder(render_input: Any) -> None:
    rendered = render_repository(render_input())
    assert "by-hand/README.md" not in render_changes(rendered, ["by-hand/app.yaml"])
    assert "by-hand/README.md" in render_changes(rendered, ["README.md"])


def test_the_input_cannot_be_changed(render_input: Any) -> None:
    spec: RenderInput = render_input()
    with pytest.raises(AttributeError):
        spec.name = "other"  # type: ignore[misc] # the promise under test
