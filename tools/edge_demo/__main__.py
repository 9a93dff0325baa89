"""``make edge-demo`` and ``make edge-demo-down``: starts it in the background, or says that it runs; ends it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from components import build
from filelock import FileLock
from left_behind import MARK as OF_THE_DEMO
from left_behind import end
from module_files import FOLDERS, helm_definitions, module_folder
from platformdirs import user_data_path
from workshop import ComponentMissing, workshop

from edgewright.cli.failures import CliError
from edgewright.cli.ledger import MARK, ProcessLedger
from tools.edge_demo.stage import COMPONENTS, PATIENCE, running

SERVER = "demo"
READY_SECONDS = 3 * PATIENCE
STOP_SECONDS = 120


def main() -> int:
    """The exit code."""
    os.umask(0o077)
    folder = user_data_path("edgewright-edge-demo", appauthor=False)
    if sys.argv[1:] == ["serve"]:
        return serve(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_suffix(".lock")
    with FileLock(lock):
        code = up(folder) if sys.argv[1:] == ["up"] else down(folder)
    if not folder.exists():
        lock.unlink(missing_ok=True)
    return code


def up(folder: Path) -> int:
    """Starts it, unless it runs; says what to try."""
    if (folder / "ready").is_file() and ProcessLedger(folder).living():
        say((folder / "ready").read_text())
        return 0
    clear(folder)
    try:
        with workshop(say) as shop:
            build(COMPONENTS, shop)
            for name in FOLDERS:
                module_folder(name, say=say, shop=shop)
            helm_definitions(say=say, shop=shop)
    except ComponentMissing as error:
        say(str(error))
        return 1
    folder.mkdir()
    ledger = ProcessLedger(folder)
    mark = ledger.open_record(SERVER)
    (folder / "mark").write_text(mark)
    log = folder / "demo.log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, "-u", "-m", "tools.edge_demo", "serve"],
            env={**os.environ, MARK: mark, OF_THE_DEMO: mark},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    ledger.complete_record(SERVER, server.pid)
    try:
        if follow(server, log, folder / "ready"):
            return 0
    except KeyboardInterrupt:
        say("Stopping.")
    clear(folder)
    return 1


def follow(server: "subprocess.Popen[bytes]", log: Path, ready: Path) -> bool:
    """Says what it says until it is ready; False: it has ended instead, or takes too long."""
    until = time.monotonic() + READY_SECONDS
    with log.open() as said:
        while time.monotonic() < until:
            ended = server.poll() is not None
            done = ready.is_file()
            sys.stdout.write(said.read())
            sys.stdout.flush()
            if done or ended:
                return done
            time.sleep(0.1)
    return False


def down(folder: Path) -> int:
    """Ends it; says so, whether it ran or not."""
    ran = folder.exists()
    clear(folder)
    say("It is stopped, and nothing is left." if ran else "It does not run.")
    return 0


def clear(folder: Path) -> None:
    """Leaves neither process nor file, whatever state it is in."""
    server = ProcessLedger(folder).living().get(SERVER)
    if server is not None:
        process = psutil.Process(server)
        process.terminate()
        psutil.wait_procs([process], timeout=STOP_SECONDS)
    for ledger in (folder, folder / "cluster", folder / "centre"):
        if ledger.is_dir():
            ProcessLedger(ledger).end_survivors()
    if (folder / "mark").is_file():
        end((folder / "mark").read_text())
    shutil.rmtree(folder, ignore_errors=True)


def serve(folder: Path) -> int:
    """The process that all else belongs to."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with running(folder, say) as stage:
            text = stage.farewell()
            say(text)
            draft = folder / "ready.new"
            draft.write_text(text)
            draft.replace(folder / "ready")
            stage.go_on()
    except CliError as error:
        say(f"{error}\n{error.hint or ''}".rstrip())
    except (ComponentMissing, RuntimeError) as error:
        say(str(error))
    return 1


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
