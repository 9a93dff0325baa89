"""The two commands of a newcomer, on machines that lack something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("awk", "cat", "dirname", "env", "git", "grep", "ln", "make", "mkdir", "readlink", "rm", "sh", "touch")
FAKE_UV = """#!/bin/sh
[ "$1" != --version ] || { echo "uv VERSION (of this test)"; exit 0; }
echo "$@" >>uv-was-called-with
[ -e .venv ] || new=1
mkdir -p .venv/bin
ln -sf PYTHON .venv/bin/python
[ -z "${new:-}" ] || echo "VIRTUAL_ENV='$PWD/.venv'" >.venv/bin/activate
"""


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of commands that stands for the PATH of a bare machine: no Python yet."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in COMMANDS:
        found = shutil.which(name)
        assert found is not None, name
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A checkout whose uv only notes how it was called."""
    folder = tmp_path / "check out"
    for name in ("Makefile", "pyproject.toml", "uv.lock", "bin/make-environment", "bin/edgewright", ".ci/run"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    script = (root / "bin" / "make-environment").read_text("utf-8")
    version = next(line.partition("=")[2] for line in script.splitlines() if line.startswith("uv_version="))
    _put(folder / ".tools/bin/uv", FAKE_UV.replace("VERSION", version).replace("PYTHON", sys.executable))
    return folder


def _run(*command: str | Path, cwd: Path, path: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={"PATH": str(path), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _calls_of_uv(checkout: Path) -> list[str]:
    log = checkout / "uv-was-called-with"
    return log.read_text().splitlines() if log.exists() else []


def test_without_python_a_sentence_says_what_to_install(checkout: Path, machine: Path) -> None:
    done = _run("make", "install", cwd=checkout, path=machine)
    assert done.returncode != 0
    assert "no Python 3.11 or newer was found" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_git_a_sentence_says_what_to_install(checkout: Path, machine: Path) -> None:
    (machine / "git").unlink()
    done = _run("make", "install", cwd=checkout, path=machine)
    assert done.returncode != 0
    assert "install git" in done.stderr


def test_an_old_python_and_a_broken_shim_are_passed_over(checkout: Path, machine: Path) -> None:
    _put(machine / "python3", "#!/bin/sh\nexit 1\n")
    _put(machine / "python3.11", "#!/bin/sh\necho 'shim: command not found' >&2; exit 127\n")
    (machine / "python3.13").symlink_to(sys.executable)
    done = _run("make", "install", cwd=checkout, path=machine)
    assert done.returncode == 0, done.stderr
    (call,) = _calls_of_uv(checkout)
    assert f"sync --frozen --python {machine / 'python3.13'} " in call


def test_the_environment_is_made_once_and_again_only_when_it_has_to_be(checkout: Path, machine: Path) -> None:
    (machine / "python3").symlink_to(sys.executable)
    for _ in range(2):
        assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    assert len(_calls_of_uv(checkout)) == 1
    stamp = (checkout / ".venv/.complete").stat().st_mtime
    os.utime(checkout / "uv.lock", (stamp + 5, stamp + 5))
    assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    assert len(_calls_of_uv(checkout)) == 2


def test_an_environment_that_was_moved_or_has_lost_its_python_is_made_anew(checkout: Path, machine: Path) -> None:
    (machine / "python3").symlink_to(sys.executable)
    assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    moved = checkout.rename(checkout.with_name("moved"))
    assert _run("make", "install", cwd=moved, path=machine).returncode == 0
    assert len(_calls_of_uv(moved)) == 2
    assert str(moved) in (moved / ".venv/bin/activate").read_text()
    (moved / ".venv/bin/python").unlink()
    assert _run("make", "install", cwd=moved, path=machine).returncode == 0
    assert len(_calls_of_uv(moved)) == 3


def test_an_interrupted_installation_is_not_taken_for_a_complete_one(checkout: Path, machine: Path) -> None:
    (machine / "python3").symlink_to(sys.executable)
    uv = checkout / ".tools/bin/uv"
    working = uv.read_text()
    _put(uv, working + "exit 1\n")
    failed = _run("make", "install", cwd=checkout, path=machine)
    assert failed.returncode != 0
    assert "is the package index within reach?" in failed.stderr
    _put(uv, working)
    assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    assert (checkout / ".venv/.complete").exists()


def test_the_users_settings_do_not_reach_the_tests(checkout: Path, machine: Path) -> None:
    (machine / "python3").symlink_to(sys.executable)
    assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    theirs = {"EDGEWRIGHT_HOME": "a", "EDGEWRIGHT_COMPONENTS_DIR": "b"}
    assert " test-python" in _run("make", "-n", "test", cwd=checkout, path=machine, **theirs).stdout
    shown = _run("make", "-n", "test-python", cwd=checkout, path=machine, **theirs)
    (tests,) = [line for line in shown.stdout.splitlines() if "pytest" in line]
    assert "-u EDGEWRIGHT_HOME" in tests
    assert "EDGEWRIGHT_COMPONENTS_DIR" not in tests


def test_make_alone_lists_the_commands_and_installs_nothing(checkout: Path, machine: Path) -> None:
    done = _run("make", cwd=checkout, path=machine)
    assert done.returncode == 0
    assert "make up " in done.stdout
    assert "make test " in done.stdout
    assert not (checkout / ".venv").exists()


def test_the_command_line_without_an_environment_says_how_to_make_one(checkout: Path, machine: Path) -> None:
    done = _run(checkout / "bin/edgewright", "up", cwd=machine, path=machine)
    assert done.returncode == 1
    assert "run: make -C" in done.stderr
    assert str(checkout) in done.stderr


def test_the_command_line_works_through_links_and_passes_everything_on(
    checkout: Path, machine: Path, tmp_path: Path
) -> None:
    _put(checkout / ".venv/bin/edgewright", '#!/bin/sh\nprintf "[%s]" "$@"\nexit 7\n')
    (tmp_path / "absolute").symlink_to(checkout / "bin/edgewright")
    (tmp_path / "relative").symlink_to("absolute")
    done = _run(tmp_path / "relative", "cluster", "create", "two words", cwd=machine, path=machine)
    assert done.stdout == "[cluster][create][two words]"
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("test", "real", "passes", "ran"),
    [
        ("true", "true", True, "test\ntest-real\n"),
        ("true", "false", False, "test\ntest-real\n"),
        ("false", "true", False, "test\n"),
    ],
)
def test_ci_runs_both_suites_and_fails_with_either(
    checkout: Path, tmp_path: Path, test: str, real: str, passes: bool, ran: str
) -> None:
    _put(
        checkout / "Makefile",
        f"test:\n\t@echo test >>ran; {test}\ntest-real:\n\t@echo test-real >>ran; {real}\n",
    )
    done = subprocess.run(
        [checkout / ".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode == 0) is passes
    assert (checkout / "ran").read_text() == ran


def test_ci_runs_nothing_but_the_two_suites(root: Path) -> None:
    lines = (root / ".ci/run").read_text().splitlines()
    commands = [line.strip() for line in lines if line and not line.startswith("#")]
    assert [line for line in commands if "make" in line and "printf" not in line] == ['make "$target"']
    assert "for target in test test-real; do" in commands


def test_long_tests_run_while_components_are_built_and_the_build_gives_way(checkout: Path, machine: Path) -> None:
    (machine / "python3").symlink_to(sys.executable)
    assert _run("make", "install", cwd=checkout, path=machine).returncode == 0
    shown = _run("make", "-n", "test-real", cwd=checkout, path=machine).stdout
    assert "side_by_side.py" in shown and " components" in shown and " test-long" in shown
    assert "pytest tests/real -m real" in shown
    [build] = _run("make", "-n", "components", cwd=checkout, path=machine).stdout.splitlines()
    assert " nice .venv/bin/python tests/real/components.py" in build


def test_shell_scripts_are_clean(root: Path) -> None:
    scripts = [*sorted((root / "bin").iterdir()), root / ".ci/run"]
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == ""
