"""The bootstrap line, pasted into a shell: curl trusts what it carries, and nothing else."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from edge_cluster.certificates import Authority
from scripted_centre import Reply, ScriptedCentre, scripted_centre
from sealing_keys import certificate_pem, private_key

from edgewright.bootstrap import bootstrap_line

TODAY = datetime.now(UTC)
SCRIPT = b'echo attached as $(basename "$PWD")\n'


def authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


@pytest.fixture
def private(tmp_path: Path) -> Authority:
    return authority(tmp_path / "private")


@pytest.fixture
def centre(private: Authority) -> Iterator[ScriptedCentre]:
    """With a certificate of an authority that this machine does not know."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served = private.server("centre")
    tls.load_cert_chain(served.certificate, served.key)
    with scripted_centre(lambda _request: Reply(200, SCRIPT), tls=tls) as centre:
        yield centre


def paste(line: str, folder: Path, shell: str = "sh") -> "subprocess.CompletedProcess[str]":
    program = shutil.which(shell)
    assert program is not None
    folder.mkdir()
    return subprocess.run([program, "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_line_as_it_is_works_where_nobody_knows_the_authority(
    centre: ScriptedCentre, private: Authority, tmp_path: Path, shell: str
) -> None:
    bundle = private.identity.certificate.read_text()
    line = bootstrap_line(f"{centre.url}/script", ca_bundle=bundle)
    assert "\n" not in line
    done = paste(line, tmp_path / "desk", shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "attached as desk\n", "")
    assert list((tmp_path / "desk").iterdir()) == []


def test_options_go_where_they_always_go(centre: ScriptedCentre, private: Authority, tmp_path: Path) -> None:
    centre.reply = lambda _request: Reply(200, b'echo "with $*"\n')
    line = bootstrap_line(f"{centre.url}/script", ca_bundle=private.identity.certificate.read_text())
    assert paste(f"{line.removesuffix('sh -')}sh -s -- --yes", tmp_path / "desk").stdout == "with --yes\n"


def test_a_bundle_with_more_than_one_certificate_and_words_between_them_is_carried(
    centre: ScriptedCentre, private: Authority, tmp_path: Path
) -> None:
    other = certificate_pem(private_key(), not_before=TODAY, not_after=TODAY + timedelta(days=1))
    own = private.identity.certificate.read_text()
    bundle = f"# the old one, 100 %\\n it's gone\n{other}\r\nsubject=/CN=new\n" + own.replace("\n", "\r\n")
    done = paste(bootstrap_line(f"{centre.url}/script", ca_bundle=bundle), tmp_path / "desk")
    assert done.stdout == "attached as desk\n", done.stderr


@pytest.mark.parametrize("trusted", ["nothing", "another", "no certificate"])
def test_nothing_is_fetched_on_trust(
    centre: ScriptedCentre, private: Authority, tmp_path: Path, trusted: str
) -> None:
    bundles = {
        "nothing": None,
        "another": authority(tmp_path / "other").identity.certificate.read_text(),
        "no certificate": private.identity.key.read_text(),
    }
    line = bootstrap_line(f"{centre.url}/script", ca_bundle=bundles[trusted])
    done = paste(line, tmp_path / "desk")
    assert done.stdout == ""
    assert "curl: (" in done.stderr
    assert centre.requests == []
    assert "PRIVATE" not in line


@pytest.mark.parametrize("bundle", [None, "of somebody"])
def test_whatever_a_url_holds_is_one_word_of_the_line(tmp_path: Path, bundle: str | None) -> None:
    url = "https://x.invalid/'; echo broken-out; '$(echo broken-out)`echo broken-out`\"\\?token=a"
    stand_in = 'curl() { for last; do :; done; printf %s "$last" >&2; }; '
    told = paste(stand_in + bootstrap_line(url, ca_bundle=bundle), tmp_path / "desk")
    assert (told.stdout, told.stderr) == ("", url)
