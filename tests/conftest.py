"""What concerns every test: which database, that nothing outlives the run, and the long tests first, so that none is
left alone at the end."""

import asyncio
import gc
from collections.abc import Generator
from pathlib import Path
from subprocess import Popen

import pytest
from hypothesis import HealthCheck, settings
from left_behind import watch_over_this_run

# A machine under load is slow, and nothing is wrong with what it runs.
settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")

LONGEST_FIRST = (
    "tests/workflows/test_continue_as_new.py",
    "tests/workflows/test_kill_points.py",
    "tests/faults/",
    "tests/fuzz/test_cluster_life.py",
    "tests/supervisor/",
    "tests/security/",
    "tests/workflows/",
    "tests/observability/",
    "tests/mistakes/",
    "tests/api/",
    "tests/real/edge/whole/test_way_out.py",
    "tests/real/edge/whole/test_faults.py",
    "tests/real/edge/whole/test_registration.py",
    "tests/real/edge/test_detach.py",
    "tests/real/edge/test_purge.py",
    "tests/real/races/",
    "tests/real/edge/test_bootstrap_script.py",
    "tests/real/edge/test_fleet.py",
    "tests/real/edge/test_detach_late.py",
    "tests/real/bootstrap/test_scenarios.py",
    "tests/real/backup/test_drill.py",
    "tests/real/backup/",
    "tests/real/edge/whole/",
    "tests/real/story/",
    "tests/real/production/",
    "tests/real/edge/",
    "tests/real/chaos/",
    "tests/real/bootstrap/",
    "tests/real/manifests/",
)
"""Files that take minutes, and folders of such; a process takes the next file when it has done one."""

WATCH = pytest.StashKey[Popen[bytes]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", choices=["sqlite", "postgresql"], default="sqlite", help="what tests/contracts/database runs on"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist belong to the run that started them
        config.stash[WATCH] = watch_over_this_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if watch := config.stash.get(WATCH, None):
        watch.communicate()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Each process loads every test, and what is loaded is no garbage: looking through it took a sixth of that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole files keep together and tests keep their order within one."""
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """All that was loaded and collected stays until the end: the garbage collector need not look through it again."""
    gc.collect()
    gc.freeze()


def _rank(item: pytest.Item) -> int:
    return next(
        (rank for rank, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)), len(LONGEST_FIRST)
    )


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file as a first start leaves it, to copy for each test."""
    from gateway_centre import make_database  # noqa: PLC0415 - it loads the gateway, which most tests do without

    file = tmp_path_factory.mktemp("database") / "fresh.db"
    asyncio.run(make_database(file))
    return file
