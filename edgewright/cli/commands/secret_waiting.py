"""`edgewright secret put --wait`: until the edge has opened what was put."""

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands.naming import NamedCluster
from edgewright.cli.commands.screen import Document, clean
from edgewright.cli.commands.waiting import demand_present, until
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.opened_secrets import EdgeState

_WORDS = {
    EdgeState.SEALED: "committed, and not on the edge yet",
    EdgeState.APPLIED: "on the edge, and not opened yet",
    EdgeState.UNKNOWN: "committed; the edge does not say how far it is",
}
_PATIENT_REASONS = frozenset({"Behind", "UpToDate", "NotReported"})
"""Of *Synced*, while a commit is on its way as it should be."""


def wait_until_opened(
    gateway: GatewayClient, cluster: NamedCluster, secret: SecretReference, *, seconds: float
) -> None:
    """Returns once the edge has opened what the repository holds of a Secret.

    Raises:
        CliError: not in time; or it cannot come to that: the edge refuses it or does not tell, somebody has deleted
            it meanwhile, or the cluster is being deleted.
    """

    def look(_left: float) -> str | None:
        document = gateway.get(cluster.path)
        demand_present(cluster, document)
        found = gateway.get(f"{cluster.path}/secret", {"namespace": secret.namespace, "name": secret.name})["items"]
        items = [each for each in found if SecretReference(each["namespace"], each["name"]) == secret]
        if not items:
            raise CliError(f"Somebody has deleted {secret} meanwhile.", exit_code=ExitCode.REFUSED)
        state = str(items[0].get("edge_state", EdgeState.UNKNOWN))
        if state == EdgeState.OPENED:
            return None
        if state == EdgeState.REFUSED:
            raise _refused(cluster, secret, items[0].get("refusal"))
        silence = _silence(document)
        if state == EdgeState.UNKNOWN and not silence:
            raise _untold(cluster)
        return clean(" · ".join(filter(None, (_word(state), silence or _obstacle(document)))))

    hint = f"`{typed(f'secret list {cluster.text}')}` says how far it is."
    known = gateway.get(cluster.path)
    until(look, cluster, f"has not opened {secret}", known=known, seconds=seconds, hint=hint)


def _refused(cluster: NamedCluster, secret: SecretReference, refusal: object) -> CliError:
    return CliError(
        f"The edge of {cluster.text} does not open {secret}: {clean(refusal or 'it does not say why.')}",
        "Mend that on the edge, then put the value again: its controller does not try the same one twice.",
        ExitCode.REFUSED,
        code="secret_refused_on_edge",
    )


def _untold(cluster: NamedCluster) -> CliError:
    return CliError(
        f"It is committed, but the agent of {cluster.text} does not say which secrets are opened.",
        "It is of an older version, or may not list SealedSecrets: run a fresh bootstrap line on the edge.",
        ExitCode.REFUSED,
        code="secret_state_unknown",
    )


def _word(state: str) -> str:
    """What is said of a state; a newer gateway may know others."""
    return next((words for known, words in _WORDS.items() if known == state), state)


def _silence(document: Document) -> str:
    """Why the edge cannot answer; empty: it is heard."""
    stated = _condition(document, "Available")
    if stated.get("status") == "True":
        return ""
    return f"the edge is silent: {stated.get('message') or 'no heartbeat'}"


def _obstacle(document: Document) -> str:
    """What keeps a commit from arriving; empty: nothing that the edge has told."""
    stated = _condition(document, "Synced")
    is_hindered = stated.get("status") == "False" and stated.get("reason") not in _PATIENT_REASONS
    return str(stated.get("message") or "") if is_hindered else ""


def _condition(document: Document, kind: str) -> Document:
    return next((each for each in document["conditions"] if each["type"] == kind), {})
