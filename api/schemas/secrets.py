"""Bodies of secrets. None of the answers ever holds a value."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.domain.opened_secrets import EdgeState


class SecretChange(Wish):
    """One key of one Secret: its new value, or ``delete``. ``create_namespace``: create the edge's namespace, too."""

    namespace: str
    name: str
    key: str
    value_base64: str | None = Field(default=None, repr=False)
    delete: bool = False
    create_namespace: bool = False


class SecretTemplateWish(Wish):
    """Changes to one Secret other than its values; what you leave out stays as it is. None of it is encrypted.

    ``labels`` and ``annotations``: null removes one.
    """

    namespace: str
    name: str
    type: str | None = Field(default=None, description="Only for a new Secret: the type never changes.")
    labels: dict[str, str | None] = Field(default_factory=dict, max_length=64)
    annotations: dict[str, str | None] = Field(default_factory=dict, max_length=64)


class SecretPatch(Wish):
    """Changes to an existing Secret other than its values; what you leave out stays as it is.

    ``labels`` and ``annotations``: null removes one.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"labels": {"app": "press", "old": None}}]},
    )

    type: str | None = Field(default=None, description="Its present type: the type never changes.")
    labels: dict[str, str | None] = Field(default_factory=dict, max_length=64)
    annotations: dict[str, str | None] = Field(default_factory=dict, max_length=64)


class SecretChanges(Wish):
    """Changes that are committed together or not at all. ``secrets``: only Secrets with keys in ``changes``."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "changes": [
                        {"namespace": "default", "name": "db", "key": "password", "value_base64": "czNjcjN0"},
                        {"namespace": "default", "name": "old", "key": "token", "delete": True},
                    ],
                    "secrets": [
                        {
                            "namespace": "default",
                            "name": "db",
                            "type": "kubernetes.io/basic-auth",
                            "labels": {"app": "press"},
                        }
                    ],
                }
            ]
        },
    )

    changes: list[SecretChange] = Field(min_length=1, max_length=1000)
    secrets: list[SecretTemplateWish] = Field(default_factory=list, max_length=1000)


class Committed(Answer):
    """``commit``: holds the changes; null for a dry run. ``warnings``: namespaces that the edge does not have."""

    commit: str | None
    warnings: list[str] = Field(default_factory=list)


class SealedKey(Answer):
    """One key of one Secret. ``state``: stale if it was not sealed with the certificate in use.

    ``edge_state``: how far the whole Secret is on the edge, as last reported: `sealed` (the edge does not have it
    yet, or has it with other labels or annotations), `applied` (the edge has it, but its controller has not processed
    it), `opened`, `refused`, or `unknown` (the agent does not report it). Later versions may add states. Agents of
    earlier versions do not report labels and annotations. ``refusal``: the error message of the edge's controller;
    null: there is none. ``opens``: false if the edge reports that none of its keys opens the value; otherwise null.
    """

    namespace: str
    name: str
    key: str
    sealed_at: datetime | None
    fingerprint: str | None
    state: Literal["current", "stale"]
    edge_state: EdgeState
    refusal: str | None = None
    opens: Literal[False] | None = None


class ListedSecret(Answer):
    """One Secret, without its keys.

    ``edge_state``: the same as for its keys, but `unknown` if the agent does not report labels and annotations.
    """

    namespace: str
    name: str
    type: str
    labels: dict[str, str]
    annotations: dict[str, str]
    edge_state: EdgeState


class SecretList(Answer):
    """Keys by namespace and name.

    ``secrets``: each Secret without its keys. ``unreadable``: files that are not SealedSecrets. ``must_reenter``:
    values that a recreation for new hardware removed, or that no key of the edge opens any more. ``more_unopened``:
    how many other values, in all namespaces, no key of the edge opens; the edge does not name them.
    """

    items: list[SealedKey]
    secrets: list[ListedSecret] = Field(default_factory=list)
    unreadable: list[str] = Field(default_factory=list)
    must_reenter: list[str] = Field(default_factory=list)
    more_unopened: int = 0
