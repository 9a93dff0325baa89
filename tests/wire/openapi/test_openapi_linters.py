"""docs/openapi.json, as linters that others wrote see it: nothing to say."""

import os
import subprocess
from pathlib import Path

import pytest
from npm_packages import NODE

pytestmark = pytest.mark.timeout(300)  # the first one on a machine installs packages

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
"""Linting asks nobody on the internet for anything."""
LINTERS = {
    "redocly": ["lint", "--config", "redocly.yaml"],
    "spectral": ["lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"],
}


def lint(workshop: Path, linter: str, document: Path) -> "subprocess.CompletedProcess[str]":
    command: list[str | Path] = [NODE, workshop / "node_modules" / ".bin" / linter, *LINTERS[linter], document]
    return subprocess.run(
        command, cwd=workshop, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("linter", LINTERS)
def test_linters_have_nothing_to_say_about_the_openapi_document(workshop: Path, linter: str) -> None:
    done = lint(workshop, linter, DOCUMENT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("linter", LINTERS)
def test_a_document_with_a_flaw_does_not_pass(workshop: Path, linter: str, tmp_path: Path) -> None:
    flawed = tmp_path / "openapi.json"
    text = DOCUMENT.read_text("utf-8")
    flawed.write_text(text.replace('"#/components/schemas/ClusterBody"', '"#/components/schemas/Nothing"'), "utf-8")
    assert lint(workshop, linter, flawed).returncode == 1
