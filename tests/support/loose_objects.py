"""Objects of a repository in files of their own, so that a test can lose or damage a single one."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory


def make_loose(repository: Path) -> None:
    """Takes the packs of a bare repository apart; a first commit is one."""
    with TemporaryDirectory() as aside:
        for pack in (repository / "objects" / "pack").glob("*.pack"):
            pack.with_suffix(".idx").unlink()
            kept = Path(aside) / pack.name
            kept.write_bytes(pack.read_bytes())
            pack.unlink()
            with kept.open("rb") as objects:
                unpack = ["git", f"--git-dir={repository}", "unpack-objects", "-q"]
                subprocess.run(unpack, check=True, stdin=objects, timeout=60)


def object_file(repository: Path, name: str) -> Path:
    """The file of an object, whatever it was in before.

    Args:
        name: as Git resolves it, such as ``main:README.md``.
    """
    make_loose(repository)
    asked = ["git", f"--git-dir={repository}", "rev-parse", name]
    found = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    return repository / "objects" / found[:2] / found[2:]
