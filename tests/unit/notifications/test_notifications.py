"""What is told, to whom it may be told, and in which form."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel
from standardwebhooks import Webhook

from api.document import NOTIFICATION_SUMMARIES
from edgewright.adapters.webhook.key_file import FILE_NAME, KEY_BYTES, WebhookKeyFile
from edgewright.adapters.webhook.signature import shown, signed_headers
from edgewright.cli.initialise import ensure_webhook_key
from edgewright.domain.events import EventKind
from edgewright.domain.notifications import KINDS, Notification, NotificationType, facts_of, type_of
from edgewright.errors import Stalled
from edgewright.ports.webhook_delivery import SigningSecret

DOCUMENT = (Path(__file__).parents[3] / "docs" / "webhook.md").read_text("utf-8")
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)]


# --- what is told ------------------------------------------------------------------------------------------------


def test_every_type_has_its_example_and_every_example_is_a_notification() -> None:
    assert [example["type"] for example in EXAMPLES] == [kind.value for kind in NotificationType]
    for example in EXAMPLES:
        read = Notification.model_validate(example)
        assert json.loads(read.octets()) == example
        assert set(read.data.detail) == set(facts_of(read.type, {}))


def test_every_type_is_in_the_openapi_document() -> None:
    assert list(NOTIFICATION_SUMMARIES) == list(NotificationType)


def test_every_type_comes_of_a_kind_of_event() -> None:
    assert {type_of(kind, {"before": "expired"}) for kind in KINDS} == set(NotificationType)
    assert type_of(EventKind.SECRET_PUT, {}) is None


def test_the_first_sign_of_life_is_no_recovery() -> None:
    assert type_of(EventKind.LEASE_RENEWED, {"before": "never"}) is None
    assert type_of(EventKind.LEASE_RENEWED, {}) is None  # written by an earlier version


# --- signatures --------------------------------------------------------------------------------------------------


def key_file(folder: Path) -> Path:
    ensure_webhook_key(folder / FILE_NAME)
    return folder / FILE_NAME


def test_what_we_sign_the_library_verifies(tmp_path: Path) -> None:
    secret, body = WebhookKeyFile(key_file(tmp_path)).secret_of(uuid4()), '{"name": "Grüße"}'.encode()
    headers = signed_headers(secret, uuid4(), datetime.now(UTC), body)
    assert Webhook(shown(secret)).verify(body, headers) == {"name": "Grüße"}


def test_the_signature_is_the_librarys_own() -> None:
    secret, event, at = SigningSecret(bytes(range(32))), UUID(int=7), datetime(2026, 3, 1, 12, tzinfo=UTC)
    signature = Webhook(shown(secret)).sign(str(event), at, "{}")
    assert signed_headers(secret, event, at, b"{}")["webhook-signature"] == signature


def test_secrets_follow_from_key_and_webhook_alone(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    file.write_text("00" * KEY_BYTES)
    one = WebhookKeyFile(file).secret_of(UUID(int=1)).reveal()
    assert one.hex() == "e98133bdb36ceb528db8b6b6eaf305730eb8e56724b49c57ebc0461759f90a1e"
    assert WebhookKeyFile(file).secret_of(UUID(int=2)).reveal() != one


def test_a_key_file_is_the_owners_alone_and_never_replaced(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    before = file.read_text()
    file.chmod(0o644)
    ensure_webhook_key(file)
    assert (file.read_text(), file.stat().st_mode & 0o777) == (before, 0o600)


def test_a_key_file_that_is_the_owners_alone_is_left_as_it_is(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    file.chmod(0o400)  # as it is when a secret is mounted, read-only
    ensure_webhook_key(file)
    assert file.stat().st_mode & 0o777 == 0o400


@pytest.mark.parametrize("content", [None, "", "00" * 31, "x" * 64, "\u00fc" * 64])
def test_a_key_file_that_is_no_key_is_said_to_be_none(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / FILE_NAME
    if content is not None:
        file.write_text(content, "utf-8")
    with pytest.raises(Stalled) as refused:
        WebhookKeyFile(file).secret_of(UUID(int=1))
    assert refused.value.code == "webhook_key_missing"


def test_a_signing_secret_cannot_be_stored_or_shown() -> None:
    class Model(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        secret: SigningSecret

    secret = SigningSecret(b"marked" * 6)
    assert "marked" not in f"{secret} {secret!r}"
    with pytest.raises(Exception, match="serialize"):
        Model(secret=secret).model_dump_json()
    with pytest.raises(TypeError):
        json.dumps({"secret": secret})
