"""`edgewright flux`: given once to the centre, shown to whoever asks."""

import json
from pathlib import Path

import pytest
from command_line import CommandLine, Shown
from flux_file import VERSION, flux_file, sha256_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "install.yaml"
    made.write_bytes(flux_file())
    return made


def test_a_release_is_imported_and_shown(edgewright: CommandLine, file: Path) -> None:
    missing = edgewright("flux", "show")
    assert (missing.code, "no Flux to give" in missing.err) == (3, True)
    imported = edgewright.ok("flux", "import", str(file), "--sha256", sha256_of(flux_file()))
    assert VERSION in imported.out
    shown = edgewright.ok("flux", "show")
    assert shown.out == imported.out
    assert "ghcr.io/fluxcd/source-controller:v1.7.0" in shown.out
    assert json.loads(edgewright.ok("flux", "show", "--json").out)["sha256"] == sha256_of(flux_file())


def test_releases_are_listed_and_an_older_one_has_to_be_meant(edgewright: CommandLine, file: Path) -> None:
    def import_as(version: str, *options: str) -> Shown:
        content = flux_file().replace(VERSION.encode(), version.encode())
        file.write_bytes(content)
        return edgewright("flux", "import", str(file), "--sha256", sha256_of(content), *options)

    assert edgewright("flux", "list").code == 3
    assert [import_as(version).code for version in ("v2.7.0", "v2.7.3")] == [0, 0]
    refused = import_as("v2.6.4")
    assert (refused.code, "v2.6.4 is older than v2.7.3" in refused.err) == (4, True)
    assert edgewright.ok("flux", "list", "-o", "name").out.split() == ["v2.7.3", "v2.7.0"]
    assert import_as("v2.6.4", "--even-if-older").code == 0
    lines = edgewright.ok("flux", "list").out.splitlines()
    assert lines[0].split() == ["VERSION", "IMPORTED", "NEW", "EDGES", "GET", "IT", "SHA256"]
    assert [line.split()[0] for line in lines[1:] if "yes" in line] == ["v2.6.4"]
    assert len(json.loads(edgewright.ok("flux", "list", "--json").out)) == 3


def test_a_checksum_is_demanded_and_compared(edgewright: CommandLine, file: Path) -> None:
    assert edgewright("flux", "import", str(file)).code == 2
    assert edgewright("flux", "import", str(file), "--sha256", "junk").code == 2
    differs = edgewright("flux", "import", str(file), "--sha256", "0" * 64)
    assert (differs.code, sha256_of(flux_file()) in differs.err) == (2, True)
    assert edgewright("flux", "show").code == 3
