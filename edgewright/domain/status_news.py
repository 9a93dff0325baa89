"""What the timeline tells of an edge status that differs from the one before.

The status itself is always stored. While an edge starts it differs every few seconds, and whoever reads the timeline
wants one line of that: so what lasts is named, whenever it changes, and what comes and goes is told once for a while.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from edgewright.domain.absence import lacking_of, missing_of, unopened_of

STIR = timedelta(minutes=5)
"""For so long a line speaks for all changes of the passing things that it names."""
READINESS, FLUX, REST = "readiness", "flux", "rest"
_PASSING = {
    READINESS: "hosts have become ready or unready",
    FLUX: "Flux says something else",
    REST: "other parts differ",
}
_APART = {"hosts", "flux", "observed_revision", "kubeseal_cert", "versions", "missing", "unknown", "unopened"}
"""Fields that are compared in a way of their own. Of the certificate, events of its own tell."""
_NAMED = 3
"""So many hosts or programs are called by name; more are counted."""
_LONGEST = 100
"""Characters of a name or version that an edge gives."""


@dataclass(frozen=True, slots=True)
class StatusNews:
    """How two edge statuses differ.

    Args:
        facts: clauses on what lasts: which hosts and programs there are, and what is applied.
        passing: which of ``READINESS``, ``FLUX`` and ``REST`` differ.
    """

    facts: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()

    def sentence(self, name: str) -> str:
        """For people, on the cluster with that name."""
        return f"The edge status of {name}: {'; '.join([*self.facts, *(_PASSING[each] for each in self.passing)])}."


def status_news(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> StatusNews:
    """How an edge status differs from the one before; None: there was none.

    Both are as an edge sent them: nothing in them is trusted to have any shape.
    """
    there, was = _hosts(now), _hosts(before or {})
    facts = [*_host_facts(was, there, is_first=before is None), *_version_facts(before or {}, now)]
    facts += _absence_facts(before or {}, now)
    revision = now.get("observed_revision")
    if isinstance(revision, str) and revision != (before or {}).get("observed_revision"):
        facts.append(f"{_word(revision)} is applied")
    return StatusNews(tuple(facts), () if before is None else tuple(_passing(before, now, was, there)))


def _host_facts(was: Mapping[str, Any], there: Mapping[str, Any], *, is_first: bool) -> Iterator[str]:
    if is_first:
        yield f"reported for the first time, with {_counted(len(there), 'host')}"
        return
    both = [name for name in there if name in was]
    yield from _clause([name for name in there if name not in was], "host", "new")
    yield from _clause([name for name in was if name not in there], "host", "gone")
    yield from _clause([name for name in both if _lasting(was[name]) != _lasting(there[name])], "host", "changed")


def _version_facts(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """None while one of them lacks all versions: an agent that has just started may not have seen them yet."""
    was, there = _versions(before), _versions(now)
    if was is None or there is None:
        return
    changed = [f"{name} {version}" for name, version in sorted(there.items()) if was.get(name) != version]
    yield from _clause(changed, "program", "new")
    yield from _clause([name for name in sorted(was) if name not in there], "program", "gone")


def _absence_facts(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    missed, misses = missing_of(before), missing_of(now)
    yield from _are([each for each in misses if each not in missed], "missing there")
    yield from _are([each for each in missed if each not in misses], "there again")
    lacked, lacks = ([each.right for each in lacking_of(status)] for status in (before, now))
    yield from _rights([each for each in lacks if each not in lacked], "lacks a right")
    yield from _rights([each for each in lacked if each not in lacks], "has a right again")
    closed, closes = ([value.place for value in unopened_of(status)[0]] for status in (before, now))
    lost, found = [each for each in closes if each not in closed], [each for each in closed if each not in closes]
    if lost:
        yield f"no key of the edge opens {_named(lost)}"
    if found:
        yield f"nothing keeps {_named(found)} closed any more"


def _are(names: Sequence[str], state: str) -> Iterator[str]:
    if names:
        yield f"{_named(names)} {'is' if len(names) == 1 else 'are'} {state}"


def _rights(rights: Sequence[str], state: str) -> Iterator[str]:
    if rights:
        yield f"its agent {state}: {_named(rights)}"


def _named(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return f"{', '.join(map(_word, names[:_NAMED]))}{f' and {left} more' if left > 0 else ''}"


def _passing(
    before: Mapping[str, Any], now: Mapping[str, Any], was: Mapping[str, Any], there: Mapping[str, Any]
) -> Iterator[str]:
    if any(was[name].get("ready") != there[name].get("ready") for name in there if name in was):
        yield READINESS
    if before.get("flux") != now.get("flux"):
        yield FLUX
    came_or_went = (_versions(before) is None) != (_versions(now) is None)
    lost = before.get("observed_revision") is not None and now.get("observed_revision") is None
    if came_or_went or lost or any(before.get(each) != now.get(each) for each in {*before, *now} - _APART):
        yield REST


def _hosts(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Hostname → what is said of it."""
    said = status.get("hosts")
    hosts = [each for each in said if isinstance(each, Mapping)] if isinstance(said, Sequence) else []
    return {str(each.get("hostname", "?")): each for each in hosts}


def _versions(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    said = status.get("versions")
    return said if isinstance(said, Mapping) else None


def _lasting(host: Mapping[str, Any]) -> Mapping[str, Any]:
    return {field: value for field, value in host.items() if field != "ready"}


def _clause(names: Sequence[str], what: str, state: str) -> Iterator[str]:
    if len(names) > _NAMED:
        yield f"{_counted(len(names), what)} are {state}"
    elif names:
        is_ = "is" if len(names) == 1 else "are"
        yield f"{what}{'' if len(names) == 1 else 's'} {', '.join(map(_word, names))} {is_} {state}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _word(text: str) -> str:
    """Without control characters, and not longer than a line bears."""
    return "".join(letter for letter in text[:_LONGEST] if letter.isprintable())
