"""The builder of real components, with a stand-in for Go: these tests build nothing and need no network."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import components
import pytest
from go_programs import PROGRAMS
from workshop import ComponentMissing, go_on_path, workshop

GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.30.1 test/test"; exit; fi
echo "$*" >> "$COUNT"
[ "$GOTOOLCHAIN" = local ] || exit 9
mkdir -p "$GOBIN" "$GOMODCACHE" "$GOCACHE"
echo "$GOMODCACHE $GOCACHE" >> "$COUNT.caches"
for program in kubeseal controller; do
  printf '#!/bin/sh\\necho kubeseal version: v0.27.1\\n' > "$GOBIN/$program"
  chmod +x "$GOBIN/$program"
done
"""
SEALED_SECRETS = " ".join(f"github.com/bitnami-labs/sealed-secrets/cmd/{name}" for name in ("kubeseal", "controller"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("EDGEWRIGHT_COMPONENTS_DIR", str(folder))
    monkeypatch.setenv("COUNT", str(tmp_path / "builds"))
    give_go(tmp_path, monkeypatch, GO)
    return folder


def give_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "go").write_text(script)
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")


def builds(cache: Path) -> list[str]:
    return (cache.parent / "builds").read_text().splitlines()


def silent(sentence: str) -> None:
    pass


def test_a_component_is_built_once_and_only_binaries_are_kept(cache: Path) -> None:
    said: list[str] = []
    binary = components.component("kubeseal", say=said.append)
    assert components.component("kubeseal", say=said.append) == binary
    assert [line.partition(" -ldflags=")[0] for line in builds(cache)] == [f"install -mod=mod {SEALED_SECRETS}"]
    kept = {path.name for path in cache.iterdir()} - {"workshop.lock"}
    assert kept == {binary.name, PROGRAMS["sealed-secrets-controller"].file_name}
    assert "GB" in said[0] and "minutes" in said[0]


@pytest.mark.parametrize("broken", ["", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho kubeseal version: v0.20.0\n"])
def test_a_cached_binary_that_does_not_run_is_built_again(cache: Path, broken: str) -> None:
    binary = components.component("kubeseal", say=silent)
    binary.write_text(broken)
    assert components.component("kubeseal", say=silent) == binary
    assert len(builds(cache)) == 2
    assert components.works(PROGRAMS["kubeseal"], binary)


def test_programs_of_one_module_are_built_together(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "".join(
        f"printf '#!/bin/sh\\necho version 1.31.0\\n' > $GOBIN/{name}; chmod +x $GOBIN/{name}\n"
        for name in ("server", "sql")
    )
    give_go(tmp_path, monkeypatch, GO + made)
    tool, server = (components.component(name, say=silent) for name in ("temporal-sql-tool", "temporal-server"))
    assert tool.is_file() and server.is_file() and tool != server
    assert builds(cache) == [
        "install go.temporal.io/server/cmd/server@v1.31.0 go.temporal.io/server/cmd/tools/sql@v1.31.0"
    ]


def test_all_that_is_built_at_once_shares_modules_and_compiled_packages(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "printf '#!/bin/sh\\necho v5.7.1\\n' > $GOBIN/kustomize; chmod +x $GOBIN/kustomize\n"
    give_go(tmp_path, monkeypatch, GO + made)
    with workshop(silent) as shop:
        components.build(["kubeseal", "kustomize"], shop)
    assert len(builds(cache)) == 2
    [caches] = set((tmp_path / "builds.caches").read_text().splitlines())
    assert not any(Path(folder).exists() for folder in caches.split())


def test_programs_that_share_versions_are_compiled_together() -> None:
    graphs = {program.name: program.graph for program in PROGRAMS.values()}
    assert graphs["kube-apiserver"] == graphs["kubectl"] == graphs["helm"] == graphs["kubeseal"]
    assert graphs["kwok"] == graphs["kustomize-controller"] == graphs["source-controller"] != graphs["kubectl"]


def test_two_builders_build_once(cache: Path) -> None:
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: components.component("kubeseal", say=silent), range(4)))
    assert len(set(found)) == 1
    assert len(builds(cache)) == 1


def test_what_a_killed_build_left_is_removed(cache: Path) -> None:
    left_over = cache / "building-killed"
    (left_over / "modules").mkdir(parents=True)
    components.component("kubeseal", say=silent)
    assert not left_over.exists()


def test_a_failed_build_says_why_and_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_go(tmp_path, monkeypatch, GO.replace("mkdir -p", "echo no route to the modules >&2; exit 1 #"))
    with pytest.raises(ComponentMissing, match="no route to the modules"):
        components.component("kubeseal", say=silent)
    assert [path.name for path in cache.iterdir()] == ["workshop.lock"]


def test_a_go_that_is_too_old_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_go(tmp_path, monkeypatch, GO.replace("go1.30.1", "go1.22.9"))
    assert go_on_path() is None
    give_go(tmp_path, monkeypatch, GO.replace("go1.30.1", "go1.23rc1"))
    assert go_on_path() is not None
    give_go(tmp_path, monkeypatch, GO.replace("go1.30.1", "go1.26.1"))
    assert go_on_path((1, 26, 2)) is None
    assert go_on_path((1, 26, 1)) is not None


def test_the_script_names_the_binary(cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, components.__file__, "kubeseal"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(cache) in done.stdout.splitlines()[-1]
