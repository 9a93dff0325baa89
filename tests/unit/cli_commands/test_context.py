"""Logging in to centres, and which of them a command talks to."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre, Terminal

from edgewright.cli.contexts import ContextsFile, name_for
from edgewright.cli.endpoints import Endpoints, write_endpoints
from edgewright.ports.operators import Permission

NOBODYS = "ew_0123456789abcdef_" + "A" * 43


@pytest.fixture
def person(environment: dict[str, str | None], centre: ServedCentre) -> CommandLine:
    """Somebody who has not logged in anywhere, while a gateway runs."""
    return CommandLine(environment)


@pytest.fixture
def token(token_file: Callable[..., str]) -> str:
    return Path(token_file(Permission.ADMIN)).read_text().strip()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the contexts are."""
    return tmp_path / "config" / "contexts.json"


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """A server that is no gateway, and the credentials that it was sent."""
    seen: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"service": "another"}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        serving.join(30)


def test_login_keeps_a_token_that_the_gateway_knows(
    person: CommandLine, centre: ServedCentre, token: str, file: Path
) -> None:
    centre.create("press-shop")
    shown = person.ok("login", f"{centre.url}/", "--context", "munich", "--with-token", typed=f" {token}\n")
    assert shown.out == f"Logged in to {centre.url} as context munich.\n"
    assert token not in shown.out + shown.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "press-shop" in person.ok("cluster", "list").out
    document = json.loads(person.ok("context", "show", "--json").out)
    assert document == {
        "context": "munich",
        "url": centre.url,
        "chosen_by": "current context",
        "token_id": token.split("_")[1],
        "token_from": "context munich",
        "own_authorities": False,
    }
    assert token not in person.ok("context", "show").out + person.ok("context", "list", "--json").out


@pytest.mark.parametrize("permission", list(Permission))
def test_login_takes_a_token_with_any_permission(
    person: CommandLine, centre: ServedCentre, token_file: Callable[..., str], permission: Permission
) -> None:
    token = Path(token_file(permission)).read_text()
    assert person.ok("login", centre.url, "--with-token", typed=token).out.startswith("Logged in to ")


def test_token_is_typed_without_being_shown(
    environment: dict[str, str | None], centre: ServedCentre, token: str
) -> None:
    shown = Terminal(environment)("login", centre.url, "--context", "munich", typed=f"{token}\n")
    assert (shown.code, "Token: " in shown.err) == (0, True), shown
    assert shown.err.count(token) <= 1, "at most what the terminal echoed before the command began"
    assert CommandLine(environment)("cluster", "list").code == 0


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "sentence"),
    [
        (["--with-token"], NOBODYS, 6, "does not accept this token"),
        (["--with-token"], "", 6, "does not hold a token"),
        (["--with-token"], "two words", 6, "does not hold a token"),
        (["--with-token"], b"\xff\xfe", 6, "does not hold a token"),
        (["--with-token"], "x" * 100_000, 6, "does not hold a token"),
        ([], NOBODYS, 2, "no terminal"),
        (["--with-token", "--context", "local"], NOBODYS, 2, "gateway on this machine"),
        (["--with-token", "--context", "$(rm -rf /)"], NOBODYS, 2, "cannot be the name"),
        (["--with-token", "--ca-bundle", "/nonexistent"], NOBODYS, 2, "--ca-bundle: /nonexistent"),
        ([NOBODYS, "--with-token"], NOBODYS, 2, "more arguments"),
    ],
)
def test_login_that_fails_keeps_nothing(
    person: CommandLine,
    centre: ServedCentre,
    file: Path,
    arguments: list[str],
    typed: str | bytes,
    code: int,
    sentence: str,
) -> None:
    shown = person("login", centre.url, *arguments, typed=typed)
    assert (shown.code, shown.out, sentence in shown.err) == (code, "", True), shown.err
    assert NOBODYS not in shown.err
    assert not file.exists()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("edge.example.com", 2),
        ("http://edge.example.com", 2),
        ("https://user:secret@edge.example.com", 2),
        ("https://edge.example.com?x=1", 2),
        ("https://edge.example.com:99999", 2),
        ("https://[::1", 2),
        ("https://edge example.com", 2),
        ("https://$(rm -rf /)", 2),
        ("http://127.0.0.1:1", 5),
    ],
)
def test_url_that_cannot_be_used(person: CommandLine, token: str, file: Path, url: str, code: int) -> None:
    shown = person("login", url, "--with-token", typed=token)
    assert (shown.code, shown.out) == (code, ""), shown.err
    assert "secret" not in shown.err
    assert len(shown.err.splitlines()) == 2
    assert not file.exists()


def test_whoever_is_no_gateway_never_sees_the_token(
    person: CommandLine, token: str, stranger: tuple[str, list[str | None]]
) -> None:
    url, seen = stranger
    shown = person("login", url, "--with-token", typed=token)
    assert (shown.code, "not a gateway" in shown.err) == (2, True)
    assert seen == [None]


def test_two_logins_at_once_are_both_kept(
    environment: dict[str, str | None], centre: ServedCentre, token: str, file: Path
) -> None:
    names = [f"centre-{number}" for number in range(6)]
    variables = {**os.environ, **{name: value for name, value in environment.items() if value is not None}}
    for name in [name for name, value in environment.items() if value is None]:
        variables.pop(name, None)
    program = [sys.executable, "-c", "from edgewright.cli.entry import main; main()", "login", centre.url]
    running = [
        subprocess.Popen([*program, "--context", name, "--with-token"], env=variables, stdin=subprocess.PIPE)
        for name in names
    ]
    for each in running:
        assert each.stdin is not None
        each.stdin.write(token.encode())
        each.stdin.close()
    assert [each.wait(60) for each in running] == [0] * len(names)
    kept = ContextsFile(file.parent).read()
    assert sorted(kept.contexts) == names
    assert kept.current in names
    assert sorted(path.name for path in file.parent.iterdir()) == ["contexts.json", "contexts.lock"]


# --- which one --------------------------------------------------------------------------------------------------


@pytest.fixture
def two(person: CommandLine, centre: ServedCentre, token: str, file: Path) -> CommandLine:
    """Two contexts: `live` works and is current, `dead` leads to where nobody listens."""
    person.ok("login", centre.url, "--context", "live", "--with-token", typed=token)
    with ContextsFile(file.parent).changing() as contexts:
        live = contexts.contexts["live"]
        contexts.contexts["dead"] = live.model_copy(update={"url": "http://127.0.0.1:1"})
    return person


def test_stronger_word_decides(two: CommandLine, centre: ServedCentre, token: str, tmp_path: Path) -> None:
    """`--context`, then EDGEWRIGHT_CONTEXT, then EDGEWRIGHT_URL, then the current context, then `up`."""
    write_endpoints(tmp_path / "home", Endpoints("http://127.0.0.1:7", "127.0.0.1:8", "", os.getpid()))
    (tmp_path / "home" / "admin-token").write_text(NOBODYS)
    elsewhere = {"EDGEWRIGHT_URL": "http://127.0.0.1:9", "EDGEWRIGHT_TOKEN": token}

    def chosen(*arguments: str, **variables: str) -> tuple[str, str]:
        document = json.loads(two(*arguments, "context", "show", "--json", **variables).out)
        return document["chosen_by"], document["url"]

    everything = {**elsewhere, "EDGEWRIGHT_CONTEXT": "dead"}
    assert chosen("--context", "live", **everything) == ("--context", centre.url)
    assert chosen(**everything) == ("EDGEWRIGHT_CONTEXT", "http://127.0.0.1:1")
    assert chosen(**elsewhere) == ("EDGEWRIGHT_URL", "http://127.0.0.1:9")
    assert chosen() == ("current context", centre.url)
    assert chosen("--context", "local", **everything) == ("this machine", "http://127.0.0.1:7")
    assert chosen(EDGEWRIGHT_CONTEXT="local", **elsewhere) == ("this machine", "http://127.0.0.1:7")
    two.ok("context", "use", "local")
    assert chosen() == ("this machine", "http://127.0.0.1:7")


def test_token_without_a_url_never_goes_to_the_current_context(
    two: CommandLine, token: str, token_file: Callable[..., str]
) -> None:
    for variables in ({"EDGEWRIGHT_TOKEN": token}, {"EDGEWRIGHT_TOKEN_FILE": token_file(Permission.READ)}):
        shown = two("cluster", "list", **variables)
        assert (shown.code, "not running on this machine" in shown.err) == (5, True)


def test_context_sends_its_own_token_whatever_the_environment_has(two: CommandLine) -> None:
    assert two("--context", "live", "cluster", "list", EDGEWRIGHT_TOKEN=NOBODYS).code == 0
    assert two("cluster", "list", "--context", "live", EDGEWRIGHT_TOKEN=NOBODYS).code == 0
    assert two("cluster", "list", EDGEWRIGHT_CONTEXT="live", EDGEWRIGHT_TOKEN=NOBODYS).code == 0


def test_every_command_through_a_gateway_takes_a_context(two: CommandLine) -> None:
    for command in (["cluster", "list"], ["token", "list"], ["api", "GET", "/v1/cluster"], ["webhook", "show"]):
        shown = two(*command, "--context", "dead")
        assert (shown.code, "Nothing answers at http://127.0.0.1:1" in shown.err) == (5, True), command
        assert two(*command, "--context", "no-such").code == 3


def test_command_of_this_machine_takes_no_context(two: CommandLine) -> None:
    for command in ("up", "down", "doctor", "completion"):
        shown = two("--context", "live", command)
        assert (shown.code, "this machine" in shown.err) == (2, True), command


def test_token_in_the_environment(person: CommandLine, centre: ServedCentre, token: str) -> None:
    assert person("cluster", "list", EDGEWRIGHT_URL=centre.url, EDGEWRIGHT_TOKEN=f"{token}\n").code == 0
    for bad, code in ((NOBODYS, 6), ("two words", 6)):
        shown = person("cluster", "list", EDGEWRIGHT_URL=centre.url, EDGEWRIGHT_TOKEN=bad)
        assert (shown.code, "EDGEWRIGHT_TOKEN" in shown.err, bad in shown.err) == (code, True, False)


def test_two_tokens_in_the_environment_are_refused(
    person: CommandLine, centre: ServedCentre, token: str, token_file: Callable[..., str]
) -> None:
    both = {"EDGEWRIGHT_TOKEN": token, "EDGEWRIGHT_TOKEN_FILE": token_file(Permission.READ)}
    shown = person("cluster", "list", EDGEWRIGHT_URL=centre.url, **both)
    assert (shown.code, "both set" in shown.err, token in shown.err) == (2, True, False)


# --- keeping them -----------------------------------------------------------------------------------------------


def test_contexts_are_listed_used_and_removed(two: CommandLine, centre: ServedCentre) -> None:
    listed = json.loads(two.ok("context", "list", "--json").out)
    assert listed == {
        "current": "live",
        "items": [
            {"name": "dead", "url": "http://127.0.0.1:1", "logged_in": True, "current": False},
            {"name": "live", "url": centre.url, "logged_in": True, "current": True},
        ],
    }
    assert two.ok("context", "use", "dead").out == "Commands go to http://127.0.0.1:1 from now on.\n"
    rows = [line.split() for line in two.ok("context", "list").out.splitlines()]
    assert {row[0]: row[-1] for row in rows} == {"NAME": "CURRENT", "local": "no", "dead": "yes", "live": "no"}
    removed = two.ok("context", "remove", "dead")
    assert (removed.out, "this machine" in removed.err) == ("The context dead is removed.\n", True)
    assert json.loads(two.ok("context", "list", "--json").out)["current"] == "local"
    for verb in ("use", "remove", "show"):
        shown = two("context", verb, "dead")
        assert (shown.code, "You have: local, live." in shown.err) == (3, True), verb


def test_stronger_variable_is_named_when_a_context_is_chosen_in_vain(two: CommandLine) -> None:
    assert "EDGEWRIGHT_CONTEXT is set" in two("context", "use", "live", EDGEWRIGHT_CONTEXT="dead").err
    assert "EDGEWRIGHT_URL is set" in two("context", "use", "live", EDGEWRIGHT_URL="http://127.0.0.1:9").err


def test_logout_forgets_the_token_and_login_needs_no_url_again(two: CommandLine, token: str, file: Path) -> None:
    shown = two.ok("logout")
    assert (shown.out, "still valid" in shown.err) == ("Logged out of live.\n", True)
    assert ContextsFile(file.parent).read().contexts["live"].token is None
    refused = two("cluster", "list")
    assert (refused.code, "login --context live" in refused.err) == (6, True)
    two.ok("login", "--with-token", typed=token)
    assert two("cluster", "list").code == 0
    two.ok("logout", "--context", "dead")
    assert token in file.read_text(), "that of live"
    assert two("logout", "--context", "no-such").code == 3


def test_login_again_takes_the_context_that_leads_there(two: CommandLine, centre: ServedCentre, token: str) -> None:
    again = two.ok("login", centre.url, "--with-token", typed=token)
    assert again.out == f"Logged in to {centre.url} as context live.\n"


def test_login_without_a_url_and_without_a_context(person: CommandLine, token: str) -> None:
    for command in (["login", "--with-token"], ["logout"]):
        shown = person(*command, typed=token)
        assert (shown.code in {2, 4}, len(shown.err.splitlines())) == (True, 2)


@pytest.mark.parametrize("content", ["", "[]", '{"contexts": {"x": {"token": "ew_secret"}}}', "ew_secret"])
def test_damaged_file_is_named_and_nothing_of_it_is_shown(person: CommandLine, file: Path, content: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    for command in (["cluster", "list"], ["context", "list"], ["context", "use", "x"]):
        shown = person(*command)
        assert (shown.code, str(file) in shown.err, "ew_secret" in shown.err) == (1, True, False)
        assert "Traceback" not in shown.err
    assert file.read_text() == content, "nothing was overwritten"


def test_configuration_that_is_a_link_stays_one(
    person: CommandLine, centre: ServedCentre, token: str, file: Path, tmp_path: Path
) -> None:
    file.parent.mkdir()
    file.symlink_to(tmp_path / "kept-elsewhere.json")
    person.ok("login", centre.url, "--with-token", typed=token)
    assert file.is_symlink()
    assert token in (tmp_path / "kept-elsewhere.json").read_text()


def test_folder_that_cannot_be_made_is_named(person: CommandLine, centre: ServedCentre, token: str) -> None:
    shown = person("login", centre.url, "--with-token", typed=token, EDGEWRIGHT_CONFIG="/dev/null/config")
    assert (shown.code, "EDGEWRIGHT_CONFIG" in shown.err) == (1, True)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("edge.example.com", "edge.example.com"),
        ("edge.example.com:8443", "edge.example.com-8443"),
        ("[::1]:8443", "1-8443"),
        ("local", "centre"),
        ("x" * 100, "x" * 63),
    ],
)
def test_context_is_called_after_its_host(address: str, name: str) -> None:
    assert name_for(address) == name
