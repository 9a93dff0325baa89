"""Bodies about the Flux that edges get."""

from datetime import datetime

from pydantic import ConfigDict

from api.schemas.base import Answer


class FluxBody(Answer):
    """The Flux that edges get.

    ``version``: as its objects are labelled, null if they are not. ``sha256``: of the file that was imported.
    ``images``: as edges pull them. ``mirror``: the registry that they are pulled from instead of Flux's.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "version": "v2.7.0",
                    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "images": ["registry.example.com/edge/fluxcd/source-controller:v1.7.0"],
                    "mirror": "registry.example.com/edge",
                    "imported_at": "2026-03-01T12:00:00Z",
                }
            ]
        },
    )

    version: str | None
    sha256: str
    images: list[str]
    mirror: str | None
    imported_at: datetime
