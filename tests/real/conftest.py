"""Real components for tests marked ``real``. One that is missing is built; if that fails, so do the tests."""

from pathlib import Path

import pytest
from components import component


@pytest.fixture(scope="session")
def kubeseal() -> Path:
    """The real kubeseal binary."""
    return component("kubeseal")
