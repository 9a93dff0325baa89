"""A broken file that no push may touch is repaired in the repository's folder, as docs/crypto.md says."""

import os
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Stalled
from edgewright.ports.git_server import CommitMessage
from edgewright.sealing import SealedValue, change_values, read_values

PATH = "edo/secrets/default/db.yaml"


def git(folder: Path, *arguments: str | Path) -> None:
    identity = {
        f"GIT_{who}_{part}": "desk@example.com" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **identity}
    subprocess.run(["git", "-C", folder, *arguments], check=True, env=env, capture_output=True, timeout=60)


@pytest.mark.parametrize("repair", ["correct", "delete"])
def test_a_broken_file_is_repaired_in_the_repositorys_folder(
    server: BareGitServer, repository: UUID, tmp_path: Path, repair: str
) -> None:
    server.commit(
        repository, {PATH: b"broken: {", "README.md": b""}, CommitMessage("Break it", "desk"), expected_head=None
    )
    with pytest.raises(Stalled) as refusal:
        read_values(server.read(repository, PATH, at=server.head(repository) or "") or b"")
    assert refusal.value.hint is not None and "docs/crypto.md" in refusal.value.hint
    git(tmp_path, "clone", "-q", server.folder(repository), "repair")
    file = tmp_path / "repair" / PATH
    whole = change_values(None, SecretReference("default", "db"), {"k": SealedValue("AgB=", None, None)}) or b""
    if repair == "correct":
        file.write_bytes(whole)
    else:
        file.unlink()
    git(tmp_path / "repair", "commit", "-q", "-a", "-m", f"Repair {PATH}")
    git(tmp_path / "repair", "push", "-q")
    head = server.head(repository) or ""
    assert server.read(repository, PATH, at=head) == (whole if repair == "correct" else None)
    message = CommitMessage("Go on", "desk")
    server.commit(repository, {"README.md": b"on"}, message, expected_head=head)
