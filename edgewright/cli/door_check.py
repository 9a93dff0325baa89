"""What `doctor` says of a move: which edges reach the centre elsewhere than they should."""

from collections.abc import Sequence

from edgewright.cli.checks import Check, CheckVerdict
from edgewright.domain.reach import Door
from edgewright.ports.edge_reports import EdgeReports, Elsewhere
from edgewright.settings import Settings

NAME = "edges' way here"
MOST_NAMES = 20
"""In one sentence."""
_WAIT = "Keep the old URL and certificate answering: each edge moves by itself once the new way works."


async def door_checks(edge_reports: EdgeReports, settings: Settings) -> list[Check]:
    """The finding; none where no URL was set, for then there is nowhere to be."""
    try:
        door = settings.read_door()
    except (OSError, UnicodeDecodeError):
        return [
            Check(NAME, CheckVerdict.WRONG, "The CA bundle cannot be read.", "Correct its path, or the file's mode.")
        ]
    return [] if door is None else [_finding(door, await edge_reports.elsewhere(door))]


def _finding(door: Door, elsewhere: Sequence[Elsewhere]) -> Check:
    if elsewhere:
        shown = "; ".join(_line(each) for each in elsewhere[:MOST_NAMES])
        more = f"; and {len(elsewhere) - MOST_NAMES} more" if len(elsewhere) > MOST_NAMES else ""
        sentence = f"{len(elsewhere)} not known to reach {door.url} with its present certificates: {shown}{more}."
        return Check(NAME, CheckVerdict.WARNING, sentence, _WAIT)
    if door.is_settled:
        return Check(NAME, CheckVerdict.OK, f"All reach {door.url}.")
    fix = "Rename the settings EDGEWRIGHT_NEXT_…: they lose their NEXT. docs/operations.md says how."
    return Check(NAME, CheckVerdict.WARNING, f"All reach {door.url}, and the old way is not used any more.", fix)


def _line(each: Elsewhere) -> str:
    """One edge, with what is known of why."""
    if each.reach is None:
        return f"{each.name} (does not say)"
    heard = f", last heard {each.last_heard:%Y-%m-%d %H:%M}Z" if each.last_heard else ""
    problem = f": {each.reach.problem}" if each.reach.problem else ""
    return f"{each.name} (uses {each.reach.url}{heard}{problem})"
