"""Messages of the workflow that delivers notifications. Additive only. They hold no URL and no body."""

from edgewright.domain.bounds import Sentence
from edgewright.domain.cluster import Frozen


class NotificationsInput(Frozen):
    """What a run goes on with. ``failures``: rounds in a row in which the receiver took nothing."""

    failures: int = 0


class NotificationRound(Frozen):
    """What one round came to.

    Args:
        delivered, failed, given_up: tries of each outcome; what is given up has failed, too.
        away: the receiver took nothing of what was tried last: everything rests for a while.
        next_in: seconds until something is due; 0: there is more to do now; None: nothing waits.
        problem: why the newest failure failed, as a sentence.
    """

    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    away: bool = False
    next_in: float | None = None
    problem: Sentence = ""
