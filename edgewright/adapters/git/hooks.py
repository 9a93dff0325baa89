"""The hooks that git runs during a push: two constant shell lines on disk, told by environment what to run.

Git silently ignores a hook that is missing or not executable, which would switch the push rules off. The
files are therefore looked at before every push, and made again if they are not as they should be.
"""

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from edgewright.adapters.git import pre_receive
from edgewright.adapters.git.failures import storage_errors, unavailable
from edgewright.domain.own_objects import OwnObjects

# The files do not depend on the machine, so several gateways may share one storage. Without the variables
# `exec ""` fails, and the push with it. -I and -S: nothing of the user's or of site-packages is loaded.
_HOOKS = {
    "pre-receive": '#!/bin/sh\nexec "$EDGEWRIGHT_PYTHON" -I -S "$EDGEWRIGHT_PRE_RECEIVE"\n',
    "post-receive": '#!/bin/sh\nexec cat > "$EDGEWRIGHT_RECEIPT"\n',
}


def install_hooks(root: Path) -> Path:
    """Puts the hooks below the root unless they are there, and returns their folder.

    Raises:
        edgewright.errors.Waiting: code ``git_unavailable``: they cannot be written or not be run there.
    """
    folder = root / "hooks"
    with storage_errors():
        for name, text in _HOOKS.items():
            if not _is_installed(folder / name, text):
                _install(folder / name, text)
                if not _is_installed(folder / name, text):
                    raise unavailable("hooks cannot be run there; is it mounted with noexec?")
    return folder


def hook_environment(receipt: Path, folder: str, own: OwnObjects) -> Mapping[str, str]:
    """What the hooks need to know.

    Args:
        receipt: the file that says, once the push is through, ``<old> <new> <ref>`` for each ref that moved.
        folder: the only one that the push may change; empty: it may change any path.
        own: what bootstrap has brought to the edge.
    """
    return {
        "EDGEWRIGHT_PYTHON": sys.executable,
        "EDGEWRIGHT_PRE_RECEIVE": str(Path(pre_receive.__file__).resolve()),
        "EDGEWRIGHT_PACKAGES": str(Path(yaml.__file__).resolve().parents[1]),
        "EDGEWRIGHT_PUSH_FOLDER": folder,
        "EDGEWRIGHT_OWN_OBJECTS": own.to_text(),
        "EDGEWRIGHT_RECEIPT": str(receipt),
    }


def _is_installed(hook: Path, text: str) -> bool:
    try:
        return hook.read_text("ascii", errors="replace") == text and os.access(hook, os.X_OK)
    except FileNotFoundError:
        return False


def _install(hook: Path, text: str) -> None:
    hook.parent.mkdir(parents=True, exist_ok=True)
    draft = hook.with_name(f".{hook.name}-{secrets.token_hex(8)}")
    draft.write_text(text, "ascii")
    draft.chmod(0o755)
    draft.rename(hook)
