"""Sites on which everything runs that is installed there, and the desk of whoever attaches them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import Desk
from edge_cluster.attaching import Attaching, centre_variables, desk_beside
from edge_cluster.site import Site, site
from embedded import EmbeddedEdgewright


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A Kubernetes cluster that nobody has attached."""
    with site(tmp_path_factory.mktemp("fetched")) as found:
        yield found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Beside a centre that is started as a user starts it."""
    folder = tmp_path_factory.mktemp("desk")
    with desk_beside(EmbeddedEdgewright(folder / "home", centre_variables()), folder / "papers") as desk:
        yield desk


@pytest.fixture
def attaching(desk: Desk, factory: Site, tmp_path: Path) -> Iterator[Attaching]:
    with Attaching(desk, factory, tmp_path) as attaching:
        yield attaching
