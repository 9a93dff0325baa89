"""What the checker takes for a value that was committed twice: not one that a restore has put back."""

from pathlib import Path

import pytest

from edgewright.application.repository_ahead import PUT_BACK_TRAILER
from tools.chaos.check_secrets import check_secrets
from tools.chaos.evidence import Case
from tools.chaos.repositories import CheckedCommit, CheckedRepository
from tools.chaos.sealed import Opened, Opener
from tools.chaos.stores import TABLES, Stores

PATH = "edo/secrets/default/db.yaml"
DOCUMENT = "metadata: {{namespace: default, name: db}}\nspec: {{encryptedData: {{password: {ciphertext}}}}}\n"


class OneValue(Opener):
    """Every ciphertext is of the same value."""

    def open(self, ciphertext: str, label: str) -> Opened:
        return Opened("secret", 0)


def repository(ciphertext: str, trailers: dict[str, tuple[str, ...]]) -> CheckedRepository:
    """A value is written, taken away with the workloads, and there again with another commit."""
    steps: list[tuple[str | None, dict[str, tuple[str, ...]]]] = [("first", {}), (None, {}), ("again", trailers)]
    commits = [
        CheckedCommit(f"{number}" * 40, f"tree-{number}", (), "subject", told, {PATH: blob})
        for number, (blob, told) in enumerate(steps)
    ]
    read = CheckedRepository("uuid", archived=True, folder=Path("nowhere"))
    vars(read).update(
        commits=commits,
        blobs={"first": DOCUMENT.format(ciphertext="first"), "again": DOCUMENT.format(ciphertext=ciphertext)},
        damage="",
    )
    return read


@pytest.mark.parametrize(
    ("ciphertext", "trailers", "doubled"),
    [
        ("first", {PUT_BACK_TRAILER: ("1" * 40,)}, False),
        ("other", {PUT_BACK_TRAILER: ("1" * 40,)}, True),
        ("first", {}, True),
    ],
    ids=["put back", "sealed anew", "committed again"],
)
def test_only_what_a_restore_puts_back_is_not_committed_twice(
    ciphertext: str, trailers: dict[str, tuple[str, ...]], doubled: bool
) -> None:
    row = {"uuid": "uuid", "name": "press-shop", "desired": "deleted"}
    stores = Stores({**{table: [] for table in TABLES}, "clusters": [row]}, [])
    case = Case("uuid", row, [], stores, OneValue([]), [repository(ciphertext, trailers)])
    found = [violation.name for violation in check_secrets(case)]
    assert found == (["commit_doubled"] if doubled else [])
