"""Every operation of the OpenAPI document can be used, and its answers are what the document says."""

import io
import secrets
import tarfile
from collections.abc import Mapping
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from flux_file import flux_file, sha256_of
from gateway_centre import STATUS_APP, bearer
from live_gateway import STATUS, LiveGateway, Population
from resealing_edge import ResealingEdge
from resealing_edge import status as edge_status
from supervised import eventually
from tour import OPERATIONS, Tour

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.cluster import Order, Phase, Role, StepName, StepState
from edgewright.domain.credentials import cluster_secret
from edgewright.domain.projection import StepRecord
from edgewright.domain.wellknown import APP_OBJECT_INFO, CLASS_EDGE_CLUSTER, CLASS_HELM_CHART, SERVICE_GIT

WANT_NOTHING = b"0000"
"""A flush: a fetch that wants nothing, and a push that changes nothing."""


def test_every_operation_is_reached_with_success(live: LiveGateway, population: Population) -> None:
    tour = Tour(live, population.admin)
    look_around(tour, population)
    live_a_life(tour, live, population)
    keep_entries(tour)
    keep_charts(tour, live)
    keep_repositories(tour)
    missed = [operation for operation in OPERATIONS if operation not in tour.reached]
    assert len(missed) <= len(OPERATIONS) * 0.05, missed
    assert missed == [("GET", "/v1/cluster/{uuid}/install/agent"), ("GET", "/v1/agent-image")]  # it names no image


def look_around(tour: Tour, population: Population) -> None:
    """Everything that is read, and what has to be there for that."""
    cluster = {"uuid": population.active}
    for path in (
        "/",
        "/ping",
        "/healthz",
        "/readyz",
        "/v1/uninstall.sh",
        "/metrics",
        "/v1/cluster",
        "/v1/residue",
        "/v1/token",
    ):
        tour.visit(f"GET {path}")
    tour.visit("GET /v1/events", params={"after": 0})
    for end in ("", "/status", "/ready", "/timeline", "/secret"):
        tour.visit(f"GET /v1/cluster/{{uuid}}{end}", fill=cluster)
    for repository, name in (("/git/cluster/{name}", "active"), ("/git/shared/{name}", "helm-charts")):
        _use_git(tour, repository, {"name": name})
    _use_git(tour, "/uuid/{uuid}", cluster)
    file = flux_file()
    tour.visit("PUT /v1/flux", content=file, params={"sha256": sha256_of(file)})
    tour.visit("GET /v1/flux")
    for what in ("flux", "fetching-policy", "fetching-right"):
        tour.visit(f"GET /v1/cluster/{{uuid}}/install/{what}", fill=cluster)
    tour.visit("POST /v1/webhook", json={"url": "https://alerts.example.com/edgewright"})
    tour.visit("GET /v1/webhook")
    tour.visit("DELETE /v1/webhook")


def _use_git(tour: Tour, repository: str, fill: Mapping[str, object]) -> None:
    service = "git-upload-pack"
    tour.visit(f"GET {repository}/info/refs", fill=fill, params={"service": service})
    tour.visit(
        f"POST {repository}/{{service}}",
        fill={**fill, "service": service},
        content=WANT_NOTHING,
        headers={"Content-Type": f"application/x-{service}-request"},
    )


def live_a_life(tour: Tour, live: LiveGateway, population: Population) -> None:
    """A cluster from its creation to its deletion, and what its edge says meanwhile."""
    cluster = {"uuid": tour.visit("POST /v1/cluster", json={"name": "tourist"}).json()["uuid"]}
    tour.visit("PATCH /v1/cluster/{uuid}", fill=cluster, json={"labels": {"line": "4"}})
    eventually(lambda: tour.visit("GET /v1/cluster/{uuid}", fill=cluster).json()["ready"])
    tour.visit("POST /v1/cluster/{uuid}/registration-token", fill=cluster, json={"expires_in": 600})
    token = tour.visit("POST /v1/cluster/{uuid}/bootstrap-url", fill=cluster).json().partition("token=")[2]
    tour.visit("GET /v1/cluster/{uuid}/bootstrap", fill=cluster, params={"token": token})
    made = {role: cluster_secret(role, secrets.token_bytes(32)).text for role in (Role.FLUX, Role.AGENT)}
    wish = {"kube_system_uid": "uid-t", "kubernetes_version": "v1.33.1"}
    wish |= {"flux_secret": made[Role.FLUX], "agent_secret": made[Role.AGENT]}
    tour.visit("POST /v1/register", json=wish, headers=bearer(token))

    agent = population.edge.as_agent
    tour.visit("POST /v1/agent/heartbeat", json={"nonce": "n"}, headers=agent)
    tour.visit("PUT /v1/agent/status", json=STATUS, headers=agent)
    successor = cluster_secret(Role.AGENT, secrets.token_bytes(32)).text
    tour.visit("POST /v1/agent/credential", json={"role": "agent", "secret": successor}, headers=agent)
    tour.visit("POST /token", headers=None)

    secret = {"uuid": population.active, "namespace": "default", "name": "db", "key": "user"}
    path = "/v1/cluster/{uuid}/secret/{namespace}/{name}/{key}"
    tour.visit(f"PUT {path}", fill=secret, content=b"\x00\xff")
    tour.visit(f"PATCH {path.removesuffix('/{key}')}", fill=secret, json={"labels": {"app": "press"}})
    tour.visit(f"DELETE {path}", fill=secret)
    tour.visit("PUT /v1/agent/status", json=dict(edge_status(2)), headers=agent)
    tour.visit("PUT /v1/agent/status", json=dict(edge_status(2)) | {"flux_is_ours": True}, headers=agent)
    tour.visit("POST /v1/cluster/{uuid}/upgrade", fill={"uuid": population.active}, json={"component": "flux"})
    tour.visit("GET /v1/upgrade")
    tour.visit("DELETE /v1/cluster/{uuid}/upgrade", fill={"uuid": population.active})
    tour.visit("POST /v1/cluster/{uuid}/reseal", fill={"uuid": population.active}, json={"reason": "a tour"})
    resealed = ResealingEdge(live.centre.git, population.active, keys=[2]).body(["default/db"])
    tour.visit("POST /v1/agent/resealed", json=resealed, headers=agent)
    changes = [{"namespace": "default", "name": "more", "key": "k", "value_base64": "czNjcjN0"}]
    tour.visit("POST /v1/cluster/{uuid}/secret", fill={"uuid": population.active}, json={"changes": changes})

    centre = live.centre.ports
    door = EdgeStatusDoor(centre.directory, centre.edge_reports, centre.config)
    signalled = door.record(
        population.active, dict(edge_status(3)), merge=False, actor="temporal", generation=None, proposes=True
    )
    live.run(signalled)
    shown = tour.visit("GET /v1/cluster/{uuid}", fill={"uuid": population.active}).json()
    proposed = {"fingerprint": shown["certificate_proposed"]["fingerprint"]}
    tour.visit("POST /v1/cluster/{uuid}/certificate", fill={"uuid": population.active}, json=proposed)

    tour.visit("POST /v1/cluster/{uuid}/reject", fill={"uuid": population.pending})
    live.run(live.centre.register(population.pending, uid="uid-4"))
    tour.visit("POST /v1/cluster/{uuid}/accept", fill={"uuid": population.pending})
    for verb in ("pause", "resume"):
        tour.visit(f"POST /v1/cluster/{{uuid}}/{verb}", fill={"uuid": population.active}, json={"reason": "a tour"})
    waiting = (StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.WAITING),)
    live.run(live.centre.project(population.pending, steps=waiting))
    step = {"uuid": population.pending, "name": "populate_repository"}
    tour.visit("POST /v1/cluster/{uuid}/step/{name}/retry", fill=step)
    tour.visit("POST /v1/cluster/{uuid}/credential/rotate", fill={"uuid": population.active})
    tour.visit("DELETE /v1/cluster/{uuid}/credential", fill={"uuid": population.pending})

    tour.visit("DELETE /v1/cluster/{uuid}", fill=cluster)
    tour.visit("POST /v1/cluster/{uuid}/undelete", fill=cluster)
    tour.visit("POST /v1/cluster/{uuid}/recreate", fill=cluster, json={"new_hardware": True})
    tour.visit("DELETE /v1/cluster/{uuid}", fill={"uuid": population.active})
    leaving = (StepRecord(name=StepName.AWAIT_EMPTY, state=StepState.WAITING),)
    live.run(live.centre.project(population.active, phase=Phase.DETACHING, steps=leaving, order=Order.DETACH))
    step = {"uuid": population.active, "name": "await_empty"}
    tour.visit("POST /v1/cluster/{uuid}/step/{name}/skip", fill=step, json={"reason": "it is scrap"})
    tour.visit("GET /v1/agent/detach-order", headers=agent)
    tour.visit("POST /v1/agent/detached", headers=agent)


def keep_entries(tour: Tour) -> None:
    """The Config Store, by both of its prefixes, and operator tokens."""
    for version in ("v1", "v2"):
        item = uuid4()
        entry = {"app": APP_OBJECT_INFO, "object_uuid": item}
        member = {"klass": CLASS_EDGE_CLUSTER, "object_uuid": item}
        for status in (201, 200):  # new, and there already
            wish = {"class": str(CLASS_EDGE_CLUSTER), "uuid": str(item)}
            assert tour.visit(f"POST /{version}/object", json=wish).status_code == status
        tour.visit(f"GET /{version}/class/{{klass}}/direct/member/{{object_uuid}}", fill=member)
        tour.visit(f"GET /{version}/class/{{klass}}/member/{{object_uuid}}", fill=member)
        for listed in ("member", "direct/member", "subclass", "direct/subclass"):
            tour.visit(f"GET /{version}/class/{{klass}}/{listed}", fill={"klass": CLASS_EDGE_CLUSTER})
        other = {"klass": CLASS_HELM_CHART, "object_uuid": item}
        for method in ("PUT", "DELETE"):
            tour.visit(f"{method} /{version}/class/{{klass}}/direct/member/{{object_uuid}}", fill=other)
        place = f"/{version}/app/{{app}}/object/{{object_uuid}}"
        for status in (201, 204):
            assert tour.visit(f"PUT {place}", fill=entry, json={"name": "thing"}).status_code == status
        tour.visit(f"PATCH {place}", fill=entry, json={"name": "thing 2"})
        tour.visit(f"GET {place}", fill=entry)
        tour.visit(f"GET /{version}/app/{{app}}/object", fill={"app": STATUS_APP})
        named = {"name": '"thing 2"', "@called": "name"}
        tour.visit(f"GET /{version}/app/{{app}}/search", fill={"app": APP_OBJECT_INFO}, params=named)
        of_class = {"app": APP_OBJECT_INFO, "klass": CLASS_EDGE_CLUSTER}
        tour.visit(f"GET /{version}/app/{{app}}/class/{{klass}}/search", fill=of_class, params=named)
        tour.visit(f"DELETE {place}", fill=entry)
    tour.visit("GET /v1/service/{service_uuid}", fill={"service_uuid": SERVICE_GIT})
    made = tour.visit("POST /v1/token", json={"name": "tour", "permissions": ["read"]}).json()
    tour.visit("DELETE /v1/token/{token_id}", fill={"token_id": made["id"]})


def keep_charts(tour: Tour, live: LiveGateway) -> None:
    """A chart from its push to its removal, and the template that uses it."""
    publish_charts(live.centre.git, charts_path(), SealedSecretsChart())
    tour.visit("PUT /v1/chart/{chart}", fill={"chart": "tour"}, content=small_chart("tour"))
    tour.visit("GET /v1/chart")
    template = {"template": "tour"}
    for status in (201, 200):  # new, and there already
        wish = {"chart": "tour", "values": {"line": "{{ name }}"}}
        assert tour.visit("PUT /v1/template/{template}", fill=template, json=wish).status_code == status
    tour.visit("GET /v1/template/{template}", fill=template)
    tour.visit("GET /v1/template")
    tour.visit("DELETE /v1/template/{template}", fill=template)
    tour.visit("DELETE /v1/chart/{chart}", fill={"chart": "tour"})


def keep_repositories(tour: Tour) -> None:
    """A shared repository from its making to its removal."""
    place = {"repository": "tour"}
    for status in (201, 200):  # new, and there already
        assert tour.visit("PUT /v1/repository/{repository}", fill=place).status_code == status
    tour.visit("GET /v1/repository")
    tour.visit("DELETE /v1/repository/{repository}", fill=place)


def small_chart(name: str) -> bytes:
    """A chart as `helm package` packs it."""
    metadata, content = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode(), io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        member = tarfile.TarInfo(f"{name}/Chart.yaml")
        member.size = len(metadata)
        archive.addfile(member, io.BytesIO(metadata))
    return content.getvalue()


def test_answer_that_breaks_the_document_would_be_found(live: LiveGateway) -> None:
    tour = Tour(live, {})
    request = httpx.Request("GET", f"{live.url}/ping")
    answer = httpx.Response(200, json={"service": 5}, request=request)
    answer.elapsed = timedelta(0)
    with pytest.raises(BaseExceptionGroup, match=r"(?i)schema"):
        tour.check("GET", "/ping", answer)
