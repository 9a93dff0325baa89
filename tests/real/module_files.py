"""Files that tests take from Go modules, such as the CRDs of a controller; downloaded once, kept as binaries are."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from components import ComponentMissing, build_environment, components_dir, go
from filelock import FileLock
from go_programs import FLUX, KWOK, RECIPES, SEALED_SECRETS

DEADLINE = 1800  # seconds


@dataclass(frozen=True)
class ModuleFolder:
    """A folder of a module.

    Args:
        path: of the module.
        folder: in it; kept with all that is below.
    """

    path: str
    version: str
    folder: str


FOLDERS = {
    "sealed-secrets-crds": ModuleFolder(
        "github.com/bitnami-labs/sealed-secrets", SEALED_SECRETS, "helm/sealed-secrets/crds"
    ),
    "sealed-secrets-chart": ModuleFolder(
        "github.com/bitnami-labs/sealed-secrets", SEALED_SECRETS, "helm/sealed-secrets"
    ),
    "source-controller-crds": ModuleFolder("github.com/fluxcd/source-controller", FLUX, "config/crd/bases"),
    "kustomize-controller-crds": ModuleFolder("github.com/fluxcd/kustomize-controller", FLUX, "config/crd/bases"),
    "kwok-stages": ModuleFolder("sigs.k8s.io/kwok", KWOK, "kustomize/stage"),
}


HELM_KINDS = "v1.6.5"
"""Of helm-controller, whose definition is in no module to be had: made of its Go types, as upstream makes it."""


def module_folder(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The folder, downloaded if it is not there.

    Raises:
        ComponentMissing: it cannot be had.
    """
    wanted = FOLDERS[name]
    cache = components_dir()
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"{name}-{wanted.version}"
    with FileLock(cache / f"{kept.name}.lock"):
        if not kept.is_dir():
            say(f"{name} {wanted.version}: downloading its module (a few seconds).")
            with tempfile.TemporaryDirectory(dir=cache, prefix="module-") as draft:
                _download(wanted, Path(draft), say).rename(kept)
    return kept


def helm_definitions(*, say: Callable[[str], None] = print) -> Path:
    """A folder with the CRD of HelmReleases.

    Raises:
        ComponentMissing: it cannot be made here.
    """
    cache = components_dir()
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"helm-controller-crds-{HELM_KINDS}"
    with FileLock(cache / f"{kept.name}.lock"):
        if not kept.is_dir():
            say(f"{kept.name}: making it of Go types (1 to 3 minutes on 2 cores, 500 MB of disk meanwhile).")
            with tempfile.TemporaryDirectory(dir=cache, prefix="module-") as draft:
                recipe = Path(shutil.copytree(RECIPES / "helm-kinds", Path(draft) / "recipe"))
                made = Path(draft) / "made"
                generator = ["tool", "controller-gen", "crd", "paths=github.com/fluxcd/helm-controller/api/v2"]
                command = [
                    go(Path(draft), say, minimum=(1, 26, 0)),
                    *generator,
                    f"output:crd:artifacts:config={made}",
                ]
                _run(command, Path(draft), recipe, "make the definition of HelmReleases")
                made.rename(kept)
    return kept


def _download(wanted: ModuleFolder, draft: Path, say: Callable[[str], None]) -> Path:
    command = [go(draft, say), "mod", "download", "-json", f"{wanted.path}@{wanted.version}"]
    said = _run(command, draft, draft, f"download {wanted.path}")
    source = Path(json.loads(said)["Dir"]) / wanted.folder
    copied = Path(shutil.copytree(source, draft / "folder", copy_function=shutil.copyfile))
    for folder in (copied, *(path for path in copied.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # modules are read-only
    return copied


def _run(command: list[str], folder: Path, where: Path, purpose: str) -> str:
    try:
        done = subprocess.run(
            command,
            env=build_environment(folder),
            cwd=where,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ComponentMissing(f"could not {purpose}: {error}") from error
    if done.returncode != 0:
        raise ComponentMissing(f"could not {purpose}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
