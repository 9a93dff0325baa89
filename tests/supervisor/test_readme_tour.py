"""The five minutes of the README, typed as they stand there; what they print is what the README shows."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from varying import UUID, without_varying

ROOT = Path(__file__).parents[2]
PROGRESS = re.compile(r"press-shop: [A-Z]")
"""What waiting prints on a machine that is slow enough to wait for."""


def tour() -> list[tuple[str, list[str]]]:
    """(command, lines that it prints) in order."""
    text = (ROOT / "README.md").read_text().split("<!-- tour: begin -->")[1].split("<!-- tour: end -->")[0]
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines fit; ``...`` stands for any number of lines."""
    pattern = "".join(".*" if line == "..." else re.escape(without_varying(line)) + "\n" for line in shown)
    found = "".join(without_varying(line) + "\n" for line in printed)
    return re.fullmatch(pattern, found, flags=re.DOTALL) is not None


@pytest.fixture
def running(tmp_path: Path) -> Iterator[EmbeddedEdgewright]:
    edgewright = EmbeddedEdgewright(tmp_path / "home")
    edgewright.up()
    yield edgewright
    edgewright.clear_up()


def test_the_tour_can_be_typed_on_any_system() -> None:
    """Nothing in it has to be looked up first, and no path is that of one system."""
    for command, _ in tour():
        assert UUID.search(command) is None, command
        assert "$" not in command and "curl" not in command, command
        places = [word for word in shlex.split(command) if word.startswith(("/", "~"))]
        assert all(place.startswith("/v1/") for place in places), command


@pytest.mark.timeout(300)
def test_the_tour_of_the_readme_prints_what_the_readme_shows(running: EmbeddedEdgewright, tmp_path: Path) -> None:
    gateway = running.endpoints()["gateway"]
    folder = tmp_path / "beside"
    folder.mkdir()

    def here(text: str) -> str:
        return text.replace("../press-shop", f"{folder}/press-shop").replace("http://127.0.0.1:8484", gateway)

    script = "exec 2>&1\n"
    steps = tour()
    assert len(steps) > 10
    for number, (command, _) in enumerate(steps):
        script += f"echo '=== {number}'\n{here(command)}\n"
    environment = {**os.environ, "EDGEWRIGHT_HOME": str(running.home), "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["sh", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    outputs = re.split(r"^=== \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(outputs) == len(steps), done.stdout + done.stderr
    for (command, shown), output in zip(steps, outputs, strict=True):
        expected = [here(line) for line in shown]
        printed = [line for line in output.splitlines() if not PROGRESS.match(line)]
        assert matches(expected, printed), f"$ {command}\nprints:\n{output}\nthe README shows:\n{shown}"
