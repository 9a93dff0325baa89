"""The five minutes of the README, typed as they stand there; what they print is what the README shows."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright

ROOT = Path(__file__).parents[2]
VARYING = (
    (re.compile(r"ewr_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"), "<token>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "<seconds>"),
    (re.compile(r"\b(now|\d+[smh] ago)\b"), "<ago>"),
    (re.compile(r"admin-[0-9a-f]{8}"), "<admin>"),
    (re.compile(r"[ \t]+"), " "),
)
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


def plain(line: str) -> str:
    for pattern, name in VARYING:
        line = pattern.sub(name, line)
    return line.strip()


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines fit; ``...`` stands for any number of lines."""
    pattern = "".join(".*" if line == "..." else re.escape(plain(line)) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(plain(line) + "\n" for line in printed), flags=re.DOTALL) is not None


@pytest.fixture
def running(tmp_path: Path) -> Iterator[EmbeddedEdgewright]:
    edgewright = EmbeddedEdgewright(tmp_path / "home")
    edgewright.up()
    yield edgewright
    edgewright.clear_up()


@pytest.mark.timeout(300)
def test_the_tour_of_the_readme_prints_what_the_readme_shows(running: EmbeddedEdgewright, tmp_path: Path) -> None:
    gateway = running.endpoints()["gateway"]
    folder = tmp_path / "tmp"
    folder.mkdir()

    def here(text: str) -> str:
        text = text.replace("/tmp/", f"{folder}/")
        return text.replace("~/.local/share/edgewright", str(running.home)).replace("http://127.0.0.1:8484", gateway)

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
