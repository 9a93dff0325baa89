"""A secret for a namespace that the edge does not have: taken, with a warning, and on request with the namespace."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import yaml
from gateway_centre import STATUS_APP, GatewayCentre, fence_of
from sealing_keys import certificate_pem, private_key

from edgewright.application import secret_wishes
from edgewright.domain.cluster import StepName
from edgewright.domain.rendering.layout import DRIVERS_PATH, RETIRED_DRIVER_PATH
from edgewright.domain.rendering.secret_drivers import MOST_NAMESPACES
from edgewright.errors import Waiting
from edgewright.messages.steps import StepInput
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission

NOW = datetime.now(UTC)
CERTIFICATE = certificate_pem(private_key(), not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))
STATUS = {"hosts": [], "kubeseal_cert": CERTIFICATE, "namespaces": ["default", "kube-system"]}
MISSING = "The edge does not have the namespace line-1: its secrets arrive once it exists."


@pytest.fixture
async def cluster(centre: GatewayCentre, admin: httpx.AsyncClient) -> UUID:
    """A cluster whose edge has said which namespaces it has."""
    made = await centre.create("spaced")
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=STATUS)).status_code == 201
    return made


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS)


def path(cluster: UUID, namespace: str = "line-1", name: str = "db") -> str:
    return f"/v1/cluster/{cluster}/secret/{namespace}/{name}/password"


def at_head(centre: GatewayCentre, cluster: UUID, path: str) -> list[Any]:
    head = centre.git.head(cluster)
    assert head
    return list(yaml.safe_load_all(centre.git.read(cluster, path, at=head) or b""))


async def test_a_put_into_a_missing_namespace_is_taken_and_warns(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    answer = await operator.put(path(cluster), content=b"x")
    assert answer.status_code == 204
    assert answer.headers["Edgewright-Warning"].startswith(MISSING)
    assert answer.headers["Edgewright-Commit"] == centre.git.head(cluster)
    [driver] = at_head(centre, cluster, DRIVERS_PATH)
    assert driver["spec"]["path"] == "./edo/secrets/line-1"


async def test_a_dry_run_warns_and_a_namespace_that_is_there_does_not(
    cluster: UUID, operator: httpx.AsyncClient
) -> None:
    dry = await operator.put(path(cluster), content=b"x", params={"dryrun": "true"})
    assert dry.headers["Edgewright-Warning"].startswith(MISSING)
    assert "Edgewright-Warning" not in (await operator.put(path(cluster, "default"), content=b"x")).headers
    await operator.put(path(cluster), content=b"x")
    assert "Edgewright-Warning" not in (await operator.delete(path(cluster))).headers


async def test_a_dry_run_fails_where_it_cannot_know_what_to_warn_of(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is staged: unlike after a put, an error says nothing wrong."""

    def away(*_asked: object) -> Sequence[str]:
        raise Waiting("The storage is away.", code="git_storage_away")

    monkeypatch.setattr(secret_wishes, "namespace_warnings", away)
    dry = await operator.put(path(cluster), content=b"x", params={"dryrun": "true"})
    assert (dry.status_code, dry.json()["code"]) == (503, "git_storage_away")
    assert (await operator.put(path(cluster), content=b"x")).status_code == 204


async def test_the_same_request_again_warns_again(cluster: UUID, operator: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "once"}
    first, again = [await operator.put(path(cluster), content=b"x", headers=key) for _ in range(2)]
    assert again.headers["Edgewright-Warning"] == first.headers["Edgewright-Warning"]
    assert again.headers["Edgewright-Commit"] == first.headers["Edgewright-Commit"]


@pytest.mark.parametrize(
    "status",
    [
        {"namespaces": None},
        {"omitted": {"namespaces": 7}},
        {"namespaces": [f"n{number}" for number in range(MOST_NAMESPACES + 1)]},
    ],
    ids=["unsaid", "omitted", "too many"],
)
async def test_where_the_namespaces_of_the_edge_are_not_known_nothing_warns(
    cluster: UUID, admin: httpx.AsyncClient, status: dict[str, Any]
) -> None:
    body = {name: value for name, value in {**STATUS, **status}.items() if value is not None}
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=body)).is_success
    assert "Edgewright-Warning" not in (await admin.put(path(cluster), content=b"x")).headers


async def test_create_namespace_gives_the_edge_the_namespace_in_the_same_commit(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    answer = await admin.put(path(cluster), content=b"x", params={"create_namespace": "true"})
    assert answer.status_code == 204
    assert "Edgewright-Warning" not in answer.headers
    [namespace] = at_head(centre, cluster, "edo/secrets/line-1/namespace.yml")
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "line-1")
    listed = (await admin.get(f"/v1/cluster/{cluster}/secret")).json()
    assert [(one["namespace"], one["name"]) for one in listed["items"]] == [("line-1", "db")]
    assert listed["unreadable"] == []
    later = await admin.put(path(cluster, name="other"), content=b"x")
    assert "Edgewright-Warning" not in later.headers, "it is on its way"


async def test_create_namespace_that_is_not_understood_stores_nothing(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    before = centre.git.head(cluster)
    answer = await operator.put(path(cluster), content=b"x", params={"create_namespace": "perhaps"})
    assert (answer.status_code, answer.json()["where"]) == (422, "query create_namespace")
    assert centre.git.head(cluster) == before


def changes(*namespaces: str, **more: Any) -> dict[str, Any]:
    value = b64encode(b"x").decode()
    return {
        "changes": [
            {"namespace": each, "name": "db", "key": "k", "value_base64": value, **more} for each in namespaces
        ]
    }


async def test_many_changes_warn_of_each_missing_namespace(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    url = f"/v1/cluster/{cluster}/secret"
    answer = await operator.post(url, json=changes("default", "line-1", "line-2"))
    assert answer.status_code == 200, answer.text
    first, second = answer.json()["warnings"]
    assert first.startswith(MISSING) and "namespace line-2" in second
    assert answer.headers["Edgewright-Warning"] == f"{first} {second}"
    assert len(at_head(centre, cluster, DRIVERS_PATH)) == 3
    crowd = (await operator.post(url, json=changes(*(f"n{n:03}" for n in range(30))), params={"dryrun": ""})).json()
    assert len(crowd["warnings"]) == 11
    assert crowd["warnings"][-1] == "Nor does it have 20 more of these namespaces."
    created = await operator.post(url, json=changes("line-3", create_namespace=True))
    assert created.json()["warnings"] == []
    assert at_head(centre, cluster, "edo/secrets/line-3/namespace.yml")


async def test_secrets_of_a_cluster_have_so_many_namespaces_and_no_more(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient
) -> None:
    url = f"/v1/cluster/{cluster}/secret"
    full = changes(*(f"n{number}" for number in range(MOST_NAMESPACES)))
    assert (await operator.post(url, json=full)).status_code == 200
    before = centre.git.head(cluster)
    for answer in (
        await operator.put(path(cluster), content=b"x"),
        await operator.put(path(cluster), content=b"x", params={"dryrun": "true"}),
        await operator.post(url, json=changes("n0", "line-1")),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "too_many_namespaces")
    assert centre.git.head(cluster) == before
    assert (await operator.put(path(cluster, "n7"), content=b"x")).status_code == 204


async def test_in_a_repository_of_an_earlier_release_a_secret_has_its_driver_from_the_next_rendering_on(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    head = centre.git.head(cluster)
    assert head
    drivers = centre.git.list(cluster, "edo/cluster/secrets", at=head)
    centre.git.commit(cluster, dict.fromkeys(drivers), CommitMessage("As before", "test"), expected_head=head)
    assert (await admin.put(path(cluster), content=b"x")).status_code == 204
    head = centre.git.head(cluster)
    assert head
    assert centre.git.list(cluster, "edo/secrets", at=head) == [
        "edo/secrets/README.md",
        "edo/secrets/line-1/db.yaml",
    ]
    row = await centre.gateway.directory.get(cluster)
    assert row
    step = StepInput(fence=fence_of(row), step=StepName.POPULATE_REPOSITORY)
    rendered = await centre.workflow.repository.populate_repository(step)
    assert rendered.commit == centre.git.head(cluster)
    [driver], [retired] = at_head(centre, cluster, DRIVERS_PATH), at_head(centre, cluster, RETIRED_DRIVER_PATH)
    assert driver["spec"]["path"] == "./edo/secrets/line-1"
    assert retired["spec"]["prune"] is False
