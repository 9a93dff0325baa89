"""Bodies of secrets. None of the answers ever holds a value."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish


class SecretChange(Wish):
    """One key of one Secret: its new value, or ``delete``. ``create_namespace``: the edge gets the namespace, too."""

    namespace: str
    name: str
    key: str
    value_base64: str | None = Field(default=None, repr=False)
    delete: bool = False
    create_namespace: bool = False


class SecretChanges(Wish):
    """Changes that are committed together or not at all."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "changes": [
                        {"namespace": "default", "name": "db", "key": "password", "value_base64": "czNjcjN0"},
                        {"namespace": "default", "name": "old", "key": "token", "delete": True},
                    ]
                }
            ]
        },
    )

    changes: list[SecretChange] = Field(min_length=1, max_length=1000)


class Committed(Answer):
    """``commit``: where the changes are; null for a dry run. ``warnings``: namespaces that the edge does not have."""

    commit: str | None
    warnings: list[str] = Field(default_factory=list)


class SealedKey(Answer):
    """One key of one Secret. ``state``: stale when it was sealed with another certificate than the one in use."""

    namespace: str
    name: str
    key: str
    sealed_at: datetime | None
    fingerprint: str | None
    state: Literal["current", "stale"]


class SecretList(Answer):
    """Keys by namespace and name.

    ``unreadable``: files that are no SealedSecret. ``must_reenter``: what a recreation for new hardware took
    away, or what no key of the edge opens any more.
    """

    items: list[SealedKey]
    unreadable: list[str] = Field(default_factory=list)
    must_reenter: list[str] = Field(default_factory=list)
