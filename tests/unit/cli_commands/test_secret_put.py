"""Values that are typed, given as literals, end with a newline, or are empty."""

import os
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fcntl import ioctl
from pathlib import Path
from uuid import UUID

import pytest
from command_line import CommandLine, ServedCentre
from gateway_centre import STATUS_APP
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.cli.commands.secret_sources import TERMINAL_LINE
from edgewright.ports.operators import Permission
from edgewright.sealing import read_values

KEY = private_key()
PLACE = ("press-shop", "default/db")
MARKER = "MARKED-s3cr3t"
NOTE = "Values of --from-literal show in the process list and in your shell's history"
PROGRAM = "from edgewright.cli.main import main; main()"


@pytest.fixture
def sealed(centre: ServedCentre) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = centre.create("press-shop")
    now = datetime.now(UTC)
    certificate = certificate_pem(KEY, not_before=now - timedelta(days=1), not_after=now + timedelta(days=100))

    async def report() -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        status = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": certificate}
        answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=status)
        assert answer.is_success, answer.text

    centre.do(report())
    return made


@dataclass
class KeptSecret:
    """What the repository holds of the Secret default/db."""

    centre: ServedCentre
    cluster: UUID

    @property
    def values(self) -> dict[str, bytes]:
        git = self.centre.centre.git
        found = git.read(self.cluster, "edo/secrets/default/db.yaml", at=git.head(self.cluster) or "")
        read = read_values(found) if found else {}
        return {key: open_envelope(each.ciphertext, KEY, b"default/db") for key, each in read.items()}

    @property
    def commits(self) -> int:
        return len(self.centre.centre.git.log(self.cluster, limit=100))


@pytest.fixture
def kept(centre: ServedCentre, sealed: UUID) -> KeptSecret:
    return KeptSecret(centre, sealed)


@dataclass
class Screen:
    """The command line in a process of its own, with a controlling terminal that a person types at."""

    environment: Mapping[str, str | None]
    text: str = ""
    code: int | None = None
    _terminal: int = -1
    _process: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self, *arguments: str) -> None:
        self._terminal, theirs = os.openpty()
        present = {**os.environ, **self.environment, "TERM": "dumb"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={name: value for name, value in present.items() if value is not None},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call, no locks
        )
        os.close(theirs)

    def types(self, keys: str, *, at: str) -> None:
        """Types once the prompt is there and nothing is shown any more of what is typed."""
        until = time.monotonic() + 60
        while at not in self.text or termios.tcgetattr(self._terminal)[3] & termios.ECHO:
            assert time.monotonic() < until, self.text
            os.set_blocking(self._terminal, False)
            try:
                self.text += os.read(self._terminal, 4096).decode()
            except BlockingIOError:
                time.sleep(0.02)
        os.set_blocking(self._terminal, True)
        os.write(self._terminal, keys.encode("utf-8", "surrogateescape"))

    def end(self) -> int:
        assert self._process is not None
        try:
            while more := os.read(self._terminal, 4096):
                self.text += more.decode()
        except OSError:  # Linux says so when the last user of a terminal has gone
            pass
        return self._process.wait(60)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            os.close(self._terminal)


@pytest.fixture
def screen(edgewright: CommandLine) -> Iterator[Screen]:
    shown = Screen(edgewright.environment)
    yield shown
    shown.close()


@pytest.mark.parametrize("source", [("-",), ()], ids=["-", "no source"])
def test_a_terminal_asks_twice_and_shows_nothing(screen: Screen, kept: KeptSecret, source: tuple[str, ...]) -> None:
    screen.start("secret", "put", *PLACE, "password", *source)
    screen.types(f"{MARKER}-ü\n", at="Value of password (not shown; Enter ends it): ")
    screen.types(f"{MARKER}-ü\n", at="The same again: ")
    assert screen.end() == 0, screen.text
    assert kept.values == {"password": f"{MARKER}-ü".encode()}
    assert MARKER not in screen.text
    assert "newline" not in screen.text


def test_a_value_mistyped_the_second_time_is_not_sent(screen: Screen, kept: KeptSecret) -> None:
    screen.start("secret", "put", *PLACE, "password", "-")
    screen.types(f"{MARKER}\n", at="Value of password")
    screen.types(f"{MARKER}x\n", at="The same again")
    assert screen.end() == 2
    assert "The two values differ. Nothing was sent." in screen.text
    assert (kept.values, MARKER in screen.text) == ({}, False)


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 2)], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("half", ["", "MARK"])
def test_whoever_leaves_the_prompt_sends_nothing(
    screen: Screen, kept: KeptSecret, key: str, code: int, half: str
) -> None:
    screen.start("secret", "put", *PLACE, "password", "-")
    # Ctrl-D behind something only hands that on: the second one ends the input
    screen.types(half + (key * 2 if half else key), at="Value of password")
    if half and key == "\x04":
        screen.types("other\n", at="The same again")
    assert screen.end() == code, screen.text
    assert (kept.values, "MARK" in screen.text, "Traceback" in screen.text) == ({}, False, False)
    assert screen.text.endswith("\r\n")


def test_nothing_typed_is_empty_and_not_asked_for_again(screen: Screen, kept: KeptSecret) -> None:
    screen.start("secret", "put", *PLACE, "password", "-")
    screen.types("\n", at="Value of password")
    assert screen.end() == 2
    assert "The value of password is empty. Nothing was sent." in screen.text
    assert "again" not in screen.text
    assert kept.values == {}


@pytest.mark.parametrize(
    ("typed", "told"),
    [("x" * TERMINAL_LINE + "yz\n", f"passes on {TERMINAL_LINE} bytes"), ("a\udcff\n", "is not UTF-8")],
    ids=["too long", "no UTF-8"],
)
def test_what_a_terminal_cannot_pass_on_is_refused(screen: Screen, kept: KeptSecret, typed: str, told: str) -> None:
    screen.start("secret", "put", *PLACE, "password", "-")
    screen.types(typed, at="Value of password")
    assert screen.end() == 2, screen.text
    assert told in screen.text
    assert "Traceback" not in screen.text
    assert kept.values == {}


def test_nobody_types_a_value_for_a_cluster_that_is_not_there(screen: Screen, kept: KeptSecret) -> None:
    screen.start("secret", "put", "presshop", "default/db", "password", "-")
    assert screen.end() == 3
    assert "Value of" not in screen.text
    assert "no cluster called presshop" in screen.text
    assert kept.values == {}


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        (None, b"line\n", "Kept the newline at the end of password. --drop-newline removes it.\n"),
        ("--keep-newline", b"line\n", "Kept the newline at the end of password.\n"),
        ("--drop-newline", b"line", "Removed the newline at the end of password.\n"),
    ],
)
def test_one_sentence_says_what_became_of_the_newline(
    edgewright: CommandLine, kept: KeptSecret, option: str | None, value: bytes, told: str
) -> None:
    shown = edgewright.ok("secret", "put", *PLACE, "password", "-", *([option] if option else []), typed=b"line\n")
    assert kept.values == {"password": value}
    assert shown.err == told


@pytest.mark.parametrize(
    ("given", "taken"), [(b"a\r\n", b"a"), (b"a\n\n", b"a\n"), (b"a\r", b"a\r"), (b"\n", None), (b"a", b"a")]
)
def test_dropping_removes_one_line_end_and_no_more(
    edgewright: CommandLine, kept: KeptSecret, given: bytes, taken: bytes | None
) -> None:
    edgewright("secret", "put", *PLACE, "k", "-", "--drop-newline", typed=given)
    assert kept.values == ({} if taken is None else {"k": taken})


def test_newlines_of_several_files_are_told_in_one_sentence(
    edgewright: CommandLine, kept: KeptSecret, tmp_path: Path
) -> None:
    options = []
    for number in range(7):
        file = tmp_path / f"k{number}"
        file.write_bytes(b"v\n")
        options += ["--from-file", str(file)]
    shown = edgewright.ok("secret", "put", *PLACE, *options, "--drop-newline")
    assert shown.err == "Removed the newline at the end of k0, k1, k2, k3, k4 and 2 more.\n"
    assert set(kept.values.values()) == {b"v"}


def test_an_empty_value_needs_a_yes(edgewright: CommandLine, kept: KeptSecret, tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    for arguments in (
        ("password", "-"),
        ("password", f"@{file}"),
        ("--from-file", f"password={file}"),
        ("--from-literal", "password="),
        ("password", "-", "--label", "app=press"),
    ):
        refused = edgewright("secret", "put", *PLACE, *arguments, typed=b"")
        assert (refused.code, refused.out) == (2, ""), arguments
        assert "The value of password is empty. Nothing was sent." in refused.err
        assert "--allow-empty" in refused.err
    assert kept.values == {}
    edgewright.ok("secret", "put", *PLACE, "password", "-", "--allow-empty", typed=b"")
    assert kept.values == {"password": b""}
    edgewright.ok("secret", "put", *PLACE, "--from-literal", "user=", "--allow-empty")
    assert kept.values == {"password": b"", "user": b""}


def test_literals_files_and_env_files_are_one_commit(
    edgewright: CommandLine, kept: KeptSecret, tmp_path: Path
) -> None:
    before = kept.commits
    (tmp_path / "password").write_bytes(b"\x00\xff")
    (tmp_path / "db.env").write_bytes(b"HOST=db\n")
    literals = ("--from-literal", "user=press=1", "--from-literal", "odd=a\udcff")
    files = ("--from-file", str(tmp_path / "password"), "--from-env-file", str(tmp_path / "db.env"))
    shown = edgewright.ok("secret", "put", *PLACE, *literals, *files)
    expected = {"user": b"press=1", "odd": b"a\xff", "password": b"\x00\xff", "HOST": b"db"}
    assert kept.values == expected
    assert kept.commits == before + 1
    assert [line.startswith(NOTE) for line in shown.err.splitlines()] == [True]
    assert "4 keys of press-shop is sealed" in shown.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from-literal", MARKER), "takes KEY=VALUE"),
        (("--from-literal", f"{MARKER} x=1"), "not a key of a Secret"),
        (("--from-literal", f"={MARKER}"), "not a key of a Secret"),
        (("--from-literal", f"a={MARKER}", "--from-literal", f"a={MARKER}"), "the key a is there twice"),
        (("k", "-", "--from-literal", f"a={MARKER}"), "does not go together with"),
        (("k",), "comes from stdin or a file"),
    ],
)
def test_a_wrong_literal_is_refused_and_not_repeated(
    edgewright: CommandLine, kept: KeptSecret, arguments: tuple[str, ...], told: str
) -> None:
    shown = edgewright("secret", "put", *PLACE, *arguments, typed="x")
    assert (shown.code, shown.out) == (2, "")
    assert told in shown.err
    assert MARKER not in shown.err
    assert kept.values == {}


def test_a_value_in_the_wrong_place_that_looks_like_an_option_is_not_repeated(edgewright: CommandLine) -> None:
    for wrong in (f"-o{MARKER}", f"--{MARKER}", f"-x{MARKER}"):
        refused = edgewright("secret", "put", *PLACE, "password", wrong)
        assert (refused.code, refused.out) == (2, ""), wrong
        assert MARKER not in refused.err, wrong
