"""One cluster on one page, for people."""

from collections.abc import Sequence

from edgewright.cli.commands.cluster_check_in import spoken_check_in
from edgewright.cli.commands.screen import (
    Document,
    clean,
    moment,
    pairs,
    show_facts,
    show_heading,
    show_table,
    yes_no,
)


def show_page(document: Document) -> None:
    """Shows all that the gateway says about a cluster; parts that are empty are left out."""
    show_facts(_facts(document))
    if document["conditions"]:
        show_heading("Conditions")
        show_table(("condition", "status", "reason", "since", "message"), _conditions(document["conditions"]))
    if document["steps"]:
        show_heading("Steps")
        show_table(("step", "state", "attempts", "finished", "next", "note"), _steps(document["steps"]))
    if document["hosts"]:
        show_heading("Hosts")
        show_table(("host",), [(str(host.get("hostname", "?")),) for host in document["hosts"]])
    if document["residue"]:
        show_heading("Left behind by the deletion")
        rows = [(each["step"], moment(each["since"]), each["reason"]) for each in document["residue"]]
        show_table(("step", "since", "reason"), rows)
    if document["must_reenter"]:
        show_heading("Secrets to enter again")
        show_table(("secret",), [(str(secret),) for secret in document["must_reenter"]])


def _facts(document: Document) -> list[tuple[str, str]]:
    certificate, lease, deletion = document["certificate"], document["lease"], document["deletion"]
    pause = document["pause"]
    return [
        ("name", document["name"]),
        ("uuid", document["uuid"]),
        ("phase", document["phase"]),
        ("ready", yes_no(document["ready"])),
        ("waiting for", document["waiting_for"]),
        ("paused", f"yes: {pause['reason']}" if pause["paused"] else ""),
        ("deletion", _deletion(deletion) if deletion else ""),
        ("acceptance", f"{document['acceptance']} (policy {document['accept']})"),
        ("short code", document["short_code"] or ""),
        ("namespace", document["namespace"]),
        ("chart", "none (bare)" if document["bare"] else document["chart"] or "default"),
        ("labels", pairs(document["labels"])),
        ("generation", str(document["generation"])),
        ("last heard", moment(lease["last_heard"]) or "never"),
        ("lease", f"{lease['state']}, until {moment(lease['expires_at'])}" if lease["expires_at"] else ""),
        ("check-in", spoken_check_in(document) if document.get("check_in") else ""),
        ("reaches", _reach(document["reach"]) if document.get("reach") else ""),
        ("certificate", _certificate(certificate) if certificate else "none"),
        ("proposed", _proposed(document["certificate_proposed"]) if document.get("certificate_proposed") else ""),
        ("re-sealing", _resealing(document["resealing"]) if document.get("resealing") else ""),
        ("commit wanted", document["revisions"]["desired"] or ""),
        ("commit applied", document["revisions"]["observed"] or ""),
        ("created", f"{moment(document['created_at'])} by {document['created_by']}"),
        ("as of", moment(document["as_of"])),
        ("repository", document["links"]["repository"]),
        ("workflow", document["links"]["temporal_ui"] or ""),
    ]


def _deletion(deletion: Document) -> str:
    edge = f". {clean(deletion['edge'])}" if deletion.get("edge") else ""
    return f"under way, {clean(deletion['message'])}; workloads: {deletion['workloads']}{edge}"


def _reach(reach: Document) -> str:
    return "; ".join(clean(said) for said in (reach["url"], reach["problem"]) if said)


def _certificate(certificate: Document) -> str:
    return f"{certificate['fingerprint'][:16]}…, valid until {moment(certificate['not_after'])}"


def _proposed(certificate: Document) -> str:
    return f"{certificate['fingerprint']}, by a signal; confirm: cluster certificate NAME FINGERPRINT"


def _resealing(resealing: Document) -> str:
    done = f"{resealing['secrets'] - resealing['left']} of {resealing['secrets']} Secrets"
    return "; ".join([done, *(clean(sentence) for sentence in resealing["waiting"])])


def _conditions(conditions: Sequence[Document]) -> list[tuple[str, ...]]:
    return [
        (each["type"], each["status"], each["reason"], moment(each["since"]), each["message"]) for each in conditions
    ]


def _steps(steps: Sequence[Document]) -> list[tuple[str, ...]]:
    return [
        (
            each["name"],
            each["state"],
            str(each["attempts"]),
            moment(each["finished_at"]),
            moment(each["next_at"]),
            each["skipped_because"] or " ".join(part for part in (each["error"], each["hint"]) if part),
        )
        for each in steps
    ]
