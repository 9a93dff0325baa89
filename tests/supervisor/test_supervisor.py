"""Parts are started, watched, restarted and stopped as promised; stand-ins take the place of the real ones."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from supervised import DIES, SERVES, STUBBORN, SupervisedHome, eventually, living

from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.parts import gateway_part, worker_part
from edgewright.cli.supervisor import NICENESS, RestartPolicy, StopRequested
from edgewright.settings import Settings


def test_parts_are_stopped_in_the_opposite_order_of_their_start(stage: SupervisedHome) -> None:
    for name in ("temporal", "worker", "gateway"):
        stage.start(name)
    stage.supervisor.stop()
    assert stage.diary() == ["gateway stopped", "worker stopped", "temporal stopped"]


def test_killed_part_is_started_again_and_a_plain_line_says_so(stage: SupervisedHome) -> None:
    first = stage.start("worker")
    os.kill(first, signal.SIGKILL)
    assert stage.supervisor.wait_for(lambda: stage.supervisor.pid_of("worker") not in {first, None}, seconds=20)
    stage.supervisor.wait_ready("worker", seconds=20)
    [line] = stage.said
    assert "worker was killed by SIGKILL" in line
    assert "worker.log" in line


def test_part_that_was_restarted_is_not_ready_before_it_says_so_again(stage: SupervisedHome) -> None:
    first = stage.start("worker")
    ready = stage.home / "worker.ready"
    ready.write_text("said by the first")
    os.kill(first, signal.SIGKILL)
    assert stage.supervisor.wait_for(lambda: stage.supervisor.pid_of("worker") not in {first, None}, seconds=20)
    stage.supervisor.wait_ready("worker", seconds=20)
    assert ready.read_text() == ""


def test_pauses_between_restarts_grow_up_to_a_bound() -> None:
    policy = RestartPolicy(first_pause=0.25, longest_pause=1.0)
    assert [policy.pause_after(deaths) for deaths in (1, 2, 3, 4, 5)] == [0.25, 0.5, 1.0, 1.0, 1.0]


def test_part_that_keeps_dying_ends_everything_and_names_its_log(stage: SupervisedHome) -> None:
    healthy = stage.start("temporal")
    stage.supervisor.start(stage.part("worker", DIES))
    with pytest.raises(CliError, match=r"worker exited with code 3, 5 times within 60 seconds") as caught:
        stage.supervisor.watch()
    assert f"{stage.home}/logs/worker.log" in (caught.value.hint or "")
    assert (caught.value.hint or "").startswith("Reason: the reason\n")
    assert len(stage.said) == 4, "four restarts, and the fifth death ends it"
    stage.supervisor.stop()
    assert not living(healthy)


def test_deaths_that_are_far_apart_do_not_add_up(tmp_path: Path) -> None:
    stage = SupervisedHome(tmp_path, policy=RestartPolicy(first_pause=0.01, longest_pause=0.01, window=0.01))
    stage.supervisor.start(stage.part("worker", DIES))
    stage.stop_soon(after=lambda: len(stage.said) >= 7)
    with pytest.raises(StopRequested):
        stage.supervisor.watch()
    stage.supervisor.stop()


def test_part_that_does_not_get_ready_in_time_is_reported(stage: SupervisedHome) -> None:
    stage.supervisor.start(stage.part("gateway", "import time; print('binding'); time.sleep(60)"))
    with pytest.raises(CliError, match="gateway was not ready") as caught:
        stage.supervisor.wait_ready("gateway", seconds=0.5)
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_program_that_is_not_there_is_reported(stage: SupervisedHome) -> None:
    part = stage.part("temporal")
    missing = type(part)(**{**vars(part), "command": ["/nonexistent/temporal"]})
    with pytest.raises(CliError, match="temporal cannot be started: /nonexistent/temporal"):
        stage.supervisor.start(missing)
    assert stage.ledger.living() == {}


def test_wish_to_stop_ends_any_waiting(stage: SupervisedHome) -> None:
    stage.start("worker")
    stage.stop_soon()
    with pytest.raises(StopRequested):
        stage.supervisor.wait_for(lambda: False, seconds=30)


def test_part_that_ignores_the_request_is_killed_after_its_grace(stage: SupervisedHome) -> None:
    pid = stage.start("worker", STUBBORN, grace=0.2)
    stage.supervisor.stop()
    assert not living(pid)


def test_second_wish_to_stop_kills_at_once(stage: SupervisedHome) -> None:
    pids = [stage.start(name, STUBBORN, grace=600) for name in ("worker", "gateway")]
    stage.signals.ask()
    stage.stop_soon()
    stage.supervisor.stop()
    assert not any(living(pid) for pid in pids)


def test_children_of_a_killed_part_die_with_it(stage: SupervisedHome) -> None:
    program = STUBBORN.replace("while", "import subprocess; subprocess.Popen(['sleep', '600'])\nwhile", 1)
    pid = stage.start("gateway", program, grace=0.2)
    eventually(lambda: psutil.Process(pid).children())
    [grandchild] = psutil.Process(pid).children()
    stage.supervisor.stop()
    eventually(lambda: not living(grandchild.pid))


def test_ctrl_c_in_the_terminal_reaches_no_part_directly(stage: SupervisedHome) -> None:
    assert os.getpgid(stage.start("worker")) != os.getpgid(0)


def test_part_that_gives_way_is_nicer_than_others_also_where_sessions_are_weighed(stage: SupervisedHome) -> None:
    stage.supervisor.start(replace(stage.part("worker"), yields=True))
    stage.supervisor.wait_ready("worker", seconds=20)
    worker, gateway = stage.supervisor.pid_of("worker"), stage.start("gateway")
    assert worker
    nice = {pid: os.getpriority(os.PRIO_PROCESS, pid) for pid in (worker, gateway)}
    assert nice[worker] == min(nice[gateway] + NICENESS, 19)
    of_sessions = Path(f"/proc/{worker}/autogroup")
    if of_sessions.exists():
        assert of_sessions.read_text().split()[-1] == str(nice[worker])


def test_worker_gives_way_and_gateway_does_not(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert (worker_part(settings).yields, gateway_part(settings).yields) == (True, False)


def test_log_keeps_what_earlier_runs_said_and_is_private(stage: SupervisedHome) -> None:
    log = stage.home / "logs" / "worker.log"
    log.write_text("earlier\n")
    stage.supervisor.start(stage.part("worker", "print('now', flush=True); import time; time.sleep(60)"))
    eventually(lambda: log.read_text() == "earlier\nnow\n")
    assert log.stat().st_mode & 0o777 == 0o600


def test_survivors_of_a_killed_run_are_ended(stage: SupervisedHome, tmp_path: Path) -> None:
    pids = [stage.start("worker"), stage.start("gateway")]
    next_run = SupervisedHome(tmp_path)
    assert next_run.ledger.end_survivors() == ["gateway", "worker"]
    # They are children of this very process here, so it has to take their exit codes.
    eventually(lambda: not any(living(pid) for pid in pids))
    assert next_run.ledger.end_survivors() == []


def test_survivor_whose_record_was_never_completed_is_found_by_its_mark(
    stage: SupervisedHome, tmp_path: Path
) -> None:
    pid = stage.start("worker")
    ledger = tmp_path / "processes.json"
    record = ledger.read_text()
    ledger.write_text(record.replace(str(pid), "null", 1))
    assert SupervisedHome(tmp_path).ledger.end_survivors() == ["worker"]
    eventually(lambda: not living(pid))


def test_other_process_that_got_the_same_number_is_left_alone(stage: SupervisedHome, tmp_path: Path) -> None:
    pid = stage.start("worker")
    created = psutil.Process(pid).create_time()
    ledger = tmp_path / "processes.json"
    ledger.write_text(ledger.read_text().replace(str(created), str(created - 3600)))
    assert SupervisedHome(tmp_path).ledger.end_survivors() == []
    assert living(pid)


@pytest.mark.parametrize("content", ["", "{", "{}", '[{"part": 1}]', "[3]"])
def test_damaged_ledger_stops_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "processes.json").write_text(content)
    assert SupervisedHome(tmp_path).ledger.end_survivors() == []


def test_nothing_is_on_record_after_a_clean_stop(stage: SupervisedHome) -> None:
    stage.start("worker", SERVES)
    assert set(stage.ledger.living()) == {"worker"}
    stage.supervisor.stop()
    assert (stage.home / "processes.json").read_text() == "[]\n"
