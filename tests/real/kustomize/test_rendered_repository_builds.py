"""Every folder that Flux reads builds with the real kustomize, from the first commit to the removal.

Where a folder has no ``kustomization.yaml``, Flux's kustomize-controller generates one: it lists every YAML file
below the folder, or sets a placeholder namespace if there is none, because kustomize refuses an empty one.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from edgewright.domain import wellknown as wk
from edgewright.domain.default_entries import default_entries
from edgewright.domain.kubernetes_names import check_stored_name
from edgewright.domain.rendering import RenderInput, render_repository, workload_removal
from edgewright.domain.templates import TemplateError
from edgewright.errors import Invalid

pytestmark = [pytest.mark.real, pytest.mark.timeout(1900)]  # the first test may build kustomize

FOLDERS = ("edo/cluster", "edo/secrets", "by-hand")
CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: line-1}\n"


def rendered(*, bare: bool = False, **values: Any) -> dict[str, bytes]:
    bodies = {(entry.app, entry.object): entry.body for entry in default_entries("ACME")}
    spec = RenderInput(
        uuid=UUID("f59cc279-9125-4d36-a37f-d9fcc13ba0c4"),
        name="08",
        namespace="edgewright",
        bare=bare,
        values=values,
        chart_template=bodies[wk.APP_HELM_CHART_TEMPLATE, wk.OBJECT_DEFAULT_CHART],
        helm_release_template=bodies[wk.APP_KUBERNETES_TEMPLATE, wk.OBJECT_HELM_RELEASE_TEMPLATE],
        flux_template=bodies[wk.APP_FLUX_TEMPLATE, wk.OBJECT_FLUX_TEMPLATE],
        url_self="https://centre.example/uuid/1",
        url_helm="https://centre.example/uuid/2",
    )
    return dict(render_repository(spec))


def checked_out(files: Mapping[str, bytes], root: Path) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def build(kustomize: Path, folder: Path) -> list[dict[str, Any]]:
    """What kustomize makes of a folder; scalars as the text that kustomize wrote."""
    manifests = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
    generated = {"resources": manifests} if manifests else {"namespace": "_placeholder"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(generated))
    done = subprocess.run([kustomize, "build", folder], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    loaded = yaml.load_all(done.stdout, yaml.BaseLoader)
    return [manifest for manifest in loaded if manifest]


@pytest.mark.parametrize("bare", [False, True])
def test_each_folder_of_a_new_repository_builds(kustomize: Path, tmp_path: Path, bare: bool) -> None:
    root = checked_out(rendered(bare=bare), tmp_path)
    built = {folder: build(kustomize, root / folder) for folder in FOLDERS}
    kinds = sorted(manifest["kind"] for manifest in built["edo/cluster"])
    kustomizations = ["Kustomization"] * (2 if bare else 3)
    assert kinds == ["GitRepository", "GitRepository", "HelmRelease", *kustomizations]
    assert built["edo/secrets"] == []
    assert built["by-hand"] == []


def test_a_clone_builds_as_the_documentation_says(kustomize: Path, tmp_path: Path) -> None:
    """No repository has a kustomization.yaml: Flux would keep to it and ignore what it does not name."""
    files = {**rendered(), "by-hand/line/mine.yaml": CONFIG_MAP}
    assert not [path for path in files if path.endswith("kustomization.yaml")]
    root = checked_out(files, tmp_path)
    for folder, kind in (("by-hand", "ConfigMap"), ("edo/cluster", "HelmRelease")):
        create: list[str | Path] = [kustomize, "create", "--autodetect", "--recursive"]
        subprocess.run(create, cwd=root / folder, capture_output=True, timeout=60, check=True)
        done = subprocess.run(
            [kustomize, "build", "."], cwd=root / folder, capture_output=True, timeout=60, check=True
        )
        assert kind in [manifest["kind"] for manifest in yaml.safe_load_all(done.stdout)]


@pytest.mark.parametrize(
    ("listed", "said"),
    [("resources: [mine.yaml]\n", None), ("resources: [mine.yaml, pushed.yaml, gone.yaml]\n", "gone.yaml")],
)
def test_a_kustomization_that_is_not_the_folders_hides_a_file_or_stops_all(
    kustomize: Path, tmp_path: Path, listed: str, said: str | None
) -> None:
    """Why there is none: ADR 19."""
    pushed = CONFIG_MAP.replace(b"mine", b"pushed")
    root = checked_out({"mine.yaml": CONFIG_MAP, "pushed.yaml": pushed}, tmp_path)
    (root / "kustomization.yaml").write_text(listed)
    done = subprocess.run([kustomize, "build", root], capture_output=True, timeout=60, check=False)
    if said is None:
        built = [each["metadata"]["name"] for each in yaml.safe_load_all(done.stdout)]
        assert (done.returncode, built, done.stderr) == (0, ["mine"], b""), "it says nothing of the other one"
    else:
        assert done.returncode != 0 and said in done.stderr.decode()


def test_a_secret_that_is_called_as_the_kustomization_would_stop_its_namespace(
    kustomize: Path, tmp_path: Path
) -> None:
    """Why that name is refused."""
    sealed = (
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: NAME}\nspec: {encryptedData: {}}\n"
    )
    for name in ("db", "kustomization"):
        (tmp_path / f"{name}.yaml").write_text(sealed.replace("NAME", name))
    done = subprocess.run([kustomize, "build", tmp_path], capture_output=True, timeout=60, check=False)
    assert done.returncode != 0 and "invalid Kustomization" in done.stderr.decode()
    with pytest.raises(Invalid):
        check_stored_name("kustomization")


def test_after_the_removal_commit_the_drivers_are_left_and_nothing_else(kustomize: Path, tmp_path: Path) -> None:
    files = {**rendered(), "by-hand/mine.yaml": CONFIG_MAP, "edo/cluster/extra.yaml": CONFIG_MAP}
    before = checked_out(files, tmp_path / "before")
    assert [manifest["kind"] for manifest in build(kustomize, before / "by-hand")] == ["ConfigMap"]
    for path, content in workload_removal(list(files)).items():
        files.pop(path, None)
        if content is not None:
            files[path] = content
    after = checked_out(files, tmp_path / "after")
    assert build(kustomize, after / "by-hand") == []
    assert "ConfigMap" not in {manifest["kind"] for manifest in build(kustomize, after / "edo/cluster")}


def test_kustomize_reads_the_text_that_was_meant(kustomize: Path, tmp_path: Path) -> None:
    """``1e5``, ``08`` and ``y`` are where YAML readers differ; a number here breaks a chart there."""
    words = ["08", "1e5", "y", "no", "0x1F", "1:30", "2001-12-14", "~", "", "=", "<<", " a ", "a: b", "a #b", "- a"]
    words += ["a\nb\n", " a\nb", "a \nb", "a\r\nb", "\t", "é😀", "\u2028", "\ufeff", "\x00", "{{ x }}", "${x}"]
    values: dict[str, Any] = {"words": words, **{f"key {word}": word for word in words}}
    folder = checked_out(rendered(**values), tmp_path) / "edo/cluster"
    [release] = [manifest for manifest in build(kustomize, folder) if manifest["kind"] == "HelmRelease"]
    assert release["spec"]["values"]["words"] == words
    assert {key: release["spec"]["values"][key] for key in values} == values
    assert release["spec"]["values"]["cluster"]["name"] == "08"


@pytest.mark.parametrize("text", ["\x7f", "\x9f", "\ud800", "\uffff"])
def test_what_the_renderer_refuses_is_what_kustomize_refuses(kustomize: Path, tmp_path: Path, text: str) -> None:
    """Written as an escape here, because libyaml itself refuses to write a lone surrogate."""
    with pytest.raises(TemplateError):
        rendered(text=text)
    thing = f'apiVersion: v1\nkind: Thing\nmetadata: {{name: x}}\nspec: {{value: "\\u{ord(text):04x}"}}\n'
    (tmp_path / "x.yaml").write_text(thing)
    (tmp_path / "kustomization.yaml").write_text("resources: [x.yaml]\n")
    done = subprocess.run([kustomize, "build", tmp_path], capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    assert b"yaml" in done.stderr
