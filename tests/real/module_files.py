"""Files that tests take from Go modules, such as the CRDs of a controller; downloaded once, kept as binaries are."""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from go_programs import KUSTOMIZE_CONTROLLER, KWOK, RECIPES, SEALED_SECRETS, SOURCE_CONTROLLER
from workshop import Workshop, components_dir, open_or


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
    "source-controller-config": ModuleFolder("github.com/fluxcd/source-controller", SOURCE_CONTROLLER, "config"),
    "kustomize-controller-config": ModuleFolder(
        "github.com/fluxcd/kustomize-controller", KUSTOMIZE_CONTROLLER, "config"
    ),
    "kwok-stages": ModuleFolder("sigs.k8s.io/kwok", KWOK, "kustomize/stage"),
}


HELM_KINDS = "v1.6.5"
"""Version of helm-controller. No available module has its kind: it is made of the Go types, as upstream makes it."""


def module_folder(name: str, *, say: Callable[[str], None] = print, shop: Workshop | None = None) -> Path:
    """The folder, downloaded if it is not there.

    Args:
        shop: one that is open; None: it takes one of its own.

    Raises:
        ComponentMissing: it cannot be had.
    """
    wanted = FOLDERS[name]
    kept = components_dir() / f"{name}-{wanted.version}"
    if not kept.is_dir():
        with open_or(shop, say) as there:
            if not kept.is_dir():
                there.say(f"{name} {wanted.version}: downloading its module (a few seconds).")
                _downloaded(wanted, there).rename(kept)
    return kept


def helm_definitions(*, say: Callable[[str], None] = print, shop: Workshop | None = None) -> Path:
    """A folder with the CRD of HelmReleases.

    Args:
        shop: one that is open; None: it takes one of its own.

    Raises:
        ComponentMissing: it cannot be made here.
    """
    kept = components_dir() / f"helm-controller-crds-{HELM_KINDS}"
    if not kept.is_dir():
        with open_or(shop, say) as there:
            if not kept.is_dir():
                there.say(f"{kept.name}: making it of Go types (1 to 3 minutes on 2 cores, 500 MB meanwhile).")
                _made_definitions(there).rename(kept)
    return kept


def flux_definitions() -> list[Path]:
    """The files of Flux's kinds, of all controllers that an edge runs.

    Raises:
        ComponentMissing: one cannot be had or made here.
    """
    configs = [module_folder(f"{name}-controller-config") for name in ("source", "kustomize")]
    folders = [*(config / "crd" / "bases" for config in configs), helm_definitions()]
    return [file for folder in folders for file in sorted(folder.glob("*.yaml"))]


def _made_definitions(shop: Workshop) -> Path:
    made = shop.folder / "definitions"
    generator = ["tool", "controller-gen", "crd", "paths=github.com/fluxcd/helm-controller/api/v2"]
    shop.go(
        [*generator, f"output:crd:artifacts:config={made}"],
        "make the definition of HelmReleases",
        recipe=RECIPES / "helm-kinds",
        minimum=(1, 26, 0),
    )
    return made


def _downloaded(wanted: ModuleFolder, shop: Workshop) -> Path:
    said = shop.go(["mod", "download", "-json", f"{wanted.path}@{wanted.version}"], f"download {wanted.path}")
    source = Path(json.loads(said)["Dir"]) / wanted.folder
    copied = Path(tempfile.mkdtemp(dir=shop.folder)) / "folder"
    shutil.copytree(source, copied, copy_function=shutil.copyfile)
    for folder in (copied, *(path for path in copied.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # modules are read-only
    return copied
