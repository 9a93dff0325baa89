"""Upgrading edges one after another: as many at once as the limit allows, and no further ones after failures."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edgewright.cli.client import GatewayClient, Params
from edgewright.cli.commands.durations import spoken
from edgewright.cli.commands.naming import PAGE, NamedCluster
from edgewright.cli.commands.screen import Document, clean
from edgewright.cli.commands.waiting import LiveLine
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.upgrades import Component, UpgradeState
from edgewright.retry_after import seconds_asked_for

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 3.0
"""Between two looks; an upgrade takes minutes."""
LONGEST_WAIT_FOR_LIMIT_SECONDS = 60.0
_LIMIT_REACHED = "upgrade_limit_reached"
ROUTE_UNKNOWN = "route_unknown"
_ALIKE = frozenset({"flux_not_imported", "flux_release_unknown", "agent_image_unset"})
"""What the centre says of all clusters alike: there is no use in asking about the next one."""
_MOST_NAMES = 8


@dataclass(frozen=True)
class UpgradeTerms:
    """What clusters are upgraded to, and under which limits.

    Args:
        version: None: the one that the centre offers now.
        at_once: upgrades that may be under way on all clusters together, whoever has begun them; None: any number.
        even_if_silent: also begin where no heartbeat arrives, so that the edge is upgraded once it is back.
    """

    component: Component
    version: str | None = None
    at_once: int | None = None
    even_if_silent: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """As the gateway takes it."""
        return {
            "component": self.component.value,
            "version": self.version,
            "at_once": self.at_once,
            "even_if_silent": self.even_if_silent,
        }


@dataclass(frozen=True)
class UpgradeNews:
    """What has become of a cluster.

    Args:
        document: its upgrade, as the gateway sent it; None: it has none, because of ``refusal``.
        is_begun: whether there was anything to do. False: it had that version before.
    """

    cluster: NamedCluster
    document: Document | None
    refusal: CliError | None = None
    is_begun: bool = True


class UpgradeRun:
    """Upgrades clusters, each once. What it has begun goes on at the centre without it.

    Args:
        most_failures: so many may fall back or fail before no more is begun. One that is called off ends it at once.
        tell: called whenever something has become of a cluster.
    """

    def __init__(
        self,
        gateway: GatewayClient,
        terms: UpgradeTerms,
        clusters: Sequence[NamedCluster],
        *,
        most_failures: int,
        tell: Callable[[UpgradeNews], None],
    ) -> None:
        self.clusters = tuple(clusters)
        self.waiting = deque(clusters)
        self.under_way: dict[NamedCluster, Document] = {}
        self.done: list[NamedCluster] = []
        self.failed: dict[NamedCluster, str] = {}
        self.left_out: dict[NamedCluster, CliError] = {}
        self._gateway = gateway
        self.terms = terms
        self._most_failures = most_failures
        self._tell = tell
        self._limited_until = 0.0

    @property
    def is_stopped(self) -> bool:
        """Whether so many have failed that no more is begun, or somebody has called one off."""
        failures = sum(state != UpgradeState.REPLACED for state in self.failed.values())
        return failures > self._most_failures or self.is_called_off

    @property
    def is_called_off(self) -> bool:
        """Whether somebody has called one of these upgrades off: they hardly want the others to begin."""
        return UpgradeState.CANCELLED in self.failed.values()

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way, and nothing more will be begun."""
        return not self.under_way and (not self.waiting or self.is_stopped)

    def begin(self) -> None:
        """Begins what may be begun now.

        Raises:
            CliError: the gateway is away, or refuses all clusters alike. One that it refuses alone is left out.
        """
        while self.waiting and not self.is_stopped and time.monotonic() >= self._limited_until:
            cluster = self.waiting[0]
            # Lost answers do no harm: asked again for the same upgrade, the gateway answers with the one under way.
            answer = self._gateway.request(
                "POST", f"{cluster.path}/upgrade", body=self.terms.body, accept=frozenset({404, 409})
            )
            if answer.is_success:
                self.waiting.popleft()
                self._note(cluster, self._gateway.decoded(answer))
                continue
            problem = self._gateway.problem(answer)
            if problem.code == _LIMIT_REACHED:
                asked = seconds_asked_for(answer.headers.get("Retry-After"), now=datetime.now(UTC))
                self._limited_until = time.monotonic() + min(asked, LONGEST_WAIT_FOR_LIMIT_SECONDS)
                return
            if problem.code == ROUTE_UNKNOWN:
                raise CliError(
                    "This centre is of a version that cannot upgrade edges.",
                    "Upgrade the centre first.",
                    ExitCode.REFUSED,
                    code="centre_too_old",
                )
            if problem.code in _ALIKE:
                raise problem
            self.waiting.popleft()
            self.left_out[cluster] = problem
            self._tell(UpgradeNews(cluster, None, problem))

    def look(self) -> bool:
        """Looks at what has begun. Returns whether something has ended, which leaves room for others.

        Raises:
            CliError: the gateway is away, or refuses.
        """
        if not self.under_way:
            return False
        before = len(self.under_way)
        there = self._states({"state": UpgradeState.UNDER_WAY.value})
        for cluster, known in list(self.under_way.items()):
            now = there.get(cluster.uuid) or self._states({"cluster": cluster.uuid}).get(cluster.uuid)
            if now is None or now["version"] != known["version"]:
                now = {**known, "state": UpgradeState.REPLACED.value, "reason": ""}
            self._note(cluster, now)
        if len(self.under_way) == before:
            return False
        self._limited_until = 0.0
        return True

    def _states(self, filters: Params) -> dict[str, Document]:
        """The upgrades of this component that pass the filters, by cluster."""
        items = upgrades(self._gateway, {"component": self.terms.component.value, **filters})
        return {str(item["cluster"]): item for item in items}

    def _note(self, cluster: NamedCluster, document: Document) -> None:
        is_known = cluster in self.under_way
        if document["state"] == UpgradeState.UNDER_WAY:
            self.under_way[cluster] = document
            if not is_known:
                self._tell(UpgradeNews(cluster, document))
            return
        self.under_way.pop(cluster, None)
        if document["state"] == UpgradeState.DONE:
            self.done.append(cluster)
        else:
            self.failed[cluster] = document["state"]
        self._tell(UpgradeNews(cluster, document, is_begun=is_known))


def upgrades(gateway: GatewayClient, filters: Params, *, limit: int | None = None) -> Iterator[Document]:
    """The upgrades that pass the filters of ``GET /v1/upgrade``; at most ``limit`` of them.

    Raises:
        CliError: the gateway is away, or refuses.
    """
    after: dict[str, str] = {}
    left = limit
    while True:
        page = gateway.get("/v1/upgrade", {**filters, "limit": PAGE if left is None else min(PAGE, left), **after})
        yield from page["items"]
        left = None if left is None else left - len(page["items"])
        if page["next"] is None or left == 0:
            return
        after = {"after": page["next"]}


def run_upgrades(run: UpgradeRun, line: LiveLine, *, seconds: float | None) -> None:
    """Returns once all that could be begun has ended.

    Args:
        seconds: None: as long as it takes.

    Raises:
        CliError: not in time; or the gateway refuses all clusters alike. One that is away is waited for.
    """
    began = time.monotonic()
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            has_ended = run.look()
            run.begin()
        except CliError as error:
            if error.exit_code is not ExitCode.UNAVAILABLE:
                raise
            line.show(f"{clean(error.sentence)} Trying again.")
            pause = LONGEST_PAUSE_SECONDS
        else:
            if run.is_over:
                return
            pause = FIRST_PAUSE_SECONDS if has_ended else pause
            _show(run, line)
        left = float("inf") if seconds is None else began + seconds - time.monotonic()
        if left <= 0:
            raise _not_in_time(run, seconds or 0.0)
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def _show(run: UpgradeRun, line: LiveLine) -> None:
    if not run.under_way:
        line.show("waiting for room: so many other upgrades are under way")
    elif len(run.clusters) == 1:
        (only,) = run.under_way.values()
        reason = f": {clean(only['reason'])}" if only["reason"] else ""
        line.show(f"upgrading to {clean(only['version'])}{reason}", only_drawn=not reason)
    else:
        state = f"{len(run.done)} upgraded, {len(run.under_way)} under way, {len(run.waiting)} to go"
        line.show(state, only_drawn=True)


def listed(clusters: Sequence[NamedCluster]) -> str:
    """The names of clusters, or of the first of many."""
    names = [each.text for each in clusters[:_MOST_NAMES]]
    left = len(clusters) - len(names)
    return f"{', '.join(names)}{f' and {left} more' if left else ''}"


def what_goes_on(run: UpgradeRun) -> str:
    """What whoever stops waiting should know: what goes on without them, and what was not begun."""
    goes_on = f"{listed([*run.under_way])}: the upgrade goes on at the centre." if run.under_way else ""
    not_begun = f"Not begun: {listed([*run.waiting])}." if run.waiting else ""
    return " ".join(filter(None, (goes_on, not_begun)))


def how_to_go_on() -> str:
    """The hint of an error that leaves upgrades under way, or not begun."""
    return f"`{typed('upgrade list')}` shows how far they are. The same command again does what is left."


def how_to_call_off(run: UpgradeRun) -> list[str]:
    """One more line of such a hint, if something is under way that could be called off."""
    if not run.under_way:
        return []
    names = [each.text for each in run.under_way]
    which = " ".join(names) if len(names) <= _MOST_NAMES else f"--all --component {run.terms.component}"
    return [f"`{typed(f'upgrade cancel {which}')}` calls off what is under way."]


def _not_in_time(run: UpgradeRun, seconds: float) -> CliError:
    unfinished = len(run.under_way) + len(run.waiting)
    return CliError(
        f"{unfinished} of {len(run.clusters)} upgrades have not ended after {spoken(seconds)}. {what_goes_on(run)}",
        "\n".join([how_to_go_on(), *how_to_call_off(run)]),
        ExitCode.UNAVAILABLE,
    )
