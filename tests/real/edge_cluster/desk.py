"""What a person does at a desk: a push to ``by-hand/`` of a driving repository, with plain git over HTTP."""

import os
import subprocess
import tempfile
from pathlib import Path

from embedded import EmbeddedEdgewright

ASKS = '!f() { echo "username=$GIT_USER"; echo "password=$GIT_SECRET"; }; f'


def push_by_hand(centre: EmbeddedEdgewright, uuid: str, name: str, text: str) -> None:
    """One file in ``by-hand/``."""
    with tempfile.TemporaryDirectory() as folder:
        _git(centre, "clone", "--quiet", f"{centre.endpoints()['gateway']}/uuid/{uuid}", folder)
        (Path(folder) / "by-hand" / name).write_text(text)
        _git(centre, "-C", folder, "add", ".")
        _git(centre, "-C", folder, "commit", "--quiet", "--message", "By hand")
        _git(centre, "-C", folder, "push", "--quiet")


def committed_file(centre: EmbeddedEdgewright, uuid: str, path: str) -> str:
    """A file of a driving repository, as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        _git(centre, "clone", "--quiet", f"{centre.endpoints()['gateway']}/uuid/{uuid}", folder)
        return (Path(folder) / path).read_text()


def _git(centre: EmbeddedEdgewright, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", f"credential.helper={ASKS}", *arguments],
        env={
            **os.environ,
            "NO_PROXY": "127.0.0.1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "desk",
            "GIT_AUTHOR_EMAIL": "desk@localhost",
            "GIT_COMMITTER_NAME": "desk",
            "GIT_COMMITTER_EMAIL": "desk@localhost",
            "GIT_USER": "desk",
            "GIT_SECRET": (centre.home / "admin-token").read_text().strip(),
        },
        capture_output=True,
        check=True,
        timeout=60,
    )
