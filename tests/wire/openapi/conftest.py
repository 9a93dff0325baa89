"""Linters and generators of clients, in Node; all come with ``make test``, none is skipped."""

from pathlib import Path

import pytest
from npm_packages import node_workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this folder beside the packages that they use."""
    return node_workshop(Path(__file__).parent, tmp_path_factory.mktemp("openapi"))
