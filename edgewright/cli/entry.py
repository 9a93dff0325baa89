"""Where `edgewright` begins: it loads the command line while the garbage collector rests."""

import gc
from typing import NoReturn

SELDOM = 100_000
"""Objects after which the collector works: some commands load more than that once they know what they need."""


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits: see ``edgewright.cli.main``.

    Nothing of what is loaded is garbage. Looking through it, while it is loaded and once more at the end, takes two
    fifths of what a short command takes in all.
    """
    gc.disable()
    from edgewright.cli.main import main as run  # noqa: PLC0415 - loaded while the collector rests

    gc.freeze()
    gc.set_threshold(SELDOM)
    gc.enable()
    run()
