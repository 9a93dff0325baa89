"""The long tests come first, so that at the end no process is left alone with them."""

import pytest

LONGEST_FIRST = (
    "tests/workflows/test_continue_as_new.py",
    "tests/supervisor/",
    "tests/security/",
    "tests/workflows/",
    "tests/mistakes/",
    "tests/api/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole files keep together and tests keep their order within one."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    return next(
        (rank for rank, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)), len(LONGEST_FIRST)
    )
