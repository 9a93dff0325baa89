"""How a commit reads: its bytes in Git, and the text of its author and message.

The bytes follow Git's commit format: ``tree``, ``parent``, ``author`` and ``committer`` lines, an empty
line, the message. They depend on nothing but the arguments, so the same input is the same commit.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import takewhile

from edgewright.ports.git_server import CommitId, CommitMessage, CommitSummary

COMMITTER = "Edgewright <edgewright@localhost>"

_COMMIT_ID = re.compile(r"[0-9a-f]{40}", re.ASCII)
_IDENTITY = re.compile(rb"(?P<name>.*?) ?<[^>]*> (?P<at>\d+) [+-]\d{4}")


def is_commit_id(text: str) -> bool:
    """Whether the text has the form of a commit ID; says nothing about whether it exists."""
    return _COMMIT_ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Commit:
    """A commit object as read.

    Args:
        tree: ID of the root tree.
        at: seconds since the epoch, by the committer.
    """

    tree: str
    parents: tuple[CommitId, ...]
    author: str
    at: int
    message: str

    def summary(self, commit: CommitId) -> CommitSummary:
        """What the port says of it."""
        return CommitSummary(commit=commit, message=self.message, author=self.author, at=self.at)


def encode_commit(tree: str, parent: CommitId | None, message: CommitMessage, *, at: int) -> bytes:
    """The bytes of a commit with at most one parent; author and committer share the time ``at``, in UTC."""
    author = author_name(message.actor)
    lines = [
        f"tree {tree}",
        *([f"parent {parent}"] if parent else []),
        f"author {author} <{_slug(author)}@edgewright.invalid> {at} +0000",
        f"committer {COMMITTER} {at} +0000",
        "",
        message_text(message),
    ]
    return "\n".join(lines).encode(errors="replace")


def decode_commit(content: bytes) -> Commit:
    """Reads a commit, whoever wrote it; text that is not UTF-8 is replaced, never refused.

    Of a header that stands there twice the first counts, and parents stand right behind the tree, as git has it:
    what comes later may be anybody's, and a second tree would be one that no push rule has looked at.
    """
    head, _, text = content.partition(b"\n\n")
    lines = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    behind_tree = takewhile(lambda line: line[0] == b"parent", lines[1:])
    first = dict(reversed(lines))
    return Commit(
        tree=lines[0][1].decode("ascii") if lines[0][0] == b"tree" else "",
        parents=tuple(value.decode("ascii") for _, value in behind_tree),
        author=_identity(first.get(b"author", b""))[0],
        at=_identity(first.get(b"committer", b""))[1],
        message=text.decode(errors="replace"),
    )


def message_text(message: CommitMessage) -> str:
    """Subject, body and trailers, with an empty line between them; ends with a line feed.

    Only ``body`` may hold line feeds: in a subject or trailer they could forge a trailer.
    """
    parts = [_one_line(message.subject) or "Change"]
    body = "\n".join(_without_controls(line).rstrip() for line in message.body.splitlines()).strip("\n")
    trailers = [f"{_trailer_key(key)}: {_one_line(value)}" for key, value in message.trailers]
    parts += [text for text in (body, "\n".join(trailers)) if text]
    return "\n\n".join(parts) + "\n"


def author_name(actor: str) -> str:
    """The actor as Git accepts a name: one line, no angle brackets, no dots or punctuation at its ends."""
    name = _one_line(actor.replace("<", " ").replace(">", " ")).strip(" .,:;\"'\\")
    return name[:200].rstrip() or "unknown"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._+-]+", "-", name.casefold()).strip("-.")[:64] or "unknown"


def _trailer_key(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", key).strip("-") or "Note"


def _one_line(text: str) -> str:
    return " ".join(_without_controls(text).split())


def _without_controls(text: str) -> str:
    return "".join(" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)


def _identity(value: bytes) -> tuple[str, int]:
    match = _IDENTITY.fullmatch(value)
    if match is None:
        return value.decode(errors="replace"), 0
    return match["name"].decode(errors="replace"), int(match["at"])
