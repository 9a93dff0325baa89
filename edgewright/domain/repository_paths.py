"""Rules for paths in a driving repository.

Every path is checked before it becomes part of a Git tree. Machines and people clone repositories on any system, so a
path must name the same file everywhere, and must never leave the work tree or enter Git's own folder.
"""

import unicodedata

from edgewright.errors import Invalid

MAX_PATH_BYTES = 1024
MAX_SEGMENT_BYTES = 255

# Code points that HFS+ leaves out when it compares names, so that ".g\u200cit" opens ".git" there.
_IGNORED_BY_HFS = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])

# NTFS knows ".git" by this short name, too.
_NAMES_OF_GIT = frozenset({".git", "git~1"})


def check_path(path: str) -> tuple[str, ...]:
    """Checks a path inside a repository.

    Args:
        path: relative, with ``/`` between its segments.

    Returns:
        Its segments; at least one.

    Raises:
        Invalid: code ``path_invalid``; ``where`` is the path, made printable.
    """
    reason = _reason_against(path)
    if reason is not None:
        shown = printable(path)
        raise Invalid(f"The path {shown!r} {reason}.", code="path_invalid", where=shown)
    return tuple(path.split("/"))


def printable(text: str) -> str:
    """Replaces everything that could control a terminal, and cuts the text to 200 characters."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= 200 else shown[:199] + "…"


def _reason_against(path: str) -> str | None:
    reasons = [_reason_against_text(path)]
    if reasons == [None]:
        reasons = [_reason_against_segment(segment) for segment in path.split("/")]
    return next((reason for reason in reasons if reason), None)


def _reason_against_text(path: str) -> str | None:
    if any(unicodedata.category(char) == "Cs" for char in path):
        return "is not valid UTF-8"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if path.startswith("/"):
        return "is not relative"
    if "\\" in path:
        return "has a backslash, which some systems take for a separator"
    if any(unicodedata.category(char) == "Cc" for char in path):
        return "has a control character"
    return None


def _reason_against_segment(segment: str) -> str | None:
    if segment == "":
        return "has an empty segment"
    if segment in {".", ".."}:
        return f"has the segment {segment!r}"
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        return f"has a segment longer than {MAX_SEGMENT_BYTES} bytes"
    if _opens_as(segment) in _NAMES_OF_GIT:
        return "has a segment that some systems take for Git's own folder"
    return None


def _opens_as(segment: str) -> str:
    """Returns the name that lenient file systems would open: no case, ignorable characters, streams or endings."""
    return segment.translate(_IGNORED_BY_HFS).casefold().partition(":")[0].rstrip(" .")
