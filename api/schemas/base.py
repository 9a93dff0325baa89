"""What every body has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

ShortText = Annotated[str, Field(max_length=500)]


class Wish(BaseModel):
    """Base of what people and edges send: a field that is not known is a mistake, and said so."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """Base of what the gateway answers; it only ever grows."""

    model_config = ConfigDict(frozen=True)
