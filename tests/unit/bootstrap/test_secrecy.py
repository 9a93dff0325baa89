"""Secrets and the token travel on standard input only."""

import base64
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bootstrap_edge import KubectlMachine, RegistrationServer


def record_every_program(edge: KubectlMachine) -> Path:
    """Puts a recorder of arguments and environment before every program; returns the log's path."""
    log = edge.folder / "programs"
    real = edge.folder / "real"
    real.mkdir()
    env = shutil.which("env")
    for program in list(edge.bin.iterdir()):
        shutil.move(program, real / program.name)
        record = f"{{ printf '%s\\n' 'PROGRAM {program.name}' \"$@\"; {env}; }} >>{log}"
        edge.program(program.name, f'{record}\nexec {real / program.name} "$@"')
    return log


def forms(marker: str) -> list[str]:
    return [marker, base64.b64encode(marker.encode()).decode().rstrip("=")]


def test_no_program_sees_a_secret_in_its_arguments_or_environment(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    log = record_every_program(edge)
    exported = {"token": "", "flux": "", "agent": "", "made": "", "found": ""}  # same names as in the script
    script = edge.render(before="env", after="env", ca_bundle="-----BEGIN CERTIFICATE-----\n")
    done = edge.run("--yes", script=script, environment=exported)
    assert done.returncode == 0
    again = edge.run("--yes", script=script, environment=exported)
    [first, second] = centre.requests
    assert first["flux_secret"] == second["flux_secret"]

    seen = log.read_text()
    assert {"kubectl", "curl", "base64", "od"} <= set(re.findall("^PROGRAM (.*)$", seen, re.MULTILINE))
    assert "--config" in seen and edge.cluster_uuid in seen  # the search finds what is there
    outputs = done.stdout + done.stderr + again.stdout + again.stderr
    for marker in (edge.token, first["flux_secret"], first["agent_secret"]):
        for form in forms(marker):
            assert form not in seen
            assert form not in outputs


@pytest.mark.parametrize("refused", ["flux-secrets", "edgewright-agent"])
def test_message_of_kubectl_is_shown_without_the_secret_in_it(edge: KubectlMachine, refused: str) -> None:
    edge.set_cluster(refused=[refused])
    done = edge.run("--yes")
    assert done.returncode == 3
    assert f"{refused} is refused: ***" in done.stderr


def test_trace_of_the_shell_shows_no_secret(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.shell = [*edge.shell, "-x"]
    done = edge.run("--yes")
    assert done.returncode == 0
    assert edge.token not in done.stderr
    assert centre.requests[0]["flux_secret"] not in done.stderr


def test_answer_of_the_centre_cannot_write_control_characters_to_the_terminal(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    centre.answers = [(403, '{"detail": "No.\x1b[2J\x07 Really \\u001b[1m no."}')]
    done = edge.run("--yes")
    assert done.returncode == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", done.stderr)


def test_two_edges_never_make_the_same_secret(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.run("--yes")
    for name in ("flux-secrets", "edgewright-agent"):
        edge.drop(f"Secret/edgewright/{name}")
    edge.run("--yes")
    secrets = [request[key][4:] for request in centre.requests for key in ("flux_secret", "agent_secret")]
    assert len(set(secrets)) == 4


def test_hexdump_stands_in_where_there_is_no_od(edge: KubectlMachine, centre: RegistrationServer) -> None:
    (edge.bin / "od").unlink()
    fake = edge.folder / "hexdump.py"  # not every machine has hexdump; this is what it prints for these options
    fake.write_text(
        "import sys; assert sys.argv[1:6] == ['-v','-n','32','-e','1/1 \"%02x\"'], sys.argv\n"
        "print(open(sys.argv[6],'rb').read(32).hex(), end='')\n"
    )
    edge.program("hexdump", f'exec {sys.executable} -I -S {fake} "$@"')
    assert edge.run("--yes").returncode == 0
    assert re.fullmatch(r"ewf_[0-9a-f]{64}", centre.requests[0]["flux_secret"])


def test_dead_random_source_stops_the_script(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.program("od", "exit 0")
    done = edge.run("--yes")
    assert done.returncode == 3
    assert centre.requests == []


def test_files_of_the_script_are_private_and_removed(edge: KubectlMachine) -> None:
    marks = edge.folder / "marks"
    edge.program("probe", f'cd "$TMPDIR" && {shutil.which("ls")} -ld . hooks/before >{marks}')
    assert edge.run("--yes", script=edge.render(before="probe")).returncode == 0
    modes = [line.split()[0][:10] for line in marks.read_text().splitlines()]
    assert modes == ["drwx------", "-rw-------"]
    assert list(Path(edge.tmp).iterdir()) == []


def test_nothing_is_left_when_whoever_reads_goes_away(edge: KubectlMachine) -> None:
    """``… | sh | head -1``: some shells end at once when their output is closed, without their EXIT trap."""
    for options in (["--dry-run"], ["--yes"]):
        running = subprocess.Popen(
            [*edge.shell, "-s", "--", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=edge.environment(),
            start_new_session=True,
            text=True,
        )
        assert running.stdout and running.stdin
        running.stdout.close()
        running.stdin.write(edge.render())
        running.stdin.close()
        assert running.wait(timeout=60) != 0
        assert list(Path(edge.tmp).iterdir()) == []
