"""One cluster on one page, for people."""

from collections.abc import Sequence

from rich.text import Text

from edgewright.cli.commands.cluster_check_in import spoken_check_in
from edgewright.cli.commands.durations import ago, ahead
from edgewright.cli.commands.options import Form
from edgewright.cli.commands.screen import (
    Column,
    Document,
    alarm,
    clean,
    fact_lines,
    heading_lines,
    moment,
    pairs,
    table_lines,
    yes_no,
)
from edgewright.domain.cluster import ConditionStatus, ConditionType, StepState


def page_lines(document: Document, *, form: Form, room: int | None) -> list[Text]:
    """All that the gateway says about a cluster; parts that are empty are left out.

    Args:
        form: wide: exact moments, and nothing is folded.
        room: columns of the terminal that a line may take; None: no terminal.
    """
    wide = form is Form.WIDE
    room = None if wide else room
    lines = fact_lines(_facts(document), room=room)
    parts: tuple[tuple[str, Sequence[Document], Sequence[Column]], ...] = (
        ("Conditions", document["conditions"], _CONDITIONS_WIDE if wide else _CONDITIONS),
        ("Steps", document["steps"], _STEPS_WIDE if wide else _STEPS),
        ("Hosts", document["hosts"], (Column("host", lambda host: str(host.get("hostname", "?"))),)),
        ("Left behind by the deletion", document["residue"], _RESIDUE_WIDE if wide else _RESIDUE),
        (
            "Secrets to enter again",
            [{"secret": secret} for secret in document["must_reenter"]],
            (Column("secret", lambda item: str(item["secret"])),),
        ),
    )
    for heading, items, columns in parts:
        if items:
            lines += [*heading_lines(heading), *table_lines(columns, items, room=room, fold=True)]
    return lines


def _facts(document: Document) -> list[tuple[str, str]]:
    certificate, lease, deletion = document["certificate"], document["lease"], document["deletion"]
    pause = document["pause"]
    versions = document.get("versions", {})
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
        ("chart", document["chart"] or "default"),
        ("bare", "yes: the edge has its own Flux" if document["bare"] else ""),
        ("labels", pairs(document["labels"])),
        ("generation", str(document["generation"])),
        ("last heard", _heard(lease) or "never"),
        ("lease", f"{lease['state']}, until {moment(lease['expires_at'])}" if lease["expires_at"] else ""),
        ("agent", versions.get("agent", "")),
        ("flux", versions.get("flux", "")),
        ("kubernetes", versions.get("kubernetes", "")),
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


def _heard(lease: Document) -> str:
    heard = lease["last_heard"]
    return f"{ago(heard)} ({moment(heard)})" if heard else ""


def _alarm_of_condition(condition: Document) -> str:
    if condition["type"] == ConditionType.BLOCKED:
        return alarm(StepState.BLOCKED) if condition["status"] == ConditionStatus.TRUE else ""
    if condition["type"] in {ConditionType.PAUSED, ConditionType.DRIFTED}:
        return "yellow" if condition["status"] == ConditionStatus.TRUE else ""
    return "yellow" if condition["status"] == ConditionStatus.FALSE else ""


def _reason(condition: Document) -> str:
    return ": ".join(filter(None, (condition["reason"], condition["message"])))


def _turn(step: Document) -> str:
    """When a step has ended, or is tried next."""
    if step["next_at"]:
        return f"next {ahead(step['next_at'])}"
    return ago(step["finished_at"])


def _note(step: Document) -> str:
    return str(step["skipped_because"] or " ".join(part for part in (step["error"], step["hint"]) if part))


_CONDITION = Column("condition", lambda each: str(each["type"]))
_STATUS = Column("status", lambda each: str(each["status"]), style=_alarm_of_condition)
_CONDITIONS = (
    _CONDITION,
    _STATUS,
    Column("since", lambda each: ago(each["since"])),
    Column("reason", _reason),
)
_CONDITIONS_WIDE = (
    _CONDITION,
    _STATUS,
    Column("reason", lambda each: str(each["reason"])),
    Column("since", lambda each: moment(each["since"])),
    Column("message", lambda each: str(each["message"])),
)
_STEP = Column("step", lambda each: str(each["name"]))
_STATE = Column("state", lambda each: str(each["state"]))
_ATTEMPTS = Column("attempts", lambda each: str(each["attempts"]))
_NOTE = Column("note", _note)
_STEPS = (_STEP, _STATE, _ATTEMPTS, Column("when", _turn), _NOTE)
_STEPS_WIDE = (
    _STEP,
    _STATE,
    _ATTEMPTS,
    Column("finished", lambda each: moment(each["finished_at"])),
    Column("next", lambda each: moment(each["next_at"])),
    _NOTE,
)
_LEFT_AT = Column("step", lambda each: str(each["step"]))
_LEFT_BECAUSE = Column("reason", lambda each: str(each["reason"]))
_RESIDUE = (_LEFT_AT, Column("since", lambda each: ago(each["since"])), _LEFT_BECAUSE)
_RESIDUE_WIDE = (_LEFT_AT, Column("since", lambda each: moment(each["since"])), _LEFT_BECAUSE)
