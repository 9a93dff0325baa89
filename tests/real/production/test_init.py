"""``edgewright admin init``, the one-shot that the other processes wait for."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from loopback import PLAIN
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

from edgewright.adapters.temporal.client import connect
from edgewright.domain.wellknown import APP_INSTALLATION
from edgewright.messages.names import SEARCH_ATTRIBUTES, SWEEP_SCHEDULE
from tools.production.topology import Topology

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test builds what is missing, and starts all

TOKENS = "SELECT count(*) FROM operator_tokens WHERE revoked_at IS NULL"
INSTALLED = "SELECT count(*) FROM events WHERE kind = 'entries.installed'"


def test_init_again_changes_nothing(topology: Topology) -> None:
    database = topology.compose.environment("postgres")["POSTGRES_DB"]

    def stored() -> tuple[str, ...]:
        counted = [topology.postgresql.sql(statement, database=database) for statement in (TOKENS, INSTALLED)]
        return topology.token_file.read_text(), *counted

    before = stored()
    assert before[1:] == ("1", "2")
    assert "(new)" not in topology.init()
    assert stored() == before


def test_init_has_every_cluster_rendered_when_the_external_url_is_new(topology: Topology) -> None:
    database = topology.compose.environment("postgres")["POSTGRES_DB"]
    of_all = f"SELECT body -> 'rendered_with' ->> 'external_url' FROM entries WHERE app = '{APP_INSTALLATION}'"
    assert topology.url in topology.postgresql.sql(of_all, database=database)
    assert "Every cluster has its workflow" in topology.init(EDGEWRIGHT_EXTERNAL_URL="https://moved.example.com")
    assert "https://moved.example.com" in topology.postgresql.sql(of_all, database=database)
    topology.init()
    assert topology.url in topology.postgresql.sql(of_all, database=database)


def test_inits_that_run_at_once_make_one_installation(topology: Topology) -> None:
    """A database, a home and a namespace that nobody has seen; three beginners."""
    home = topology.folder / "second"
    home.mkdir(mode=0o700)
    topology.postgresql.sql("CREATE DATABASE second")
    url = topology.compose.environment("init")["EDGEWRIGHT_DATABASE_URL"].rpartition("/")[0]
    own = {
        "EDGEWRIGHT_HOME": str(home),
        "EDGEWRIGHT_DATABASE_URL": f"{url}/second",
        "EDGEWRIGHT_TEMPORAL_NAMESPACE": "second",
    }
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda _: topology.init(**own), range(3)))
    assert sum("(new)" in each for each in said) == 1
    assert topology.postgresql.sql(TOKENS, database="second") == "1"
    assert topology.postgresql.sql(INSTALLED, database="second") == "2"  # the organisation, and all the others
    asyncio.run(is_prepared(topology.ports.temporal_address, "second"))


async def is_prepared(address: str, namespace: str) -> None:
    """The namespace keeps runs for 30 days, knows every attribute, and sweeps."""
    client = await connect(address, namespace)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    assert described.config.workflow_execution_retention_ttl.ToTimedelta().days == 30
    for name in SEARCH_ATTRIBUTES:
        assert (await client.count_workflows(f"{name} IS NOT NULL")).count == 0
    schedule = await client.get_schedule_handle(SWEEP_SCHEDULE).describe()
    assert schedule.schedule.spec.intervals
    await asyncio.sleep(0.2)  # a client that is dropped at once may crash its process (sdk-python issue 300)


def test_the_web_ui_shows_the_namespace(topology: Topology) -> None:
    answer = httpx.get(f"{topology.ui_url}/api/v1/namespaces/default", **PLAIN, timeout=30)
    assert json.loads(answer.text)["namespaceInfo"]["name"] == "default"
