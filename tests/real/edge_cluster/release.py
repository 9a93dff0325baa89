"""Flux's release file, with the real definitions of its kinds as far as they can be had."""

from flux_file import definition, flux_file
from module_files import module_folder


def release() -> bytes:
    """Flux's own kinds, as its modules have them; HelmRelease's cannot be had."""
    folders = [module_folder(name) for name in ("source-controller-crds", "kustomize-controller-crds")]
    real = [file.read_text() for folder in folders for file in sorted(folder.glob("*.yaml"))]
    return flux_file([*real, definition("helm", "HelmRelease", "helmreleases", "v2")])
