"""The token file always ends up with a token that works, and is never readable by others."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from edgewright.cli.admin_token import ensure_admin_token
from edgewright.domain.credentials import parse_operator_token
from edgewright.ports.operators import OperatorToken, Permission


class RememberedTokens:
    """``OperatorTokens`` in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, OperatorToken] = {}

    async def add(self, token: OperatorToken, *, actor: str, edge: UUID | None = None) -> None:
        assert edge is None, "no edge opens this session"
        self.kept[token.id] = token

    async def find(self, token_id: str) -> OperatorToken | None:
        return self.kept.get(token_id)

    async def list(self) -> Sequence[OperatorToken]:
        return list(self.kept.values())

    async def revoke(self, token_id: str, *, actor: str) -> bool:
        return self.kept.pop(token_id, None) is not None


@pytest.fixture
def tokens() -> RememberedTokens:
    return RememberedTokens()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "admin-token"


async def test_first_start_writes_a_token_that_may_do_everything(tokens: RememberedTokens, file: Path) -> None:
    assert await ensure_admin_token(tokens, file)
    text = file.read_text()
    assert text.endswith("\n")
    stored = tokens.kept[parse_operator_token(text.strip()).id]
    assert stored.allows(Permission.SECRETS)
    assert file.stat().st_mode & 0o777 == 0o600
    assert text.strip() not in repr(stored)


async def test_later_starts_change_nothing(tokens: RememberedTokens, file: Path) -> None:
    await ensure_admin_token(tokens, file)
    before = file.read_text()
    assert not await ensure_admin_token(tokens, file)
    assert file.read_text() == before
    assert len(tokens.kept) == 1


async def test_file_that_was_opened_to_others_is_closed_again(tokens: RememberedTokens, file: Path) -> None:
    await ensure_admin_token(tokens, file)
    file.chmod(0o644)
    await ensure_admin_token(tokens, file)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [None, b"", b"something else", b"\xff\xfe"])
async def test_file_without_a_token_gets_one(tokens: RememberedTokens, file: Path, content: bytes | None) -> None:
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o644)
    assert await ensure_admin_token(tokens, file)
    assert parse_operator_token(file.read_text().strip()).id in tokens.kept
    assert file.stat().st_mode & 0o777 == 0o600


async def test_token_of_another_database_is_replaced(tokens: RememberedTokens, file: Path) -> None:
    await ensure_admin_token(RememberedTokens(), file)
    before = file.read_text()
    assert await ensure_admin_token(tokens, file)
    assert file.read_text() != before


async def test_token_that_lost_its_rights_is_replaced(tokens: RememberedTokens, file: Path) -> None:
    await ensure_admin_token(tokens, file)
    for token in list(tokens.kept.values()):
        tokens.kept[token.id] = replace(token, permissions=frozenset({Permission.READ}))
    assert await ensure_admin_token(tokens, file)


async def test_forged_secret_with_a_known_id_is_not_taken_for_valid(tokens: RememberedTokens, file: Path) -> None:
    await ensure_admin_token(tokens, file)
    text = file.read_text().strip()
    file.write_text(text[:-43] + "A" * 43 + "\n")
    assert await ensure_admin_token(tokens, file)
