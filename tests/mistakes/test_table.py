"""150 mistakes and more, each with its whole answer: what is typed or sent is run for real, at each door.

The rows are in ``table``, a file per door. After a change that is meant, write the answers anew and read them::

    WRITE_MISTAKES=1 .venv/bin/python -m pytest tests/mistakes/test_table.py -n 0
"""

import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from bootstrap_edge import SHELLS, KubectlMachine, RegistrationServer
from command_line import CommandLine, Shown
from loopback import PLAIN
from mistake_stage import CHECKOUT, MistakeStage
from mistake_table import Mistake, MistakeAnswer, filled, hold, rows_of
from signal_desk import play_signal
from varying import DIGEST, TOKEN, UUID

from edgewright.cli import main as cli
from edgewright.cli.failures import CliError, lines_of, of_status, tell

LEAST_ROWS = 150
WIDTH = 80
NAME = "edgewright: "
FOREIGN = re.compile(
    r"Value error|Input should|String should|pydantic|httpx|jsonschema|[Tt]yper\b|[Cc]lick\b|asyncpg|sqlalchemy|"
    r"Traceback|Errno|Exception|NoneType|<class|object at 0x|\^|\\[dws]|\(\?|\{\d",
    re.IGNORECASE,
)
"""What no reader should have to know: libraries, their classes, regular expressions."""
ADVICE = re.compile(
    r"\b(must|is required|takes|Give|[Uu]se|Name|Send|Correct|Leave|Did you mean|only|has to|not a field|are a|"
    r"is 1 to)\b"
)
"""A sentence that says itself what to do needs no hint."""
NOW = re.compile(r"\b(?!2031)20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""Any moment but that of our examples."""
VARIES = (
    (UUID, "{uuid}"),
    (NOW, "{time}"),
    (DIGEST, "{digest}"),
    (TOKEN, "{token}"),
    (re.compile(r"(?<=column )\d+"), "{number}"),  # of a wrong comma, versions of Python see another one
    (re.compile(r"(?<=taken by )\S+ \(pid \d+\)"), "{program}"),
    (re.compile(r"(?<=this machine has )[^.].*(?=\.$)", re.MULTILINE), "{addresses}"),
)
GIT_SAYS = re.compile(r"^(remote|fatal): ")
HEADER = re.compile(r"([A-Z][A-Za-z-]*):(?: (.*))?")

Player = Callable[[MistakeStage, Mistake], MistakeAnswer]


# --- the doors -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypedLine:
    """A command as a shell would take it apart."""

    variables: dict[str, str]
    arguments: list[str]
    stdin: bytes


def typed_line(stage: MistakeStage, mistake: Mistake) -> TypedLine:
    [line] = mistake.given
    words, variables, stdin = shlex.split(filled(line, stage.places)), dict[str, str](), b""
    while words[0] != "edgewright":
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if words[-2] == "<":
        stdin = (stage.folder / words[-1]).read_bytes()
        words = words[:-2]
    return TypedLine(variables, words[1:], stdin)


def run(stage: MistakeStage, line: TypedLine, *more: str) -> Shown:
    """Runs it in this process, without a terminal."""
    environment = CommandLine({**stage.environment, **line.variables})
    return environment(*line.arguments, *more, typed=line.stdin)


def play_typed(stage: MistakeStage, mistake: Mistake) -> MistakeAnswer:
    """A command line, and the code that its error has."""
    codes: list[str] = []

    def told(error: CliError, arguments: list[str]) -> int:
        codes.append(error.code)
        return tell(error, arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "tell", told)
        shown = run(stage, typed_line(stage, mistake))
    return MistakeAnswer(shown.code, codes[0] if codes else "-", steady(stage, shown.err))


def play_sent(stage: MistakeStage, mistake: Mistake) -> MistakeAnswer:
    """A request, with the administrator's token unless it says another one."""
    method, _, path = filled(mistake.given[0], stage.places).partition(" ")
    headers, body = {"Authorization": f"Bearer {stage.admin}"}, list(mistake.given[1:])
    while body and (header := HEADER.fullmatch(body[0])):
        headers[header[1]] = filled(header[2] or "", stage.places)
        body.pop(0)
    if headers["Authorization"] == "-":
        del headers["Authorization"]
    content = filled("\n".join(body), stage.places).encode()
    if content:
        headers.setdefault("Content-Type", "application/json")
    answer = httpx.request(method, f"{stage.live.url}{path}", headers=headers, content=content, timeout=60, **PLAIN)
    if not answer.headers.get("Content-Type", "").endswith("json") or answer.is_success:
        return MistakeAnswer(answer.status_code, "-", steady(stage, answer.text))
    problem = answer.json()
    hints = [f"  {line}" for line in problem.get("hint", "").splitlines()]
    told = steady(stage, "\n".join([problem["detail"], *hints]))
    return MistakeAnswer(answer.status_code, problem["code"], told)


def play_shell(stage: MistakeStage, mistake: Mistake) -> MistakeAnswer:
    """A command in a shell of its own: what only whole processes do."""
    path = f"{CHECKOUT / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return in_shell(stage, mistake, stage.folder, {"PATH": path, **stage.environment})


def play_git(stage: MistakeStage, mistake: Mistake, tmp_path: Path) -> MistakeAnswer:
    """Git, in a fresh clone; of what it says, what comes from the centre, and its own last word."""
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C", "NO_PROXY": "*"}
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Desk\n\temail = desk@example.com\n")
    url = filled("{git-url}/cluster/press-shop", stage.places)
    subprocess.run(["git", "clone", "-q", url, "work"], cwd=tmp_path, env={**home, **quiet}, check=True, timeout=60)
    answer = in_shell(stage, mistake, tmp_path / "work", {**home, **quiet})
    return MistakeAnswer(answer.status, "-", tuple(line for line in answer.shown if GIT_SAYS.match(line)))


def play_bootstrap(stage: MistakeStage, mistake: Mistake, tmp_path: Path) -> MistakeAnswer:
    """A bootstrap line, on a machine with a stand-in for kubectl."""
    machine = KubectlMachine(tmp_path / "edge", SHELLS[sorted(SHELLS)[0]], RegistrationServer(url=stage.live.url))
    lines = []
    for line in mistake.given:
        if line.startswith("./cluster "):
            name, _, value = filled(line.removeprefix("./cluster "), stage.places).partition("=")
            change_cluster(machine, name, value)
        else:
            lines.append(line)
    left = Mistake(mistake.door, mistake.about, tuple(lines), mistake.answer)
    return in_shell(stage, left, machine.folder, machine.environment())


def change_cluster(machine: KubectlMachine, name: str, value: str) -> None:
    if name == "anchor":
        machine.put("ClusterRole/edgewright-anchor", {"cluster": value, "generation": "1"})
    else:
        given: dict[str, object] = {"forbidden": [value.replace("-", " ")], "reachable": False, "version": value}
        machine.set_cluster(**{name: given[name]})


def in_shell(stage: MistakeStage, mistake: Mistake, folder: Path, environment: dict[str, str]) -> MistakeAnswer:
    """What a shell prints on stderr, in a session without a terminal."""
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", filled("\n".join(mistake.given), stage.places)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        text=True,
        timeout=100,
        check=False,
    )
    return MistakeAnswer(done.returncode, "-", steady(stage, done.stderr))


def steady(stage: MistakeStage, text: str) -> tuple[str, ...]:
    """What is shown, line by line, without what is another in each run."""
    text = stage.named(text)
    for pattern, placeholder in VARIES:
        text = pattern.sub(placeholder, text)
    return tuple(line.rstrip() for line in text.strip("\n").splitlines())


TYPED = ("commands", "secrets", "reaching", "settings")
SENT = ("requests", "bodies")
SIGNALLED = ("signals",)
ROWS = {door: rows_of(door) for door in (*TYPED, *SENT, *SIGNALLED, "machine", "git", "bootstrap")}


def of(*doors: str) -> pytest.MarkDecorator:
    rows = [row for door in doors for row in ROWS[door]]
    return pytest.mark.parametrize("mistake", rows, ids=[row.id for row in rows])


@of(*TYPED)
def test_what_is_typed_is_answered(stage: MistakeStage, mistake: Mistake) -> None:
    hold(mistake, play_typed(stage, mistake))


@of(*SENT)
def test_what_is_sent_is_answered(stage: MistakeStage, mistake: Mistake) -> None:
    hold(mistake, play_sent(stage, mistake))


@of(*SIGNALLED)
async def test_what_a_signal_meets_is_told(temporal: str, tmp_path: Path, mistake: Mistake) -> None:
    hold(mistake, await play_signal(tmp_path, temporal, mistake))


@of("machine")
def test_what_a_whole_process_gets_is_answered(stage: MistakeStage, mistake: Mistake) -> None:
    hold(mistake, play_shell(stage, mistake))


@of("git")
def test_what_git_does_is_answered(stage: MistakeStage, mistake: Mistake, tmp_path: Path) -> None:
    hold(mistake, play_git(stage, mistake, tmp_path))


@of("bootstrap")
def test_what_a_bootstrap_line_meets_is_answered(stage: MistakeStage, mistake: Mistake, tmp_path: Path) -> None:
    hold(mistake, play_bootstrap(stage, mistake, tmp_path))


# --- all rows together ---------------------------------------------------------------------------------------------


def answered() -> Iterator[tuple[Mistake, MistakeAnswer]]:
    for row in (row for rows in ROWS.values() for row in rows):
        assert row.answer is not None, row.id
        yield row, row.answer


def told(row: Mistake, answer: MistakeAnswer) -> tuple[str, list[str]]:
    """Sentence and hints; of the command line, without its name and without what it has said before."""
    lines = list(answer.shown)
    if row.door in TYPED:
        lines = lines[next(number for number, line in enumerate(lines) if line.startswith(NAME)) :]
    return lines[0].removeprefix(NAME), [hint.strip() for hint in lines[1:]]


def test_there_are_enough_rows_and_each_is_another() -> None:
    rows = [row for row, _ in answered()]
    assert len(rows) >= LEAST_ROWS
    assert len({(row.door, row.given) for row in rows}) == len(rows)


def test_no_answer_needs_more_than_english() -> None:
    for row, answer in answered():
        assert answer.shown or answer.status == 0, row.id
        assert FOREIGN.search("\n".join(answer.shown)) is None, row.id


def test_every_sentence_ends_and_says_what_to_do() -> None:
    for row, answer in answered():
        if row.door in {*TYPED, *SENT, *SIGNALLED} and answer.shown:
            sentence, hints = told(row, answer)
            assert sentence.endswith((".", "?")), row.id
            assert hints or ADVICE.search(sentence), f"{row.id}: {sentence}"


def test_no_secret_is_repeated() -> None:
    for row, answer in answered():
        assert "s3cr3t" not in "\n".join(answer.shown), row.id


def test_one_mistake_has_one_exit_code_whichever_door_finds_it() -> None:
    codes = defaultdict[str, set[int]](set)
    for row, answer in answered():
        if row.door in {*TYPED, *SENT}:
            codes[row.about].add(of_status(answer.status) if row.door in SENT else answer.status)
    assert {about: found for about, found in codes.items() if len(found) > 1} == {}


@of(*TYPED)
def test_json_is_answered_where_json_is_asked_for(stage: MistakeStage, mistake: Mistake) -> None:
    line = typed_line(stage, mistake)
    if not takes_json(line.arguments) or line.arguments[-1] == "--label":  # whose value --json would be
        return
    assert mistake.answer is not None
    shown = run(stage, line, "--json")
    error = json.loads(shown.err.splitlines()[-1])
    assert set(error) == {"code", "detail", "hint", "exit_code"}
    assert (error["code"], error["exit_code"], shown.code) == (mistake.answer.code, shown.code, mistake.answer.status)
    assert steady(stage, f"edgewright: {error['detail']}")[0] in mistake.answer.shown
    assert shown.out == ""


def takes_json(arguments: list[str]) -> bool:
    """Whether what the arguments name has the option, or names no command."""
    command: Any = cli.command_tree()
    for word in arguments:
        if word.startswith("-") or not hasattr(command, "commands"):
            break
        if word not in command.commands:
            return True
        command = command.commands[word]
    return any(parameter.name == "as_json" for parameter in command.params)


def test_no_line_is_wider_than_the_terminal() -> None:
    for row, answer in answered():
        if row.door not in {*TYPED, *SENT}:
            continue
        sentence, hints = told(row, answer)
        for line in lines_of(CliError(sentence, "\n".join(hints)), WIDTH):
            longest = max(map(len, re.findall(r"`[^`]*`\S*|\S+", line)))
            assert len(line) <= max(WIDTH, longest + len(NAME)), f"{row.id}: {line}"
