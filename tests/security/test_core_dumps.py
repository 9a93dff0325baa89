"""A program that dies leaves no image of its memory, in which secrets are in clear."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from free_ports import free_port
from supervised import eventually

PROGRAMS = ("api", "worker", "edgewright.agent")
ASKS = """
import ctypes, resource
from edgewright.core_dumps import forbid_core_dumps
before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
forbid_core_dumps()
print(before, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE))
"""


def test_neither_a_file_nor_a_program_gets_a_dump() -> None:
    told = subprocess.run([sys.executable, "-P", "-c", ASKS], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split(maxsplit=2)[1:] == ["0", "(0, 0)\n"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_forbids_core_dumps(tmp_path: Path, program: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    told = {
        "EDGEWRIGHT_HOME": str(tmp_path),
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
        "EDGEWRIGHT_TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}",
    }
    witness = tmp_path / "sitecustomize.py"
    witness.write_text(
        "import edgewright.core_dumps as them, sys\n"
        f"them.forbid_core_dumps = lambda: (open({str(tmp_path / 'forbidden')!r}, 'w').close(), sys.exit(7))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", program],
        env={**kept, **told, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: process.poll() is not None)
        assert (tmp_path / "forbidden").exists()
    finally:
        process.kill()
        process.wait()
