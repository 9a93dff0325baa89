"""What was asked of one centre, and whether its stores hold what was answered."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded import EmbeddedEdgewright

from tools.chaos.edge_keys import make_keys
from tools.chaos.journal import Journal

VERDICT_SECONDS = 300.0


class Records:
    """The journal of everything that was asked of a centre, and the keys of its edges: files beside its home.

    A centre's own: the checker takes a cluster that it finds in the journal and not in the stores for lost.
    """

    def __init__(self, centre: EmbeddedEdgewright) -> None:
        folder = Path(centre.environment["EDGEWRIGHT_HOME"]).parent
        self._centre = centre
        self._files = folder / "journal.jsonl", folder / "edge-keys.json"
        self.journal = Journal(self._files[0])
        self.keys = make_keys(self._files[1])

    def wrong(self) -> list[str]:
        """What is broken or unfinished in the stores once all is at rest; see ``failing.verdict``."""
        home = self._centre.environment["EDGEWRIGHT_HOME"]
        done = subprocess.run(
            [*self._centre.within, sys.executable, "-m", "failing.verdict", home, *map(str, self._files)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
            timeout=VERDICT_SECONDS,
        )
        return done.stdout.splitlines() if done.returncode == 0 else [done.stderr]


@contextmanager
def running(centre: EmbeddedEdgewright) -> Iterator[Records]:
    """A centre that runs meanwhile; at the end its stores are checked."""
    try:
        centre.up()
        records = Records(centre)
        yield records
        assert records.wrong() == []
        assert centre.interrupt() == 0
        records.journal.close()
    finally:
        centre.clear_up()
