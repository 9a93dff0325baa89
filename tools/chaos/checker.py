"""Computes from the stores alone whether every answered request holds."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.chaos.check_centre import check_centre, check_feed, check_names, members_left
from tools.chaos.check_events import check_events, check_unique
from tools.chaos.check_pushes import check_pushes
from tools.chaos.check_put_backs import check_put_backs
from tools.chaos.check_repository import check_repository
from tools.chaos.check_secrets import check_secrets
from tools.chaos.check_upgrades import check_limit, check_upgrades
from tools.chaos.check_wishes import check_wishes
from tools.chaos.edge_keys import EdgeKey, read_keys
from tools.chaos.evidence import Case, Violation, cases_of
from tools.chaos.journal import JournalLine, read_lines
from tools.chaos.put_backs import PutBack, read_put_backs
from tools.chaos.stores import Stores, read_stores


def check(home: Path, journal: Path, keys: Path) -> list[Violation]:
    """Every broken promise; the centre of the home has to be stopped.

    Args:
        keys: the private keys of the edges.
    """
    return check_stores(read_stores(home), read_lines(journal), read_keys(keys), read_put_backs(journal))


def check_stores(
    stores: Stores, lines: Sequence[JournalLine], keys: Sequence[EdgeKey], put_backs: Sequence[PutBack] = ()
) -> list[Violation]:
    """The same, of stores that were read before."""
    cases = cases_of(stores, lines, keys, put_backs)
    return [*_everywhere(stores), *(violation for case in cases for violation in _of_cluster(case))]


def _everywhere(stores: Stores) -> Iterator[Violation]:
    yield from check_names(stores)
    yield from check_feed(stores)
    yield from check_unique(stores)
    yield from check_limit(stores)
    for row in members_left(stores):
        yield Violation("member_left", row["object"], "is a member of a class, and no object")


def _of_cluster(case: Case) -> Iterator[Violation]:
    yield from check_wishes(case)
    yield from check_centre(case)
    yield from check_repository(case)
    yield from check_secrets(case)
    yield from check_pushes(case)
    yield from check_put_backs(case)
    yield from check_upgrades(case)
    yield from check_events(case)
