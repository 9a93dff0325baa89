"""``python -m api.openapi``: writes the OpenAPI document where people read it. A test holds it current."""

import json
from pathlib import Path

from api.app import described

PLACE = Path(__file__).parent.parent / "docs" / "openapi.json"


def text() -> str:
    """The document as the file has it."""
    return json.dumps(described(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
