"""Whatever the document allows, and much that it does not, is answered as the document says, and never with 500."""

import os
from typing import Any

import httpx
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from live_gateway import LiveGateway, Population
from schemathesis import GenerationMode
from tour import DOCUMENT, OPERATIONS, undeclared_headers

from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_CLUSTER_STATUS, APP_OBJECT_INFO

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "2"))
"""For each operation; `make fuzz` asks for many more."""
ELSEWHERE = {("GET", "/v1/events")} | {
    one for one in OPERATIONS if one[0] == "POST" and one[1].endswith("/{service}")
}
"""A stream that never ends, and Git's own protocol: tests/fuzz/test_hostile_bytes.py speaks that."""
HOSTILE = ("..", "../../etc/passwd", "%2e%2e%2f", "$(reboot)", "a;b", "`id`", "a\nb", "\0", "ß" * 300, "-rf", "'\"")


@schemathesis.deserializer("text/yaml", "text/x-yaml", "text/vnd.yaml", "application/x-yaml", "application/yaml")
def manifests(_: schemathesis.DeserializationContext, response: schemathesis.Response) -> str:
    """Manifests: a stream of YAML documents, of which the document can only say that it is a text."""
    text = response.content.decode()
    assert all(one is None or "kind" in one for one in yaml.safe_load_all(text))
    return text


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(DOCUMENT)


def from_the_population(population: Population) -> dict[str, list[str]]:
    """What path parameters become: what is there, and what must not be."""
    clusters = [str(one) for one in (population.active, population.other, population.pending)]
    apps = [str(one) for one in (APP_CLUSTER_CONFIGURATION, APP_CLUSTER_STATUS, APP_OBJECT_INFO)]
    return {
        "uuid": clusters,
        "object_uuid": clusters,
        "app": apps,
        "name": ["active", "db", "populate_repository", *HOSTILE],
        "namespace": ["default", *HOSTILE],
        "key": ["password", *HOSTILE],
        "service": ["git-upload-pack", "git-receive-pack", *HOSTILE],
        "chart": ["edge-cluster", "press", *HOSTILE],
        "template": ["edge-cluster", "press", *HOSTILE],
        "repository": ["helm-charts", "press-line", *HOSTILE],
    }


@pytest.mark.parametrize(("method", "path"), sorted(set(OPERATIONS) - ELSEWHERE), ids=str)
def test_no_request_breaks_the_gateway(
    live: LiveGateway, population: Population, client: httpx.Client, schema: Any, method: str, path: str
) -> None:
    operation = schema[path][method]
    known = from_the_population(population)
    credentials = [population.admin, population.edge.as_agent, population.edge.as_flux]

    @settings(
        max_examples=EXAMPLES,
        derandomize=EXAMPLES < 10,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=st.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        ),
        draw=st.data(),
    )
    def ask(case: Any, draw: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            if name in known and draw.draw(st.integers(0, 3)):
                case.path_parameters[name] = draw.draw(st.sampled_from(known[name]))
        case.headers.update(draw.draw(st.sampled_from(credentials)))
        answer = case.call(base_url=live.url, timeout=60)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        operation.validate_response(answer)
        assert not undeclared_headers(method, path, answer.status_code, answer.headers)

    ask()
    assert client.get("/healthz").is_success
