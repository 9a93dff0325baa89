"""Wordings of conditions from earlier versions, and their present wordings.

A workflow that replays compares what it states with what it has stated before, and repeats the publications of its
past only if it finds the same differences. So words change where a condition is read, old and new ones alike, and
never where a workflow decides; two sentences that differ must go on differing.
"""

import re

NOT_BLOCKED = "NotBlocked"
"""Reason of *Blocked* while no person has to act."""
NO_HEARTBEAT = "No heartbeat yet."
NO_HEARTBEAT_SINCE = "No heartbeat since "
"""Before a moment."""
FELL_SILENT = "That was its last report before it fell silent."
"""After what an edge has applied, or what fails there."""
NO_PROBLEM_BEFORE = "The edge reported no problem before it fell silent."
NOTHING_TO_JUDGE = "The edge has reported nothing to judge its health by."
_REASONS = {"Unhindered": NOT_BLOCKED}
_SENTENCES = {
    "The edge was never heard.": NO_HEARTBEAT,
    "The edge told of nothing wrong, and is silent since.": NO_PROBLEM_BEFORE,
    "The edge has told of nothing to judge by.": NOTHING_TO_JUDGE,
}
_HEARD = re.compile(r"Last heard (?P<moment>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.)", re.ASCII)
_END = " That is what it said last; it is silent since."


def present_reason(reason: str) -> str:
    """Returns the present name of a reason.

    >>> present_reason("Unhindered"), present_reason("LeaseExpired")
    ('NotBlocked', 'LeaseExpired')
    """
    return _REASONS.get(reason, reason)


def present_words(message: str) -> str:
    """Returns the present wording of a message. Words of people, such as the reason for a pause, stay.

    >>> present_words("Last heard 2031-02-03T04:05:06Z.")
    'No heartbeat since 2031-02-03T04:05:06Z.'
    >>> present_words("The edge has applied nothing. That is what it said last; it is silent since.")
    'The edge has applied nothing. That was its last report before it fell silent.'
    """
    if heard := _HEARD.fullmatch(message):
        return f"{NO_HEARTBEAT_SINCE}{heard['moment']}"
    if message.endswith(_END):
        return f"{message.removesuffix(_END)} {FELL_SILENT}"
    return _SENTENCES.get(message, message)
