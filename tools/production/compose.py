"""``docker-compose.yml`` and ``Dockerfile`` as they are, with other hosts, ports and paths and nothing else."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+):(?P<kind>[-?])(?P<text>[^}]*)\}")


@dataclass(frozen=True)
class MachinePlaces:
    """Where on this machine the things are that the files name.

    Args:
        whole: value -> value, where nothing else stands in it.
        parts: text -> text, wherever it stands; in this order.
    """

    whole: Mapping[str, str]
    parts: Mapping[str, str]

    def placed(self, text: str) -> str:
        """A value with the places of this machine."""
        if text in self.whole:
            return self.whole[text]
        for old, new in self.parts.items():
            text = text.replace(old, new)
        return text


class ComposeFile:
    """The services as compose would start them.

    Args:
        answers: what the shell or ``.env`` would hold.
    """

    def __init__(self, answers: Mapping[str, str], places: MachinePlaces) -> None:
        parsed = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text("utf-8"))
        self._services: dict[str, dict[str, Any]] = parsed["services"]
        self._configs: dict[str, dict[str, str]] = parsed["configs"]
        self._answers = answers
        self._places = places

    def environment(self, service: str) -> dict[str, str]:
        """The variables of a service; those of the image are not among them."""
        given = self._services[service].get("environment", {})
        return {name: self._answered(str(value)) for name, value in given.items()}

    def command(self, service: str) -> list[str]:
        """What a service runs: its entrypoint and its command."""
        definition = self._services[service]
        return [self._answered(part) for part in [*definition.get("entrypoint", []), *definition["command"]]]

    def replicas(self, service: str) -> int:
        """How many there are of a service."""
        count: int = self._services[service].get("deploy", {}).get("replicas", 1)
        return count

    def config(self, name: str) -> str:
        """The content of one of the files that compose makes."""
        return self._configs[name]["content"]

    def _answered(self, text: str) -> str:
        def answer(match: re.Match[str]) -> str:
            if match["name"] in self._answers:
                return self._answers[match["name"]]
            if match["kind"] == "?":
                raise KeyError(match["name"])
            return match["text"]

        return self._places.placed(VARIABLE.sub(answer, text).replace("$$", "$"))


def image_environment(places: MachinePlaces) -> dict[str, str]:
    """The variables of Edgewright's that the image sets."""
    joined = " ".join(line for line in _last_stage() if line.startswith("ENV"))
    return {name: places.placed(value) for name, value in re.findall(r"(EDGEWRIGHT_\w+)=(\S+)", joined)}


def image_command() -> Sequence[str]:
    """What the image runs when nothing else is asked for."""
    [line] = [line for line in _last_stage() if line.startswith("CMD")]
    command: list[str] = json.loads(line.removeprefix("CMD"))
    return command


def _last_stage() -> list[str]:
    text = re.sub(r"\\\n\s*", " ", (CHECKOUT / "Dockerfile").read_text("utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return lines[max(number for number, line in enumerate(lines) if line.startswith("FROM")) :]
