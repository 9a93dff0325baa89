"""All time limits and retries of the workflows, with their reasons. No other module in ``workflows/`` has numbers."""

from datetime import timedelta
from typing import TypedDict, assert_never

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from edgewright.domain.cluster import StepName
from edgewright.messages.names import BULK_QUEUE, CLUSTERS_QUEUE, NOTIFICATIONS_QUEUE

HEARTBEAT_TIMEOUT = timedelta(seconds=4)
"""How soon a worker's death is noticed; an activity sends a heartbeat each second (activities/interceptors.py)."""


class ActivityPolicy(TypedDict):
    """Keyword arguments of ``workflow.start_activity``."""

    task_queue: str
    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    schedule_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


def _policy(queue: str, *, attempt: float, total: float, attempts: int) -> ActivityPolicy:
    """``attempt`` and ``total`` are in seconds. Only for quick retries: after that, the loop waits and says so."""
    return ActivityPolicy(
        task_queue=queue,
        start_to_close_timeout=timedelta(seconds=attempt),
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        schedule_to_close_timeout=timedelta(seconds=total),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(milliseconds=100),
            backoff_coefficient=3.0,
            maximum_interval=timedelta(seconds=2),
            maximum_attempts=attempts,
        ),
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
    )


READ = _policy(CLUSTERS_QUEUE, attempt=10, total=60, attempts=5)
"""One transaction or query on the database. A lost worker is noticed after ``attempt``."""
PUBLISH = _policy(CLUSTERS_QUEUE, attempt=10, total=60, attempts=5)
RECORD = _policy(CLUSTERS_QUEUE, attempt=10, total=60, attempts=5)
COMMIT_SECRETS = _policy(CLUSTERS_QUEUE, attempt=15, total=45, attempts=3)
"""Shorter than the 20 s of a caller, so that a second worker can still answer one of them."""

STEP = _policy(BULK_QUEUE, attempt=30, total=1800, attempts=3)
"""``total`` is long because a thousand clusters may wait in the bulk queue."""
TOGETHER = _policy(BULK_QUEUE, attempt=30, total=1800, attempts=1)
"""Several steps in one go: what is not done then is tried step by step, where it shows. Not shorter: when twenty are
commissioned at once on a busy machine each takes seconds, and whoever is cut off begins anew and adds to the load."""
DELETION_STEP = _policy(CLUSTERS_QUEUE, attempt=30, total=300, attempts=3)
"""Credentials are revoked now, ahead of the queue."""


def step_policy(step: StepName) -> ActivityPolicy:
    """Returns the policy of a step's activity. A step without a policy is a type error, rather than a long wait in
    the bulk queue."""
    match step:
        case (
            StepName.WITHDRAW_SECRETS
            | StepName.ALLOCATE_ADDRESS
            | StepName.CREATE_ACCOUNTS
            | StepName.CREATE_REPOSITORY
            | StepName.POPULATE_REPOSITORY
            | StepName.PUBLISH_STATUS
        ):
            return STEP
        case (
            StepName.WITHDRAW_STATUS
            | StepName.SUSPEND_CREDENTIALS
            | StepName.BEGIN_DELETION
            | StepName.REMOVE_WORKLOADS
            | StepName.AWAIT_EMPTY
            | StepName.AWAIT_GOODBYE
            | StepName.REVOKE_CREDENTIALS
            | StepName.REMOVE_ACCOUNTS
            | StepName.REMOVE_ADDRESS
            | StepName.ARCHIVE_REPOSITORY
            | StepName.REMOVE_EDGE_STATUS
            | StepName.REMOVE_SETUP_STATUS
        ):
            return DELETION_STEP
        case _:
            assert_never(step)


LONG_ATTEMPT = timedelta(seconds=10)
"""If an attempt runs for longer, its start time is shown."""

FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(minutes=5)


def backoff(attempts: int) -> timedelta:
    """How long the loop waits before round ``attempts + 1`` of a step: 1 s, doubled each time, at most 5 min."""
    return min(FIRST_BACKOFF * float(2 ** min(attempts - 1, 20)), LONGEST_BACKOFF)


SECRET_CALLERS = 4
"""Fewer than the 10 updates that Temporal allows at once, so that callers cannot lock out retry and skip."""
SECRET_WAIT = timedelta(seconds=20)
"""How long an update waits for its commit."""
SECRET_PAUSE = timedelta(seconds=5)
"""Pause after a failed commit while somebody waits: each caller sees a few attempts."""
TELL_OF_COMMITS = timedelta(milliseconds=250)
"""How long the newest commit of secrets waits to be published: its caller has the answer, and others may follow."""
VERB_WAIT = timedelta(seconds=10)
"""How long an operator's verb waits for the loop to apply it."""
DRAIN = timedelta(milliseconds=50)
"""Before continue-as-new: time for messages in transit to arrive and be refused (and sent again)."""
HANDOVER = timedelta(seconds=2)
"""How long a run waits for a commit under way before it continues as new. After that, callers ask the next run, and
verbs, which are refused meanwhile, are not held up for long."""
LONGEST_DRAIN = timedelta(seconds=30)
"""How long the end of a run waits for handlers that have something to answer."""
HISTORY_LIMIT = 1000
"""Events after which a run continues as new: a cold replay stays far below Temporal's 2 s deadlock limit."""

LONGEST_EFFECT = timedelta(minutes=10)
"""How long after a message its activities still belong to its request and trace; later ones have other causes."""

SWEEP_STEP = _policy(BULK_QUEUE, attempt=120, total=300, attempts=2)

SEND_NOTIFICATIONS = _policy(NOTIFICATIONS_QUEUE, attempt=90, total=300, attempts=3)
"""A round, which ends by itself after 20 s, the 15 s of the deliveries that are on their way then, and what a writer
waits for the database."""


def seconds(amount: float) -> timedelta:
    """Seconds as a duration."""
    return timedelta(seconds=amount)
