"""What every refusal says, whoever makes it: a problem document (RFC 9457)."""

from pydantic import BaseModel, ConfigDict, Field

PROBLEM_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong, for a person (``detail``, ``hint``) and for a machine (``code``)."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:edgewright:problem:name_taken",
                    "title": "Conflict",
                    "status": 409,
                    "detail": "Another cluster is called press-shop.",
                    "code": "name_taken",
                    "hint": "Choose another name.",
                    "where": "/name",
                    "request_id": "0d3c2f5e8b7a4c1d9e6f5a4b3c2d1e0f",
                }
            ]
        },
    )

    type: str = Field(description="`urn:edgewright:problem:` and the code.")
    title: str = Field(description="The words of the HTTP status.")
    status: int
    detail: str = Field(description="One sentence about this occurrence; never holds a secret.")
    code: str = Field(description="Stable identifier.")
    hint: str | None = Field(default=None, description="What to do next, where that helps.")
    where: str | None = Field(default=None, description="The field, file or path that is meant.")
    request_id: str | None = Field(default=None, description="Also in the header X-Request-Id.")
    ended_at: str | None = Field(default=None, description="Of a deleted cluster: when its deletion finished.")
    timeline: str | None = Field(default=None, description="Of a deleted cluster: where its timeline is.")
