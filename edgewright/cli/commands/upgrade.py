"""`edgewright agent upgrade` and `flux upgrade`: newer programs for edges, asked for at the centre."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands import completion
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import seconds_of
from edgewright.cli.commands.listing import PEOPLES_FORMS, form_of, show_document
from edgewright.cli.commands.naming import NamedCluster, clusters_called, clusters_labelled
from edgewright.cli.commands.options import AsJson, Form, Output, Yes, example, labels_of
from edgewright.cli.commands.screen import Document, clean, result, say
from edgewright.cli.commands.upgrading import (
    ROUTE_UNKNOWN,
    UpgradeNews,
    UpgradeRun,
    UpgradeTerms,
    how_to_call_off,
    how_to_go_on,
    listed,
    run_upgrades,
    what_goes_on,
)
from edgewright.cli.commands.waiting import LiveLine
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.flux_releases import version_of
from edgewright.cli.invocation import typed
from edgewright.domain.upgrades import Component, UpgradeState
from edgewright.domain.wellknown import APP_CLUSTER_STATUS, CLASS_EDGE_CLUSTER

AT_ONCE = 5
"""By default, where there is more than one cluster."""
_MOST_AT_ONCE = 500
_MOST_ASKED_ALONE = 8
"""More clusters than this are looked up with one search."""
_NO_EDGE = "edge_not_attached"

agents = typer.Typer()

Clusters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CLUSTER]...", help="Names or UUIDs.", show_default=False, autocompletion=completion.clusters
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        "--selector",
        "-l",
        metavar="KEY=VALUE",
        help="All clusters with this label; repeat it for several.",
    ),
]
Every = Annotated[bool, typer.Option("--all", help="All clusters.")]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--at-once",
        min=1,
        max=_MOST_AT_ONCE,
        metavar="N",
        help="How many upgrades may be under way at a time, whoever began them.",
        show_default=f"{AT_ONCE}; for one cluster, any number",
    ),
]
MaxFailures = Annotated[
    int, typer.Option("--max-failures", min=0, metavar="N", help="After more than N failures, begin no further ones.")
]
EvenIfSilent = Annotated[
    bool, typer.Option("--even-if-silent", help="Also upgrade edges that send no heartbeat, once they are back.")
]
Awaited = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the edges have proven it.")]
Patience = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="How long to wait, such as 30m or 2h.", show_default="to the end"
    ),
]


@agents.command("upgrade", epilog=example("agent upgrade --label site=sheffield --at-once 10"))
def upgrade_agents(
    *,
    clusters: Clusters = None,
    label: Labels = None,
    every: Every = False,
    at_once: AtOnce = None,
    max_failures: MaxFailures = 0,
    even_if_silent: EvenIfSilent = False,
    wait: Awaited = True,
    timeout: Patience = None,
    yes: Yes = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Upgrade the agents of edges to the one that the centre has; an agent that cannot call is put back."""
    form = form_of(output, as_json=as_json)
    seconds = _seconds(timeout, wait=wait)
    with connect() as gateway:
        chosen = _chosen(gateway, clusters or (), label or (), every=every)
        terms = UpgradeTerms(Component.AGENT, None, _limit(at_once, chosen), even_if_silent)
        if not yes:
            _ask(gateway, terms, chosen, _offered_agent(gateway))
        _upgrade(gateway, terms, chosen, max_failures, form, seconds=seconds, wait=wait, named=bool(clusters))


def upgrade_flux(
    *,
    clusters: Clusters = None,
    label: Labels = None,
    every: Every = False,
    version: Annotated[
        str | None,
        typer.Option(
            "--version", metavar="VERSION", help="An imported release.", show_default="the one that edges get now"
        ),
    ] = None,
    at_once: AtOnce = None,
    max_failures: MaxFailures = 0,
    even_if_silent: EvenIfSilent = False,
    wait: Awaited = True,
    timeout: Patience = None,
    yes: Yes = False,
    output: Output = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Upgrade the Flux of edges to a release that the centre has imported; a Flux of your own stays as it is."""
    form = form_of(output, as_json=as_json)
    seconds = _seconds(timeout, wait=wait)
    release = None if version is None else version_of(version) or version
    with connect() as gateway:
        chosen = _chosen(gateway, clusters or (), label or (), every=every)
        terms = UpgradeTerms(Component.FLUX, release, _limit(at_once, chosen), even_if_silent)
        if not yes:
            offered = release or gateway.get("/v1/flux")["version"] or "as it was imported last"
            _ask(gateway, terms, chosen, f"to Flux {clean(offered)}")
        _upgrade(gateway, terms, chosen, max_failures, form, seconds=seconds, wait=wait, named=bool(clusters))


def _seconds(timeout: str | None, *, wait: bool) -> int | None:
    if timeout is not None and not wait:
        raise CliError("--timeout says how long to wait, and --no-wait not to.", "Leave one out.", ExitCode.USAGE)
    return None if timeout is None else seconds_of(timeout, "--timeout")


def _chosen(
    gateway: GatewayClient, clusters: Sequence[str], label: Sequence[str], *, every: bool
) -> list[NamedCluster]:
    labels = [f"{key}={value}" for key, value in labels_of(label).items()]
    if sum(map(bool, (clusters, labels, every))) != 1:
        raise CliError(
            "Name the clusters to upgrade, or give --label, or --all.",
            f"For example `{typed('agent upgrade press-shop line-4')}`.",
            ExitCode.USAGE,
        )
    return clusters_called(gateway, clusters) if clusters else clusters_labelled(gateway, labels)


def _limit(at_once: int | None, clusters: Sequence[NamedCluster]) -> int | None:
    return at_once if at_once is not None or len(clusters) == 1 else AT_ONCE


# --- before it begins ----------------------------------------------------------------------------------------------


def _ask(gateway: GatewayClient, terms: UpgradeTerms, clusters: Sequence[NamedCluster], target: str) -> None:
    """Says what there is now, and asks whether to upgrade it."""
    if len(clusters) == 1:
        who = clusters[0].text
    else:
        who = f"{len(clusters)} clusters" + ("" if terms.at_once is None else f", {terms.at_once} at a time,")
    present = Counter(_present(gateway, terms.component, clusters))
    for version, count in sorted(present.items(), key=lambda each: -each[1]):
        runs = (
            f"{terms.component} {clean(version)}" if version else f"{terms.component} of a version that is not known"
        )
        say(f"{count} of {len(clusters)} now: {runs}")
    require_yes(f"Upgrade {who} {target}?", yes=False)


def _offered_agent(gateway: GatewayClient) -> str:
    """What edges are upgraded to, in the words of a question.

    Raises:
        CliError: the centre has no image of the agent, cannot be reached, or refuses.
    """
    answer = gateway.request("GET", "/v1/agent-image", accept=frozenset({404}))
    if answer.is_success:
        offer = gateway.decoded(answer)
        return f"to agent {clean(offer['version'])} ({clean(offer['image'])})"
    problem = gateway.problem(answer)
    if problem.code == ROUTE_UNKNOWN:  # an older centre does not say
        return "to the agent of this centre"
    raise problem


def _present(gateway: GatewayClient, component: Component, clusters: Sequence[NamedCluster]) -> list[str]:
    """The version on each edge, as its agent reports it; empty: it does not."""
    statuses = f"/v1/app/{APP_CLUSTER_STATUS}"
    if len(clusters) > _MOST_ASKED_ALONE:
        found = gateway.get(f"{statuses}/class/{CLASS_EDGE_CLUSTER}/search", {"@now": f"versions.{component}"})
        versions = {each["uuid"]: str(each["now"] or "") for each in found}
        return [versions.get(each.uuid, "") for each in clusters]
    said = []
    for each in clusters:
        try:
            status = gateway.get(f"{statuses}/object/{each.uuid}")
        except CliError as error:
            if error.exit_code is not ExitCode.NOT_FOUND:
                raise
            status = {}  # it has never reported
        said.append(str((status.get("versions") or {}).get(component.value, "")))
    return said


# --- while it runs -------------------------------------------------------------------------------------------------


def _upgrade(
    gateway: GatewayClient,
    terms: UpgradeTerms,
    clusters: Sequence[NamedCluster],
    most_failures: int,
    form: Form,
    *,
    seconds: float | None,
    wait: bool,
    named: bool,
) -> None:
    """Upgrades the clusters and tells what becomes of each.

    Args:
        named: somebody named them, one by one: all of them were meant.

    Raises:
        CliError: one of them does not have the version at the end.
    """
    alone = len(clusters) == 1
    with LiveLine(clusters[0].text if alone else f"{len(clusters)} clusters") as line:

        def tell(news: UpgradeNews) -> None:
            with line.aside():
                _tell(news, form, alone=alone, wait=wait)

        run = UpgradeRun(gateway, terms, clusters, most_failures=most_failures, tell=tell)
        try:
            if wait:
                run_upgrades(run, line, seconds=seconds)
            else:
                run.begin()
        except KeyboardInterrupt:
            raise CliError(
                f"No longer waiting. {what_goes_on(run)}".strip(),
                "\n".join([how_to_go_on(), *how_to_call_off(run)]),
                ExitCode.INTERRUPTED,
            ) from None
    _conclude(run, form, named=named)


def _tell(news: UpgradeNews, form: Form, *, alone: bool, wait: bool) -> None:
    """One line, or one document. What is not the outcome yet stands beside the result."""
    name, document = news.cluster.text, news.document
    if document is None:
        if not alone and news.refusal is not None:
            say(f"{name}  left out: {clean(news.refusal.sentence)}")
    elif document["state"] == UpgradeState.UNDER_WAY and wait:
        say(f"{name}  {_sentence(news, document)}")
    elif not show_document(document, [document["name"]], form, one_of_many=not alone):
        result(f"{name}  {_sentence(news, document)}")


def _sentence(news: UpgradeNews, document: Document) -> str:
    version, before, reason = (clean(document[field] or "") for field in ("version", "before", "reason"))
    because = f": {reason}" if reason else ""
    match document["state"]:
        case UpgradeState.UNDER_WAY:
            return f"upgrading from {before} to {version}" if before else f"upgrading to {version}"
        case UpgradeState.DONE:
            return f"upgraded to {version}" if news.is_begun else f"has {version} already"
        case UpgradeState.FELL_BACK:
            return f"fell back to {before or 'what it had'}{because}"
        case UpgradeState.REPLACED:
            return f"no longer upgraded to {version}{because or ': something else came in between'}"
        case UpgradeState.CANCELLED:
            return f"no longer upgraded to {version}{because}"
        case _:
            return f"failed to upgrade to {version}{because}"


# --- at the end ----------------------------------------------------------------------------------------------------


def _conclude(run: UpgradeRun, form: Form, *, named: bool) -> None:
    """Says how many have what was wished.

    Raises:
        CliError: one of them does not, although it has an edge, or was named.
    """
    without_edge = [each for each, why in run.left_out.items() if why.code == _NO_EDGE and not named]
    left_out = [each for each in run.left_out if each not in without_edge]
    fell_back = [each for each, state in run.failed.items() if state == UpgradeState.FELL_BACK]
    called_off = [each for each, state in run.failed.items() if state == UpgradeState.CANCELLED]
    groups: dict[str, Sequence[NamedCluster]] = {
        "upgraded": run.done,
        "under way": [*run.under_way],
        "fell back": fell_back,
        "called off": called_off,
        "failed": [each for each in run.failed if each not in {*fell_back, *called_off}],
        "left out": left_out,
        "not begun": [*run.waiting],
        "without an edge": without_edge,
    }
    counts = ", ".join(f"{len(those)} {word}" for word, those in groups.items() if those)
    missing = [*run.failed, *left_out, *run.waiting]
    if not missing:
        if len(run.clusters) > 1 or without_edge:
            plural = "" if len(run.clusters) == 1 else "s"
            (result if form in PEOPLES_FORMS else say)(f"{len(run.clusters)} cluster{plural}: {counts}.")
        return
    if len(run.clusters) == 1:
        raise _alone(run)
    verb = "was" if len(missing) == 1 else "were"
    raise CliError(
        f"{len(missing)} of {len(run.clusters)} clusters {verb} not upgraded: {listed(missing)} ({counts}).",
        "\n".join(_advice(run)),
    )


def _alone(run: UpgradeRun) -> CliError:
    """Why the only cluster was not upgraded."""
    (cluster,) = run.clusters
    if refusal := run.left_out.get(cluster):
        return refusal
    if run.waiting:
        return CliError(f"The upgrade of {cluster.text} was not begun.", "\n".join(_advice(run)))
    hint = f"`{typed(f'cluster timeline {cluster.text}')}` shows what happened."
    return CliError(f"{cluster.text} was not upgraded.", hint)


def _advice(run: UpgradeRun) -> list[str]:
    lines = [how_to_go_on()]
    if run.waiting and run.is_called_off:
        lines.append("Somebody has called an upgrade off, so no further one was begun.")
    elif run.waiting and run.is_stopped:
        lines.append("After the failures, no further upgrade was begun; --max-failures allows more of them.")
    elif run.waiting:
        lines.append(f"At most {run.terms.at_once} upgrades may be under way; --at-once changes that.")
    return lines
