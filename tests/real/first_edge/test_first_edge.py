"""The first hour of somebody new: a clone, `up --share`, printed lines, an edge on another machine, a secret there.

Real are git, the environment that a clone makes for itself, the centre, both machines' network (namespaces), the API
server, Flux's source- and kustomize-controller, sealed-secrets' controller, and the agent, run from the image that
the centre serves and with nothing else in sight. What is not: kubelet, container runtime and helm-controller
(tests/real/edge_cluster/README.md).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from another_machine import CENTRE, TwoMachines
from components import component
from edge_cluster.far_edge import AwaitedKey, PastedLine, Told
from edge_cluster.release import release
from flux_file import sha256_of
from left_behind import marked
from supervised import eventually
from varying import without_varying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]  # the first test may build components

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "first-edge.md").read_text("utf-8")
VARYING = (
    (re.compile(r"edgewright/agent:\S+"), "<image>"),
    (re.compile(r"\d+(\.\d+){3}"), "<address>"),
    (re.compile(r"\d+(\.\d+)*"), "<number>"),
)
"""What differs here beside that: addresses and versions."""
PROGRAMS = ("crane", "helm", "kustomize-controller", "sealed-secrets-controller", "source-controller")


def promised(command: str) -> list[str]:
    """What the page says that a command prints; other lines may come with it."""
    blocks = re.findall(r"^ *```console\n(.*?)^ *```", PAGE, flags=re.DOTALL | re.MULTILINE)
    steps = [step for block in blocks for step in re.split(r"^ *\$ ", block, flags=re.MULTILINE)[1:]]
    [shown] = [step for step in steps if step.split("\n")[0] == command]
    return [without_varying(line, *VARYING) for line in shown.splitlines()[1:]]


def assert_kept(command: str, printed: str) -> None:
    lines = [without_varying(line, *VARYING) for line in printed.splitlines()]
    assert [line for line in promised(command) if line not in lines] == [], printed


class Newcomer:
    """Somebody at the centre's machine, with a home of their own and nothing installed.

    Args:
        within: what a command begins with that is to run on that machine.
    """

    def __init__(self, folder: Path, within: Sequence[str]) -> None:
        self.clone = folder / "edgewright"
        self._within = within
        (folder / "home").mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "UV_CACHE_DIR", "SSL_CERT_FILE") if name in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            # What packages come from is no part of the story: they are downloaded once for all tests.
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
            "UV_SYSTEM_CERTS": "1",
            **marked(),
        }

    def types(self, command: str) -> str:
        """Types a command of the page, which prints what the page says."""
        printed = self._run(command)
        assert_kept(command, printed)
        return printed

    def edgewright(self, command: str) -> str:
        """Types a command."""
        return self._run(f"./bin/edgewright {command}")

    def _run(self, command: str) -> str:
        done = subprocess.run(
            [*self._within, "sh", "-c", command],
            stdin=subprocess.DEVNULL,
            cwd=self.clone,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def centre(self, log: Path) -> Iterator[None]:
        """`up --share` in a terminal of its own, until the end of the context."""
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*self._within, "./bin/edgewright", "up", "--share", CENTRE],
                cwd=self.clone,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        try:
            eventually(lambda: process.poll() is not None or "Press Ctrl-C to stop." in log.read_text(), seconds=180)
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()
            process.wait(60)


class OtherMachine:
    """The edge's machine, at whose terminal somebody sits."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def type(self, what: PastedLine | AwaitedKey | None = None) -> Told:
        """Types something, if anything, and returns what comes of it."""
        assert self._process.stdin and self._process.stdout
        if what is not None:
            self._process.stdin.write(json.dumps(asdict(what)) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the edge's machine has crashed; its own words are in the log"
        return Told(**json.loads(answer))


@contextmanager
def other_machine(within: Sequence[str], log: Path) -> Iterator[OtherMachine]:
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*within, sys.executable, "-P", "-m", "edge_cluster.far_edge"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), "tests/real", "tests/support"])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        )
    try:
        yield OtherMachine(process)
    except BaseException as error:
        process.stdin.close() if process.stdin else None
        process.wait(120)
        error.add_note(log.read_text(errors="replace"))
        raise
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(120)
        finally:
            process.kill()


@pytest.fixture
def machines() -> Iterator[TwoMachines]:
    for program in PROGRAMS:
        component(program)  # built before anybody waits for them
    with TwoMachines() as machines:
        yield machines


@pytest.fixture
def newcomer(tmp_path: Path, machines: TwoMachines) -> Newcomer:
    """With a clone, and the environment that the page's first command makes."""
    newcomer = Newcomer(tmp_path, machines.on_centre)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, newcomer.clone], check=True)
    assert "make install" in PAGE
    made = subprocess.run(
        ["make", "install"], cwd=newcomer.clone, env=newcomer.environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return newcomer


def test_a_newcomer_has_a_secret_on_an_edge_of_another_machine(
    newcomer: Newcomer, machines: TwoMachines, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    begun = time.monotonic()
    (tmp_path / "install.yaml").write_bytes(file := release())
    with (
        newcomer.centre(tmp_path / "up.log"),
        other_machine(machines.on_edge, tmp_path / "edge.log") as edge,
    ):
        imported = newcomer.edgewright(f"flux import {tmp_path / 'install.yaml'} --sha256 {sha256_of(file)}")
        assert_kept("./bin/edgewright flux import v2.9.0", imported)
        said = tmp_path / "up.log"
        eventually(lambda: re.search(r"agent image\s+\S", said.read_text()) is not None, seconds=240)
        assert_kept("./bin/edgewright up --share 192.0.2.10", said.read_text())
        shown = newcomer.types("./bin/edgewright agent-image show")
        [image] = re.findall(r"image\s+(\S+/edgewright/agent:\S+)", shown)
        assert image.startswith(f"{CENTRE}:8484/") and image in said.read_text()

        newcomer.types("./bin/edgewright doctor")
        newcomer.types("./bin/edgewright cluster create press-shop --wait")
        printed = newcomer.types("./bin/edgewright cluster bootstrap press-shop")
        [line] = [each for each in printed.splitlines() if each.endswith(" | sh -")]
        assert edge.type().what == "cluster"
        authority = (Path(newcomer.environment["HOME"]) / ".local/share/edgewright/authority.pem").read_text()
        attached = edge.type(PastedLine(line, image, authority))
        assert (attached.what, attached.code) == ("attached", 0), attached.text

        newcomer.types("./bin/edgewright cluster wait press-shop --for available")
        newcomer.types("printf s3cr3t | ./bin/edgewright secret put press-shop default/db password - --wait")
        assert edge.type(AwaitedKey("default", "db", "password")) == Told("secret", text="s3cr3t")
        newcomer.types("./bin/edgewright secret list press-shop")
    record_property("seconds from `up --share` to the secret", round(time.monotonic() - begun))
