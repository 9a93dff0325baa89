"""How an operator steers a cluster that is under way."""

from typing import Annotated, Any

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands import completion
from edgewright.cli.commands.naming import did_you_mean, named
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel
from edgewright.cli.commands.screen import Document, clean, result, show_json
from edgewright.cli.commands.waiting import state_of
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import StepName

_STEPS = "A step, as `cluster show` names it."
Step = Annotated[
    str, typer.Argument(metavar="STEP", help=_STEPS, show_default=False, autocompletion=completion.steps)
]


def pause(
    cluster: ClusterName,
    reason: Annotated[str, typer.Option("--reason", help="Why; the timeline shows it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Hold back all commits for a cluster; heartbeats, revocation and deletion continue."""
    document = _post(cluster, "pause", {"reason": reason})
    _show(document, f"Commits for {document['name']} are paused.", as_json=as_json)


def resume(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Resume commits for a cluster."""
    document = _post(cluster, "resume")
    _show(document, f"Commits for {document['name']} go on.", as_json=as_json)


def retry(cluster: ClusterName, step: Step, as_json: AsJson = False) -> None:
    """Retry a waiting or blocked step now."""
    meant = step_of(step)
    document = _post(cluster, f"step/{meant}/retry")
    _show(document, f"{document['name']} tries {meant} again: {state_of(document)}", as_json=as_json)


def skip(
    cluster: ClusterName,
    step: Step,
    reason: Annotated[str, typer.Option("--reason", help="Why; the timeline shows it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Skip a deletion step that another system holds up; what it leaves is listed as residue."""
    meant = step_of(step)
    document = _post(cluster, f"step/{meant}/skip", {"reason": reason})
    _show(document, f"{document['name']} goes on without {meant}: {state_of(document)}", as_json=as_json)


def certificate(
    cluster: ClusterName,
    fingerprint: Annotated[
        str,
        typer.Argument(
            metavar="FINGERPRINT",
            help="Fingerprint of the proposed certificate, as `cluster show` prints it.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Confirm a proposed sealing certificate, which then seals all new secrets (admin)."""
    document = _post(cluster, "certificate", {"fingerprint": fingerprint.lower()})
    _show(document, f"Secrets of {document['name']} are sealed with this certificate from now on.", as_json=as_json)


def step_of(text: str) -> StepName:
    """The step with that name, whatever the case, with ``-`` or ``_``.

    Raises:
        CliError: there is none.
    """
    wanted = text.lower().replace("-", "_")
    if wanted in set(StepName):
        return StepName(wanted)
    hint = did_you_mean(wanted, StepName) or f"The steps are {', '.join(StepName)}."
    raise CliError(f"There is no step called {clean(text)}.", hint, ExitCode.NOT_FOUND)


def _post(cluster: str, verb: str, body: Any = None) -> Document:
    with connect() as gateway:
        document: Document = gateway.post(f"{named(gateway, cluster).path}/{verb}", body)
        return document


def _show(document: Document, sentence: str, *, as_json: bool) -> None:
    if as_json:
        show_json(document)
    else:
        result(sentence)


COMMANDS = (
    Command("certificate", certificate, Panel.STEERING, f"cluster certificate press-shop {'9f' * 32}"),
    Command("pause", pause, Panel.STEERING, "cluster pause press-shop --reason 'change freeze until Monday'"),
    Command("resume", resume, Panel.STEERING, "cluster resume press-shop"),
    Command("retry", retry, Panel.STEERING, "cluster retry press-shop create_repository"),
    Command("skip", skip, Panel.STEERING, "cluster skip press-shop await_goodbye --reason 'scrapped hardware'"),
)
