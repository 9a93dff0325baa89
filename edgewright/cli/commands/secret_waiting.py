"""`--wait` of commands that change a Secret: until the edge has opened what the repository holds of it."""

from collections.abc import Iterable

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
"""Reasons of *Synced* while a commit is on its way as it should be."""


def wait_until_opened(
    gateway: GatewayClient,
    cluster: NamedCluster,
    secret: SecretReference,
    *,
    seconds: float,
    values_stay: bool = False,
) -> None:
    """Returns once the edge has opened what the repository holds of a Secret.

    Args:
        values_stay: only labels and annotations are new, so that of the values alone nothing follows.

    Raises:
        CliError: not in time; or it cannot come to that: the edge refuses it or does not tell, somebody has deleted
            it meanwhile, or the cluster is being deleted.
    """

    def look(_left: float) -> str | None:
        document = gateway.get(cluster.path)
        demand_present(cluster, document)
        found = gateway.get(f"{cluster.path}/secret", {"namespace": secret.namespace, "name": secret.name})
        items = _of(secret, found["items"])
        if not items:
            raise CliError(f"Somebody has deleted {secret} meanwhile.", exit_code=ExitCode.REFUSED)
        telling = _of(secret, found.get("secrets", ())) if values_stay else items
        state = str(telling[0].get("edge_state", EdgeState.UNKNOWN) if telling else EdgeState.UNKNOWN)
        if state == EdgeState.OPENED:
            return None
        if state == EdgeState.REFUSED:
            raise _refused(cluster, secret, items[0].get("refusal"))
        silence = _silence(document)
        if state == EdgeState.UNKNOWN and not silence:
            raise _untold(
                cluster, "which labels and annotations arrive" if values_stay else "which secrets are opened"
            )
        return clean(" · ".join(filter(None, (_word(state), silence or _obstacle(document)))))

    hint = f"`{typed(f'secret list {cluster.text}')}` says how far it is."
    known = gateway.get(cluster.path)
    complaint = f"has not changed {secret}" if values_stay else f"has not opened {secret}"
    until(look, cluster, complaint, known=known, seconds=seconds, hint=hint)


def _of(secret: SecretReference, listed: Iterable[Document]) -> list[Document]:
    return [each for each in listed if SecretReference(each["namespace"], each["name"]) == secret]


def _refused(cluster: NamedCluster, secret: SecretReference, refusal: object) -> CliError:
    return CliError(
        f"The edge of {cluster.text} does not open {secret}: {clean(refusal or 'it does not say why.')}",
        "Mend that on the edge, then put the value again or change an annotation: its controller does not try the "
        "same one twice.",
        ExitCode.REFUSED,
        code="secret_refused_on_edge",
    )


def _untold(cluster: NamedCluster, what: str) -> CliError:
    return CliError(
        f"It is committed, but the agent of {cluster.text} does not say {what}.",
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
