"""Bodies of secrets. None of the answers ever holds a value."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish
from edgewright.domain.opened_secrets import EdgeState


class SecretChange(Wish):
    """One key of one Secret: its new value, or ``delete``. ``create_namespace``: the edge gets the namespace, too."""

    namespace: str
    name: str
    key: str
    value_base64: str | None = Field(default=None, repr=False)
    delete: bool = False
    create_namespace: bool = False


class SecretTemplateWish(Wish):
    """What is to change of one Secret besides its values; what is not named stays. None of it is encrypted.

    ``labels`` and ``annotations``: null for one that goes.
    """

    namespace: str
    name: str
    type: str | None = Field(default=None, description="Only of a new Secret: Kubernetes lets nobody change it.")
    labels: dict[str, str | None] = Field(default_factory=dict, max_length=64)
    annotations: dict[str, str | None] = Field(default_factory=dict, max_length=64)


class SecretPatch(Wish):
    """What is to change of a Secret that is there, and of none of its values; what is not named stays.

    ``labels`` and ``annotations``: null for one that goes.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"labels": {"app": "press", "old": None}}]},
    )

    type: str | None = Field(default=None, description="The one that it has: Kubernetes lets nobody change it.")
    labels: dict[str, str | None] = Field(default_factory=dict, max_length=64)
    annotations: dict[str, str | None] = Field(default_factory=dict, max_length=64)


class SecretChanges(Wish):
    """Changes that are committed together or not at all. ``secrets``: of Secrets that ``changes`` has keys of."""

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
    """``commit``: where the changes are; null for a dry run. ``warnings``: namespaces that the edge does not have."""

    commit: str | None
    warnings: list[str] = Field(default_factory=list)


class SealedKey(Answer):
    """One key of one Secret. ``state``: stale when it was sealed with another certificate than the one in use.

    ``edge_state``: how far the whole Secret is on the edge, as its agent said last: `sealed` (the edge does not have
    it yet, or has it with other labels or annotations), `applied` (it has, and its controller has not come to it),
    `opened`, `refused`, or `unknown` (the agent does not say). More may come. An agent of an earlier version says
    nothing of labels and annotations. ``refusal``: why the edge's controller refuses it, in its own words; null: it
    does not, or does not say. ``opens``: false when the edge says that none of its keys opens the value; null: it
    says nothing of the kind.
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

    ``edge_state``: as that of its keys; but `unknown` if the agent says nothing of labels and annotations.
    """

    namespace: str
    name: str
    type: str
    labels: dict[str, str]
    annotations: dict[str, str]
    edge_state: EdgeState


class SecretList(Answer):
    """Keys by namespace and name.

    ``secrets``: what they are besides their keys. ``unreadable``: files that are no SealedSecret. ``must_reenter``:
    what a recreation for new hardware took away, or what no key of the edge opens any more. ``more_unopened``: how
    many other values no key of the edge opens, as it says without naming them; of all namespaces.
    """

    items: list[SealedKey]
    secrets: list[ListedSecret] = Field(default_factory=list)
    unreadable: list[str] = Field(default_factory=list)
    must_reenter: list[str] = Field(default_factory=list)
    more_unopened: int = 0
