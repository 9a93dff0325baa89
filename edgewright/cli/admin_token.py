"""The token file of the administrator of this machine."""

import secrets
from datetime import UTC, datetime
from pathlib import Path

from edgewright.cli.endpoints import write_atomically
from edgewright.domain.credentials import SECRET_BYTES, TOKEN_ID_BYTES, matches, operator_token, parse_operator_token
from edgewright.errors import Unauthenticated
from edgewright.ports.operators import OperatorToken, OperatorTokens, Permission


async def ensure_admin_token(operators: OperatorTokens, file: Path) -> bool:
    """Makes the file hold a token that is valid and may do everything; nobody else can read it.

    Args:
        file: keeps its content if its token is valid; else (absent, or of a database that was restored) replaced.

    Returns:
        Whether a new token was written.
    """
    if await holds_valid_token(operators, file):
        file.chmod(0o600)  # noqa: ASYNC240 - one small file at start; nothing else runs in this loop
        return False
    token = operator_token(secrets.token_bytes(TOKEN_ID_BYTES), secrets.token_bytes(SECRET_BYTES))
    # The file first: killed in between, it holds a token that nobody knows, and the next start replaces it.
    write_atomically(file, token.text + "\n", mode=0o600)
    stored = OperatorToken(
        id=token.id,
        name=f"admin-{token.id[:8]}",
        permissions=frozenset({Permission.ADMIN}),
        secret_sha256=token.sha256,
        created_at=datetime.now(UTC),
    )
    await operators.add(stored, actor="centre")
    return True


async def holds_valid_token(operators: OperatorTokens, file: Path) -> bool:
    """Whether a file holds a living token with every permission."""
    try:
        text = file.read_text()  # noqa: ASYNC240 - as above
        token = parse_operator_token(text.strip())
    except (FileNotFoundError, UnicodeDecodeError, Unauthenticated):
        return False
    stored = await operators.find(token.id)
    return stored is not None and matches(token.text, stored.secret_sha256) and stored.allows(Permission.ADMIN)
