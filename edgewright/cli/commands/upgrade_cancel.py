"""`edgewright upgrade cancel`: stops upgrades that their edges have not proven yet."""

from collections.abc import Sequence
from typing import Annotated

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.listing import PEOPLES_FORMS, form_of, show_document
from edgewright.cli.commands.naming import NamedCluster, clusters_called, clusters_labelled
from edgewright.cli.commands.options import AsJson, Form, Output, Yes, labels_of
from edgewright.cli.commands.screen import Document, clean, result, say
from edgewright.cli.commands.upgrade import Clusters, Every, Labels
from edgewright.cli.commands.upgrading import ROUTE_UNKNOWN, listed, upgrades
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.upgrades import Component, UpgradeState

_NOT_UNDER_WAY = "upgrade_not_under_way"
_NO_SUCH_METHOD = "method_not_allowed"
_ANSWERS_ABOUT_ONE = frozenset({404, 405, 409, 410})
"""What the gateway answers about one cluster, or about a route that it does not have."""


def cancel_upgrades(
    *,
    clusters: Clusters = None,
    label: Labels = None,
    every: Every = False,
    component: Annotated[
        Component | None,
        typer.Option("--component", case_sensitive=False, help="Only upgrades of the agent, or only of Flux."),
    ] = None,
    yes: Yes = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Call off upgrades that are under way; what an edge has proven already stays."""
    form = form_of(output, as_json=as_json)
    labels = [f"{key}={value}" for key, value in labels_of(label or ()).items()]
    if sum(map(bool, (clusters, labels, every))) != 1:
        raise CliError(
            "Name the clusters whose upgrades to call off, or give --label, or --all.",
            f"For example `{typed('upgrade cancel press-shop line-4')}`.",
            ExitCode.USAGE,
        )
    with connect() as gateway:
        if clusters:
            chosen = clusters_called(gateway, clusters)
            run = _CancelRun(gateway, component, form, alone=len(chosen) == 1)
            run.cancel(chosen)
            _conclude(run, named=True)
            return
        chosen = _under_way(gateway, component, labels)
        if not chosen:
            say("No such upgrade is under way.")
            return
        plural = "" if len(chosen) == 1 else "s"
        require_yes(f"Call off {len(chosen)} upgrade{plural}: {listed(chosen)}?", yes=yes)
        run = _CancelRun(gateway, component, form)
        while chosen:  # until a command that still runs begins no more of them
            run.cancel(chosen)
            chosen = [each for each in _under_way(gateway, component, labels) if each not in run.tried]
        _conclude(run, named=False)


def _under_way(gateway: GatewayClient, component: Component | None, labels: Sequence[str]) -> list[NamedCluster]:
    """The clusters with these labels of which an upgrade is under way; without a label, all of those."""
    filters = {"state": UpgradeState.UNDER_WAY.value, **({"component": component.value} if component else {})}
    found = [NamedCluster(each["cluster"], each["name"]) for each in upgrades(gateway, filters)]
    if not labels or not found:
        return found
    labelled = {each.uuid for each in clusters_labelled(gateway, labels)}
    return [each for each in found if each.uuid in labelled]


class _CancelRun:
    """Calls upgrades off, one by one, and tells of each.

    Args:
        alone: one cluster was named.
    """

    def __init__(
        self, gateway: GatewayClient, component: Component | None, form: Form, *, alone: bool = False
    ) -> None:
        self.form = form
        self.tried: list[NamedCluster] = []
        self.refused: dict[NamedCluster, CliError] = {}
        self._gateway = gateway
        self._query = {"component": component.value} if component else None
        self._alone = alone

    @property
    def cancelled(self) -> int:
        """How many were called off."""
        return len(self.tried) - len(self.refused)

    def cancel(self, clusters: Sequence[NamedCluster]) -> None:
        """Calls off what is under way there; what cannot be called off is told, and kept in ``refused``.

        Raises:
            CliError: the gateway is away, or refuses all alike; or somebody has pressed Ctrl-C.
        """
        for number, cluster in enumerate(clusters):
            try:
                self._cancel_one(cluster)
            except KeyboardInterrupt:
                raise CliError(
                    f"Stopped: {self.cancelled} called off, {len(clusters) - number} not tried or not answered.",
                    "The same command again calls off what is left.",
                    ExitCode.INTERRUPTED,
                ) from None

    def _cancel_one(self, cluster: NamedCluster) -> None:
        answer = self._gateway.request(
            "DELETE", f"{cluster.path}/upgrade", params=self._query, accept=_ANSWERS_ABOUT_ONE
        )
        if answer.is_success:
            self.tried.append(cluster)
            self._tell(self._gateway.decoded(answer))
            return
        problem = self._gateway.problem(answer)
        if problem.code in {ROUTE_UNKNOWN, _NO_SUCH_METHOD}:
            raise CliError(
                "This centre is of a version that cannot call upgrades off.",
                "Upgrade the centre first.",
                ExitCode.REFUSED,
                code="centre_too_old",
            )
        self.tried.append(cluster)
        self.refused[cluster] = problem
        if not self._alone:
            say(f"{cluster.text}  left as it is: {clean(problem.sentence)}")

    def _tell(self, document: Document) -> None:
        if not show_document(document, [document["name"]], self.form, one_of_many=not self._alone):
            name, version, reason = (clean(document[field] or "") for field in ("name", "version", "reason"))
            result(f"{name}  {document['component']} no longer upgraded to {version}: {reason}")


def _conclude(run: _CancelRun, *, named: bool) -> None:
    """Says how many were called off.

    Args:
        named: somebody named the clusters, one by one.

    Raises:
        CliError: some were not. Where nobody named them, one that has ended meanwhile does not count.
    """
    failed = {each: why for each, why in run.refused.items() if named or why.code != _NOT_UNDER_WAY}
    if failed and named and len(run.tried) == 1:
        raise failed[run.tried[0]]
    if failed:
        verb = "was" if len(failed) == 1 else "were"
        raise CliError(
            f"{len(failed)} of {len(run.tried)} upgrades {verb} not called off: {listed([*failed])}.",
            f"`{typed('upgrade list')}` shows what is under way.",
            next(iter(failed.values())).exit_code,
        )
    if len(run.tried) > 1:
        ended = f", {len(run.refused)} ended before" if run.refused else ""
        (result if run.form in PEOPLES_FORMS else say)(
            f"{len(run.tried)} upgrades: {run.cancelled} called off{ended}."
        )
