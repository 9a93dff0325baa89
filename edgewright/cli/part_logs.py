"""The logs of the parts: kept from growing without bound, and read for why a part has ended."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

LARGEST_BYTES = 10 * 1024 * 1024
"""A log that has grown beyond this is moved to ``.1``; the one before to ``.2``; older ones go."""
_TAIL_BYTES = 16 * 1024
_RAISED = re.compile(r"([a-z_]\w*\.)+[A-Z]\w*: .*|([a-z_]\w*\.)*[A-Z]\w*(Error|Exception|Exit|Interrupt)(: .*)?")
"""The last line of a traceback."""
_ERROR = re.compile(r"\b(error|fatal|panic|cannot|failed)\b", re.IGNORECASE)


def bound_log(log: Path, *, largest: int = LARGEST_BYTES) -> bool:
    """Rotates a log that is too large, also while a child appends to it; returns whether it was.

    The file itself stays and is emptied, because the child holds it open; a line that is written during the copy
    may be lost.
    """
    try:
        if log.stat().st_size <= largest:
            return False
    except FileNotFoundError:
        return False
    newest, older = log.with_name(log.name + ".1"), log.with_name(log.name + ".2")
    try:
        if newest.exists():
            newest.replace(older)
        shutil.copyfile(log, newest)
    except OSError:
        # On a full disk the space is worth more than the old lines.
        newest.unlink(missing_ok=True)
    with log.open("r+b") as file:
        file.truncate(0)
    return True


def log_size(log: Path) -> int:
    """Bytes; 0 if there is no log."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def log_tail(log: Path, *, since: int = 0) -> list[str]:
    """The last lines of a log that are not empty; none if there is no log.

    Args:
        since: what stands before this position, in bytes, does not count.
    """
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(since if since <= end else 0, end - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [_printable(line) for line in text.splitlines() if line.strip()]


def reason_in(lines: Sequence[str]) -> str:
    """Why a program has ended, by the last lines of its log; empty if there are none.

    The newest line that is an error of our own logs or ends a traceback; else the newest that speaks of an error;
    else the last one.
    """
    for line in reversed(lines):
        if told := _told_in_json(line) or (line if _RAISED.fullmatch(line) else ""):
            return told
    return next((line for line in reversed(lines) if _ERROR.search(line)), lines[-1] if lines else "").strip()


def _told_in_json(line: str) -> str:
    """The sentence of a line of our own logs, if it is about an error; else empty."""
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    if not isinstance(said, dict) or said.get("level") not in {"error", "critical"}:
        return ""
    sentence = said.get("detail") or _last_line(said.get("exception")) or said.get("event")
    return " ".join(str(part) for part in (sentence, said.get("hint")) if part)


def _last_line(text: object) -> str:
    return text.strip().splitlines()[-1] if isinstance(text, str) and text.strip() else ""


def _printable(line: str) -> str:
    """Without what would move the cursor of a terminal."""
    return "".join(character if character.isprintable() else " " for character in line.rstrip())
