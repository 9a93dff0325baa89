"""Who must not notice: edges that beat and poll, and an application team that writes secrets."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from bench.agent_load import Answers, Task, Write, described

KINDS = ("beats", "polls", "secrets")
WATCHED = ("heartbeat", "poll", "secret")
"""What is compared; a status goes with a heartbeat now and then, too seldom for a p99."""
NOTHING = Answers().told(1.0)
"""The answers to a kind of request that nobody made in so short a time."""


@dataclass(frozen=True)
class Noticed:
    """What bystanders saw during one phase, by kind of request.

    Args:
        p50, p99, answered: after the first interval, in which all begin; seconds.
        failed: code -> how often, from the beginning.
        writes: of secrets, in the order of those that wrote them.
    """

    p50: Mapping[str, float]
    p99: Mapping[str, float]
    answered: Mapping[str, int]
    failed: Mapping[str, Mapping[str, int]]
    writes: Sequence[Write]


def worse(one: Noticed, other: Noticed) -> Noticed:
    """What counts of two rounds of the same length: of each kind of request, the slower and rarer answers."""
    failed = {kind: Counter(codes) for kind, codes in one.failed.items()}
    for kind, codes in other.failed.items():
        failed.setdefault(kind, Counter()).update(codes)
    return Noticed(
        p50={kind: max(seconds, other.p50[kind]) for kind, seconds in one.p50.items()},
        p99={kind: max(seconds, other.p99[kind]) for kind, seconds in one.p99.items()},
        answered={kind: min(number, other.answered[kind]) for kind, number in one.answered.items()},
        failed=failed,
        writes=[*one.writes, *other.writes],
    )


class Bystanders:
    """One process for each kind; all begin together."""

    def __init__(self, task: Task) -> None:
        self._crowds = {kind: self._start(kind, task) for kind in KINDS}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._crowds.values():
            process.kill()
            process.wait()

    def begin(self) -> None:
        """Waits until all are ready, and lets them live."""
        for process in self._crowds.values():
            assert _heard(process) == "ready"
        for process in self._crowds.values():
            _say(process, "begin")

    def noticed(self) -> Noticed:
        """Waits until their time is over; returns what they saw."""
        told: dict[str, Any] = {}
        failed: dict[str, Counter[str]] = {}
        writes: list[Write] = []
        for process in self._crowds.values():
            outcome = json.loads(_heard(process))
            told |= outcome["rounds"]["later"]
            for answers in outcome["rounds"].values():
                for request, answer in answers.items():
                    failed.setdefault(request, Counter()).update(answer["failed"])
            writes += [Write(**write) for write in outcome["writes"]]
        return Noticed(
            p50={kind: told.get(kind, NOTHING)["p50"] for kind in WATCHED},
            p99={kind: told.get(kind, NOTHING)["p99"] for kind in WATCHED},
            answered={kind: told.get(kind, NOTHING)["answered"] for kind in WATCHED},
            failed={request: codes for request, codes in failed.items() if codes},
            writes=writes,
        )

    @staticmethod
    def _start(kind: str, task: Task) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "bench.agent_load", kind]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _say(process, described(task))
        return process


def _say(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()
