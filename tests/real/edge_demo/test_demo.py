"""``make edge-demo`` leaves an edge to play with, as often as it is typed, and ``make edge-demo-down`` nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from supervised import eventually
from workshop import components_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Of somebody who has never used it; only what is built is there already."""
    yield tmp_path
    make("edge-demo-down", tmp_path)


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "EDGEWRIGHT_COMPONENTS_DIR": str(components_dir()), **more}


def make(target: str, home: Path) -> str:
    done = subprocess.run(
        ["make", "--silent", "-C", CHECKOUT, target],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(said: str) -> dict[str, str]:
    [line] = re.findall(r"^  export (.*)$", said, re.MULTILINE)
    return dict(word.split("=", 1) for word in line.replace(":$PATH", f":{os.environ['PATH']}").split())


def processes_of(home: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(home) in " ".join(process.cmdline()) or process.environ().get("HOME") == str(home):
                found.append(" ".join(process.cmdline())[:120])
        except psutil.Error:
            continue
    return found


def page(run: Callable[..., subprocess.CompletedProcess[str]]) -> dict[str, Any]:
    """What the centre says of the demo's cluster."""
    shown: dict[str, Any] = json.loads(run("bin/edgewright", "cluster", "show", "press-shop", "--json").stdout)
    return shown


def condition(run: Callable[..., subprocess.CompletedProcess[str]], kind: str) -> dict[str, str]:
    return next(each for each in page(run)["conditions"] if each["type"] == kind)


def test_an_edge_to_play_with(home: Path) -> None:
    said = make("edge-demo", home)
    assert "press-shop is attached and Available." in said
    again = make("edge-demo", home)
    assert exported(again) == exported(said)

    def run(*command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=CHECKOUT,
            env=environment(home, **exported(said)),
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    put = ("bin/edgewright", "secret", "put", "press-shop")
    done = run(*put, "default/db", "password", "-", "--wait", given="s3cr3t")
    assert done.returncode == 0, done.stderr
    show = "go-template={{.data.password | base64decode}}"
    assert run("kubectl", "get", "secret", "db", "-o", show).stdout == "s3cr3t"

    run("kubectl", "create", "secret", "generic", "taken", "--from-literal=password=theirs")
    refused = run(*put, "default/taken", "password", "-", "--wait", given="ours")
    assert refused.returncode == 4 and "already exists and is not managed by SealedSecret" in refused.stderr
    eventually(lambda: condition(run, "Healthy")["reason"] == "SecretRefused", seconds=300)
    run("kubectl", "delete", "secret", "taken")
    assert run(*put, "default/taken", "password", "-", "--wait", given="ours").returncode == 0
    eventually(lambda: condition(run, "Healthy")["status"] == "True", seconds=300)

    clone = Path(exported(said)["EDGEWRIGHT_HOME"]).parent / "clone"
    broken = clone / "by-hand" / "app.yaml"
    address = json.loads(run("bin/edgewright", "cluster", "show", "press-shop", "--json").stdout)["links"][
        "repository"
    ]
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    token = Path(exported(said)["EDGEWRIGHT_HOME"]) / "admin-token"
    helper = f"!f() {{ echo username=me; echo password=$(cat '{token}'); }}; f"

    def git(*arguments: str) -> None:
        done = run("git", "-c", f"credential.helper={helper}", *identity, *arguments)
        assert done.returncode == 0, done.stderr

    def pushed() -> bool:
        """As everybody does whose repository others commit to: the centre may do so at any moment."""
        git("-C", str(clone), "pull", "--quiet", "--rebase")
        done = run("git", "-c", f"credential.helper={helper}", *identity, "-C", str(clone), "push", "--quiet")
        assert done.returncode == 0 or "fetch first" in done.stderr, done.stderr
        return done.returncode == 0

    git("clone", "--quiet", address, str(clone))
    broken.write_text("kind: ConfigMap\n  apiVersion: v1\n")
    for arguments in (["add", "."], ["commit", "--quiet", "-m", "Break it"]):
        git("-C", str(clone), *arguments)
    eventually(pushed)
    eventually(lambda: "by-hand/app.yaml" in condition(run, "Synced")["message"], seconds=300)
    assert condition(run, "Synced")["status"] == "False"
    git("-C", str(clone), "revert", "--no-edit", "HEAD")
    eventually(pushed)
    eventually(lambda: condition(run, "Synced")["status"] == "True", seconds=300)
    [process] = re.findall(r"^  kill (\d+) ", said, re.MULTILINE)
    psutil.Process(int(process)).kill()
    eventually(lambda: run("bin/edgewright", "cluster", "show", "press-shop").returncode == 0, seconds=300)

    assert "nothing is left" in make("edge-demo-down", home)
    assert processes_of(home) == []
    assert [path for path in home.rglob("*edge-demo*") if path.exists()] == []
    assert "does not run" in make("edge-demo-down", home)
