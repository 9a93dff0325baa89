"""The real kustomize, which ``kubectl kustomize`` and Flux build with."""

from pathlib import Path

import pytest
from components import component


@pytest.fixture(scope="session")
def kustomize() -> Path:
    """The real kustomize binary."""
    return component("kustomize")
