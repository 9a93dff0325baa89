"""What the whole life of a cluster leaves behind."""

from dataclasses import dataclass
from pathlib import Path

from markers import Marker, Place
from process_watch import ProcessWatch


@dataclass(frozen=True)
class Remains:
    """What a life leaves behind.

    Args:
        home: of a centre that was stopped.
        surroundings: the folder for temporary files and the home of the user that ran it.
        calls: arguments and environments of programs that are over too soon to be looked at.
        while_running: what described the processes while they ran.
    """

    home: Path
    surroundings: Path
    markers: list[Marker]
    heard: list[Place]
    watch: ProcessWatch
    calls: list[Place]
    while_running: list[Place]
