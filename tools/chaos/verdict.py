"""What came of a run: its figures, and every promise that it broke."""

from collections import Counter
from collections.abc import Iterator

from tools.chaos.checker import check_stores
from tools.chaos.edge_keys import read_keys
from tools.chaos.journal import read_lines
from tools.chaos.put_backs import read_put_backs
from tools.chaos.run import Ran


def broken_promises(ran: Ran) -> list[str]:
    """One line each; none if every answered request holds and nothing is left to be done."""
    violations = check_stores(ran.stores, read_lines(ran.journal), read_keys(ran.keys), read_put_backs(ran.journal))
    return [*(f"not settled: {left}" for left in ran.left), *map(str, violations)]


def report(ran: Ran) -> Iterator[str]:
    """What happened, one line each."""
    killed = ", ".join(f"{part} {count}" for part, count in sorted(ran.kills.items()))
    yield f"{sum(ran.kills.values())} kills ({killed}) in {ran.seconds:.0f} s"
    if ran.put_back:
        yield f"Temporal's file put back {ran.put_back} times"
    if put_backs := read_put_backs(ran.journal):
        yield f"repositories put back {len(put_backs)} times"
    lines = read_lines(ran.journal)
    yield f"{len(lines)} answers and missing answers about {len({line.cluster for line in lines} - {''})} clusters"
    for verb, of_verb in sorted(_by_verb(ran).items()):
        yield f"  {verb:<10} yes {of_verb['yes']:>6}  no {of_verb['no']:>5}  maybe {of_verb['maybe']:>5}"


def _by_verb(ran: Ran) -> dict[str, Counter[str]]:
    counted: dict[str, Counter[str]] = {}
    for line in read_lines(ran.journal):
        counted.setdefault(line.verb, Counter())[line.outcome] += 1
    return counted
