"""Delivers waiting notifications. The database knows which ones; the workflow only decides when to try again."""

from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ActivityError

from edgewright.messages import names
from edgewright.messages.cluster import ReconcileSignal
from edgewright.messages.notifications import NotificationRound, NotificationsInput
from workflows import policies
from workflows.failures import failure_of
from workflows.guarded import guarded_signal


@workflow.defn(name=names.NOTIFICATIONS_TYPE)
class NotificationsWorkflow:
    """Delivers the notifications of the whole installation. The sweep starts it, and restarts a lost one."""

    @workflow.init
    def __init__(self, start: NotificationsInput) -> None:
        self._failures = start.failures
        self._woken = False
        self._problem = ""

    @workflow.signal(name=names.SIGNAL_RECONCILE, description="New notifications are waiting: try now.")
    @guarded_signal
    def reconcile(self, signal: ReconcileSignal | None = None) -> None:
        """New notifications are waiting. Those that pause after a failed try keep pausing."""
        self._woken = True

    def signal_failed(self) -> None:
        """There is nothing to tell: the next round finds what the signal was about."""

    @workflow.run
    async def run(self, start: NotificationsInput) -> None:
        while not self._full():
            self._woken = False
            pause = await self._round()
            if pause is None and not self._woken:
                return
            if pause:
                with suppress(TimeoutError):
                    await workflow.wait_condition(
                        lambda: self._woken, timeout=pause, timeout_summary="next round of deliveries"
                    )
        workflow.continue_as_new(NotificationsInput(failures=self._failures))

    async def _round(self) -> float | None:
        """Sends what is due. Returns the seconds until the next round; None: nothing waits."""
        try:
            sent: NotificationRound = await workflow.execute_activity(
                "send_notifications", result_type=NotificationRound, **policies.SEND_NOTIFICATIONS
            )
        except ActivityError as error:
            return self._rest(failure_of(error).sentence)
        self._problem = sent.problem or self._problem
        if sent.away:
            return self._rest(sent.problem)
        if sent.delivered:
            self._failures = 0
        self._tell(sent.next_in)
        return sent.next_in

    def _rest(self, problem: str) -> float:
        self._failures += 1
        self._problem = problem
        pause = policies.backoff(self._failures).total_seconds()
        self._tell(pause)
        return pause

    def _tell(self, pause: float | None) -> None:
        """Shows the state in the Web UI. ``pause``: seconds until the next round; None: there is none."""
        said = "No notifications to send." if pause is None else "Sending notifications."
        if pause:
            said = f"{self._problem} Next try in {pause:.0f} s.".strip()
        workflow.set_current_details(said)

    def _full(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= policies.HISTORY_LIMIT
