"""Bodies of the Config Store's objects."""

from uuid import UUID

from pydantic import ConfigDict, Field

from api.schemas.base import Answer, Wish


class NewObject(Wish):
    """An object to register under a class. Without ``uuid``, the centre chooses one."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        json_schema_extra={"examples": [{"class": "f24d354d-abc1-4e32-98e1-0667b3e40b61"}]},
    )

    klass: UUID = Field(alias="class")
    uuid: UUID | None = None


class ServiceBody(Answer):
    url: str


class ObjectBody(Answer):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    uuid: UUID
    klass: UUID = Field(alias="class")
