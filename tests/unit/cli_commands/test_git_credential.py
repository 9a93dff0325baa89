"""git's question for a password is answered for the gateway, and for nobody else."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import CommandLine, ServedCentre


@pytest.fixture
def asked(edgewright: CommandLine, centre: ServedCentre) -> str:
    """What git writes before it sends a request to the gateway."""
    url = urlsplit(centre.url)
    return f"protocol={url.scheme}\nhost={url.netloc}\npath=git/cluster/press-shop\n\n"


def test_the_gateways_password_is_the_token_of_the_command_line(edgewright: CommandLine, asked: str) -> None:
    token = Path(str(edgewright.environment["EDGEWRIGHT_TOKEN_FILE"])).read_text().strip()
    told = edgewright.ok("git-credential", "get", typed=asked)
    assert told.out == f"username=edgewright\npassword={token}\n"


@pytest.mark.parametrize("change", [("host=127.0.0.1", "host=127.0.0.2"), ("protocol=http", "protocol=https")])
def test_another_host_or_scheme_learns_nothing(edgewright: CommandLine, asked: str, change: tuple[str, str]) -> None:
    assert edgewright.ok("git-credential", "get", typed=asked.replace(*change)).out == ""


@pytest.mark.parametrize("operation", ["store", "erase", "capability"])
def test_other_operations_do_nothing(edgewright: CommandLine, asked: str, operation: str) -> None:
    assert edgewright.ok("git-credential", operation, typed=asked).out == ""


@pytest.mark.parametrize("text", ["", "\n", "host\n", "=\n=\n", "protocol=http\n", "x" * 100_000])
def test_what_git_would_never_write_learns_nothing(edgewright: CommandLine, text: str) -> None:
    assert edgewright.ok("git-credential", "get", typed=text).out == ""


def test_git_clones_with_it(edgewright: CommandLine, centre: ServedCentre, tmp_path: Path) -> None:
    centre.create("press-shop")
    variables = {name: value for name, value in edgewright.environment.items() if value is not None}
    program = Path(sys.executable).with_name("edgewright")
    cloned = subprocess.run(
        [
            *("git", "-c", f"credential.helper=!{program} git-credential"),
            *("clone", "-q", f"{centre.url}/git/cluster/press-shop", tmp_path / "clone"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert cloned.returncode == 0, cloned.stderr
    assert (tmp_path / "clone" / ".git").is_dir()
