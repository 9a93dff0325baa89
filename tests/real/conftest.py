"""Real components for tests marked ``real``. One that is missing is built; if that fails, so do the tests."""

from collections.abc import Generator
from pathlib import Path

import pytest
from components import component
from edge_cluster.cluster import LIVING

TAIL = 6000
"""Characters of each log."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows with a failure what the programs of a Kubernetes cluster have said: their logs go with it."""
    report = yield
    if report.failed:
        for log in sorted(log for folder in LIVING for log in (folder / "logs").glob("*.log")):
            report.sections.append((str(log), log.read_text(errors="replace")[-TAIL:]))
    return report


@pytest.fixture(scope="session")
def kubeseal() -> Path:
    """The real kubeseal binary."""
    return component("kubeseal")
