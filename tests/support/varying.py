"""What differs from one run to the next in what programs print, and what stands for it in a comparison."""

import re

Varying = tuple[re.Pattern[str], str]
"""A pattern, and what stands in its place."""

TOKEN = re.compile(r"\bew[rfa]?_[0-9a-f]{16}_[A-Za-z0-9_-]{43}")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DIGEST = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?")
VARYING: tuple[Varying, ...] = (
    (TOKEN, "<token>"),
    (UUID, "<uuid>"),
    (DIGEST, "<digest>"),
    (MOMENT, "<time>"),
    (re.compile(r"\b(?:now|\d+[smh] ago)\b"), "<ago>"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "<seconds>"),
    (re.compile(r"\badmin-[0-9a-f]{8}\b"), "<admin>"),
)


def without_varying(line: str, *more: Varying) -> str:
    """A line of output with a placeholder for whatever varies, and one blank for several.

    Args:
        more: what varies besides, replaced after the rest.
    """
    for pattern, placeholder in (*VARYING, *more):
        line = pattern.sub(placeholder, line)
    return " ".join(line.split())
