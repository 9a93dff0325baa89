"""What the timeline tells of an edge status that differs from the one before.

The status itself is always stored. While an edge starts it differs every few seconds, and whoever reads the timeline
wants one line of that: so what lasts is named, whenever it changes, and what comes and goes is told once for a while.
So is what fails: once for each object, and once that it fails no more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from edgewright.domain.absence import lacking_of, missing_of, silent_of, unopened_of
from edgewright.domain.delivery import flux_findings, state_of
from edgewright.domain.edge_status import EdgeStatus, FluxObject, FluxReport
from edgewright.domain.health import Finding
from edgewright.domain.opened_secrets import SECRETS_FIELD

STIR = timedelta(minutes=5)
"""For so long a line speaks for all changes of the passing things that it names."""
READINESS, FLUX, REST = "readiness", "flux", "rest"
_PASSING = {READINESS: "hosts have become ready or not ready", REST: "other details have changed"}
_LACKS = {"missing", "unknown", "silent", "unopened"}
_APART = {
    *("hosts", "flux", "observed_revision", "kubeseal_cert", "versions", "flux_is_ours", "anchor", SECRETS_FIELD),
    *_LACKS,
}
"""Fields that are compared in a way of their own. Of certificate and secrets, events of their own tell; whose Flux
and which anchor there is changes with an attachment, of which there are events, too."""
_IMAGE = "agent-image"
"""Among the programs, what the agent runs from."""
_NAMED = 3
"""So many hosts or programs are called by name; more are counted."""
_LONGEST = 100
"""Characters of a name or version that an edge gives."""
_LONGEST_IMAGE = 300
"""Characters of an image, whose end tells it from others."""
_LONGEST_SENTENCE = 300
"""Characters of what Flux says: a line of the timeline is to be read at a glance."""


@dataclass(frozen=True, slots=True)
class StatusNews:
    """How two edge statuses differ.

    Args:
        facts: clauses on what lasts: which hosts and programs there are, and what is applied.
        passing: clauses on what comes and goes, each with what it is about: ``READINESS``, ``FLUX``, ``REST``, or an
            object that fails or does not any more.
    """

    facts: tuple[str, ...] = ()
    passing: tuple[tuple[str, str], ...] = ()

    @property
    def matters(self) -> tuple[str, ...]:
        """What the passing clauses are about."""
        return tuple(matter for matter, _ in self.passing)

    def sentence(self, name: str) -> str:
        """For people, on the cluster with that name."""
        clauses = [*self.facts, *(clause for _, clause in self.passing)]
        return f"The edge status of {name}: {'; '.join(each.removesuffix('.') for each in clauses)}."


def status_news(before: EdgeStatus | None, now: EdgeStatus) -> StatusNews:
    """How an edge status differs from the one before; None: there was none.

    Of members that nobody here knows, only that they differ is told: of them, the documents are compared.
    """
    earlier = before or EdgeStatus()
    there, was = _hosts(now), _hosts(earlier)
    facts = [*_host_facts(was, there, is_first=before is None), *_version_facts(earlier, now)]
    facts += _absence_facts(earlier, now)
    revision = now.observed_revision
    if revision is not None and revision != earlier.observed_revision:
        facts.append(f"{_word(revision)} is applied")
    failures = tuple(_failures(earlier, now))
    passing = () if before is None else tuple(_passing(before, now, was, there, tells_of_flux=bool(failures)))
    return StatusNews(tuple(facts), (*failures, *passing))


def _host_facts(was: Mapping[str, Any], there: Mapping[str, Any], *, is_first: bool) -> Iterator[str]:
    if is_first:
        yield f"reported for the first time, with {_counted(len(there), 'host')}"
        return
    both = [name for name in there if name in was]
    yield from _clause([name for name in there if name not in was], "host", "new")
    yield from _clause([name for name in was if name not in there], "host", "gone")
    yield from _clause([name for name in both if _lasting(was[name]) != _lasting(there[name])], "host", "changed")


def _version_facts(before: EdgeStatus, now: EdgeStatus) -> Iterator[str]:
    """None while one of them lacks all versions: an agent that has just started may not have seen them yet."""
    was, there = before.versions, now.versions
    if was is None or there is None:
        return
    changed = [each for each in sorted(there) if was.get(each) != there[each] and each != _IMAGE]
    gone = [each for each in sorted(was) if each not in there and each != _IMAGE]
    yield from _clause([f"{each} {there[each]}" for each in changed], "program", "new")
    yield from _clause(gone, "program", "gone")
    image = there.get(_IMAGE)
    if image is not None and image != was.get(_IMAGE):
        yield f"its agent runs the image {_word(image, most=_LONGEST_IMAGE)}"


def _absence_facts(before: EdgeStatus, now: EdgeStatus) -> Iterator[str]:
    missed, misses = missing_of(before), missing_of(now)
    yield from _are([each for each in misses if each not in missed], "missing")
    yield from _are([each for each in missed if each not in misses], "back")
    lacked, lacks = ([each.right for each in lacking_of(status)] for status in (before, now))
    yield from _rights([each for each in lacks if each not in lacked], "lacks a right")
    yield from _rights([each for each in lacked if each not in lacks], "has a right again")
    was_silent, is_silent = silent_of(before), silent_of(now)
    mute = [each for each in is_silent if each not in was_silent]
    heard = [each for each in was_silent if each not in is_silent]
    if mute:
        yield f"Flux does not answer: {_named(mute)}"
    if heard:
        yield f"Flux answers again: {_named(heard)}"
    closed, closes = ([str(value.place) for value in unopened_of(status)[0]] for status in (before, now))
    lost, found = [each for each in closes if each not in closed], [each for each in closed if each not in closes]
    if lost:
        yield f"no key of the edge opens {_named(lost)}"
    if found:
        yield f"the edge no longer lacks a key for {_named(found)}"


def _are(names: Sequence[str], state: str) -> Iterator[str]:
    if names:
        yield f"{_named(names)} {'is' if len(names) == 1 else 'are'} {state}"


def _rights(rights: Sequence[str], state: str) -> Iterator[str]:
    if rights:
        yield f"its agent {state}: {_named(rights)}"


def _named(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return f"{', '.join(map(_word, names[:_NAMED]))}{f' and {left} more' if left > 0 else ''}"


def _failures(before: EdgeStatus, now: EdgeStatus) -> Iterator[tuple[str, str]]:
    """What Flux says of objects that fail since, or do not any more."""
    was, there = _failing(before), _failing(now)
    begun = [each for matter, each in there.items() if matter not in was or was[matter].sentence != each.sentence]
    ended = [each for matter, each in was.items() if matter not in there]
    for found, state in ((begun, "fails"), (ended, "mended")):
        for each in found[:_NAMED]:
            clause = (
                each.sentence[:_LONGEST_SENTENCE] if found is begun else f"{each.about} {each.name} no longer fails"
            )
            yield f"{state}:{_matter(each)}", clause
    if max(len(begun), len(ended)) > _NAMED:
        yield FLUX, f"in total, Flux objects that now fail: {len(begun)}, that no longer fail: {len(ended)}"


def _failing(status: EdgeStatus) -> dict[str, Finding]:
    return {_matter(each): each for each in flux_findings(status) or ()}


def _matter(finding: Finding) -> str:
    """Without a comma: it stands in a list of such."""
    return f"{finding.about}/{finding.name}".replace(",", " ")


def _passing(
    before: EdgeStatus,
    now: EdgeStatus,
    was: Mapping[str, Any],
    there: Mapping[str, Any],
    *,
    tells_of_flux: bool,
) -> Iterator[tuple[str, str]]:
    if any(was[name].get("ready") != there[name].get("ready") for name in there if name in was):
        yield READINESS, _PASSING[READINESS]
    old, new = before.document, now.document
    if old.get("flux") != new.get("flux") and not tells_of_flux:
        yield FLUX, _of_flux(before, now)
    came_or_went = (before.versions is None) != (now.versions is None)
    lost = before.observed_revision is not None and now.observed_revision is None
    if came_or_went or lost or any(old.get(each) != new.get(each) for each in {*old, *new} - _APART):
        yield REST, _PASSING[REST]


def _of_flux(before: EdgeStatus, now: EdgeStatus) -> str:
    """What Flux says of the first object of which it says something else, none of which fails."""
    was, there = _flux_objects(before), _flux_objects(now)
    for place, said in there.items():
        if was.get(place) != said:
            return f"Flux says of {_word(place[1])}: {state_of(said)[:_LONGEST_SENTENCE]}"
    gone = next((place for place in was if place not in there), None)
    return "Flux's report has changed" if gone is None else f"Flux no longer has {_word(gone[1])}"


def _flux_objects(status: EdgeStatus) -> dict[tuple[str, str], FluxObject]:
    """(kind, name) → what is said of it."""
    flux = status.flux or FluxReport()
    kinds = {
        "sources": flux.sources,
        "kustomizations": flux.kustomizations,
        "releases": flux.releases,
        "others": flux.others,
    }
    return {(kind, each.name or ""): each for kind, objects in kinds.items() for each in objects}


def _hosts(status: EdgeStatus) -> dict[str, Mapping[str, Any]]:
    """Hostname → what is said of it, with members that nobody here knows."""
    said = status.document.get("hosts")
    hosts = [each for each in said if isinstance(each, Mapping)] if isinstance(said, list) else []
    return {str(each.get("hostname", "?")): each for each in hosts}


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


def _word(text: str, *, most: int = _LONGEST) -> str:
    """Without control characters, and not longer than a line bears."""
    return "".join(letter for letter in text[:most] if letter.isprintable())
