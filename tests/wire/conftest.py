"""Programs that others wrote, in Node; all come with ``make test``, none is skipped."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from live_gateway import LiveGateway, live_gateway
from npm_packages import NODE, node_workshop

HERE = Path(__file__).parent

NodeAnswers = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of this folder beside the packages that they import."""
    return node_workshop(HERE, tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="session")
def ask_node(workshop: Path) -> NodeAnswers:
    """Sends requests to sealed_values.cjs in one Node process; one answer for each, in order."""

    def ask(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(
            [NODE, workshop / "sealed_values.cjs"],
            input=lines.encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    """A gateway on a real socket, one for each module."""
    with live_gateway(tmp_path_factory.mktemp("live")) as gateway:
        yield gateway
