"""Bodies of re-sealing. They hold ciphertext only."""

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, ShortText, Wish

DIGEST = r"^[0-9a-f]{64}$"


class ResealWish(Wish):
    """``reason``: shown in the timeline."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"reason": "theft"}]})

    reason: ShortText = ""


class ReplacedValue(Wish):
    """``old_sha256``: SHA-256 of the base64 ciphertext that the controller received; ``ciphertext``: its result."""

    old_sha256: str = Field(pattern=DIGEST)
    ciphertext: str = Field(repr=False, max_length=2 * 1024 * 1024)


class ResealedSecret(Wish):
    """One Secret, re-sealed by the edge's controller.

    ``values``: by key. ``unreadable``: values that no key of the controller opens, with the SHA-256 of their
    ciphertext.
    ``absent``: the edge has no such SealedSecret.
    """

    namespace: str
    name: str
    values: dict[str, ReplacedValue] = Field(default_factory=dict, max_length=10_000)
    unreadable: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    absent: bool = False


class ResealedSecrets(Wish):
    """``fingerprint``: SHA-256 of the certificate (DER) that the controller sealed them with."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "fingerprint": "0" * 64,
                    "secrets": [
                        {
                            "namespace": "default",
                            "name": "db",
                            "values": {"password": {"old_sha256": "1" * 64, "ciphertext": "AgBc"}},
                            "unreadable": {"token": "2" * 64},
                        }
                    ],
                }
            ]
        },
    )

    fingerprint: str = Field(pattern=DIGEST)
    secrets: list[ResealedSecret] = Field(min_length=1, max_length=100)


class IgnoredSecret(Answer):
    """``problem``: why the centre did not accept it; it will ask the edge again."""

    secret: str
    problem: str


class ResealedAnswer(Answer):
    """``reseal``: what the centre wants next, as in the answer to a heartbeat."""

    ignored: list[IgnoredSecret]
    reseal: list[str]
