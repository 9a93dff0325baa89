"""The limits that ship are the figures that docs/security.md and docs/operations.md state."""

import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from gateway_centre import EdgeCredentials, GatewayCentre, bearer
from resealing_edge import status as edge_status
from starlette.datastructures import State
from tour import DOCUMENT, OPERATIONS

from api.admission import REGISTRATION_BYTES
from api.allowances import Allowance
from api.bodies import OFF_LOOP
from api.connections.entrance import AT_ONCE, EVERY
from api.connections.limits import (
    MOST_CONNECTIONS,
    MOST_OF_A_TOKEN,
    MOST_OF_AN_ADDRESS,
    RESERVED_DESCRIPTORS,
    limits_for,
)
from api.connections.protocol import BODY_PROGRESS_BYTES, PIPELINED_LIMIT
from api.lifespan import SCHEDULE_SECONDS
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.git.http_relay import PACE_BYTES, PACE_SECONDS
from edgewright.adapters.git.memory_limit import FETCH_MEMORY, PUSH_MEMORY
from edgewright.adapters.git.turns import GitTurns, Guest, KeepLimits
from edgewright.domain.wellknown import APP_OBJECT_INFO
from edgewright.errors import Busy, TooMany
from edgewright.ports.operators import Permission

DOCS = Path(__file__).parents[2] / "docs"
UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "minutes": 60, "ms": 0.001}


def stated(pattern: str, page: str = "security.md") -> list[float]:
    """Numbers of the one sentence of a page that the pattern fits, in bytes or seconds where a unit follows."""
    text = " ".join((DOCS / page).read_text("utf-8").split())
    [sentence] = re.finditer(pattern, text)
    figures = [figure.replace(",", "").partition(" ") for figure in sentence.groups()]
    return [int(number) * UNITS.get(unit, 1) for number, _, unit in figures]


SHIPPED = limits_for(None)
"""As a gateway has them, but for what its settings and its descriptors say."""
GIT = {name: parameter.default for name, parameter in inspect.signature(GitHttp).parameters.items()}
KEPT = KeepLimits()


@pytest.mark.parametrize(
    ("pattern", "shipped"),
    [
        (
            r"headers of a request, with its first line \| (\d+ KiB), (\d+) lines",
            [SHIPPED.head_bytes, SHIPPED.head_lines],
        ),
        (r"TLS handshake \| (\d+) s", [SHIPPED.handshake_seconds]),
        (r"first request of a connection; all headers of a request \| (\d+) s", [SHIPPED.head_seconds]),
        (r"body \| (\d+ KiB) in every (\d+) s", [BODY_PROGRESS_BYTES, SHIPPED.body_seconds]),
        (r"answer \| the client takes some of it in (\d+) s", [SHIPPED.answer_seconds]),
        (r"idle between two requests \| (\d+) s", [SHIPPED.idle_seconds]),
        (r"requests that wait for the answer to an earlier one \| (\d+)", [PIPELINED_LIMIT]),
        (r"an eighth \(at least (\d+)\) for itself", [RESERVED_DESCRIPTORS]),
        (r"uses the rest for connections, at most ([\d,]+)\.", [MOST_CONNECTIONS]),
        (r"one operator token, its sessions among them \| an eighth of all, at most (\d+)", [MOST_OF_A_TOKEN]),
        (r"one address, .{,80} \| an eighth of all, at most (\d+)", [MOST_OF_AN_ADDRESS]),
        (r"one cluster \| (\d+) \|", [SHIPPED.per_cluster]),
        (r"From one address, (\d+) connections start at once and one every (\d+ ms)", [AT_ONCE, EVERY]),
        (r"Each process lasts as long as git works, but at most (\d+ minutes)", [GIT["deadline"]]),
        (r"a caller who waits (\d+) s for one gets 503 `git_busy`", [GIT["patience"]]),
        (
            r"receives a push allocates at most (\d+ MiB), and one that serves a fetch (\d+ GiB)",
            [PUSH_MEMORY, FETCH_MEMORY],
        ),
        (
            r"(\d+ MiB) of one answer, (\d+ MiB) for one caller, (\d+ MiB) for all operators, (\d+ GiB) for all",
            [KEPT.of_one_answer, KEPT.of_one_guest, KEPT.of_operators, KEPT.together],
        ),
        (r"is gone \| nothing: a gateway recreates it within (\d+) s", [SCHEDULE_SECONDS]),
        (r"take (\d+ KiB) in every (\d+) s, or loses the answer", [PACE_BYTES, PACE_SECONDS]),
    ],
)
def test_figures_are_those_that_the_documents_state(pattern: str, shipped: list[float]) -> None:
    assert stated(pattern, "operations.md") == pytest.approx(shipped)
    assert GIT["keep"] == KEPT
    assert GIT["pace_seconds"] == PACE_SECONDS


@pytest.mark.parametrize("is_edge", [True, False])
async def test_so_many_gits_run_at_a_time_as_the_documents_state(is_edge: bool) -> None:
    all_of_them, of_operators = stated(
        r"(\d+) git processes at a time, at most (\d+) of them for operators", "operations.md"
    )
    turns, running = GitTurns(GIT["processes"], patience=0), 0
    async with AsyncExitStack() as stack:
        with pytest.raises(Busy):
            while running <= all_of_them:
                await stack.enter_async_context(turns.turn(Guest(running, is_edge)))
                running += 1
    assert running == (all_of_them if is_edge else of_operators)


def test_bodies_are_looked_at_as_the_documents_state() -> None:
    assert stated(r"as small as a registration \((\d+ KiB)\)") == [REGISTRATION_BYTES]
    assert stated(r"from (\d+ KiB) a body is parsed off the event loop") == [OFF_LOOP]
    assert stated(r"idle connection to a gateway lives for less than (\d+) s", "production.md") == [
        SHIPPED.idle_seconds
    ]


def sessions(state: State) -> tuple[Allowance, list[float]]:
    return state.live.sessions, [*stated(r"at most (\d+) sessions at once, then one a minute"), 1, 60]


def statuses(state: State) -> tuple[Allowance, list[float]]:
    return state.live.edge_statuses, [*stated(r"at most (\d+) statuses at once, then one a second"), 1, 1]


def credentials(state: State) -> tuple[Allowance, list[float]]:
    burst, seconds = stated(r"at most (\d+) credentials at once, then one every (\d+) seconds")
    return state.live.edge_secrets, [burst, 1, seconds]


def bodies(state: State) -> tuple[Allowance, list[float]]:
    each_second, burst = stated(r"at most (\d+ KiB) a second after a burst of (\d+ MiB)")
    return state.access.edge_bodies, [burst, each_second, 1]


@pytest.mark.parametrize("kind", [sessions, statuses, credentials, bodies])
async def test_allowances_are_those_that_the_documents_state(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch, kind: Callable[[State], tuple[Allowance, list[float]]]
) -> None:
    allowance, (burst, amount, seconds) = kind(centre.app.state)
    monkeypatch.setattr(allowance, "_clock", lambda: 0.0)
    payer = uuid4()
    allowance.spend(payer, burst)
    for wanted in (amount, burst):
        with pytest.raises(TooMany) as refusal:
            allowance.spend(payer, wanted)
        assert refusal.value.retry_after == pytest.approx(wanted / amount * seconds)


def octets(what: str) -> int:
    """The figure in the sentence about bodies."""
    figures = stated(
        r"Bodies are bounded by route: (\d+ KiB), (\d+ KiB) for a status, (\d+ MiB) for an entry, a Helm chart"
        r" template, a packed chart and all keys of one Secret, (\d+ MiB) for re-sealed values, a"
        r" Flux bundle and what a fetch asks, (\d+ MiB) for many secrets at once"
    )
    return int(dict(zip(("usual", "status", "entry", "large", "many secrets"), figures, strict=True))[what])


ENTRIES = ("/v1/app/{app}/object/{object_uuid}", "/v2/app/{app}/object/{object_uuid}")
LIMITS = {
    "POST /v1/cluster": "entry",
    "PATCH /v1/cluster/{uuid}": "entry",
    "POST /v1/cluster/{uuid}/recreate": "entry",
    **{f"{method} {entry}": "entry" for method in ("PUT", "PATCH") for entry in ENTRIES},
    "PUT /v1/chart/{chart}": "entry",
    "PUT /v1/template/{template}": "entry",
    "PUT /v1/cluster/{uuid}/secret/{namespace}/{name}/{key}": "entry",
    "PATCH /v1/cluster/{uuid}/secret/{namespace}/{name}": "entry",
    "POST /v1/cluster/{uuid}/secret": "many secrets",
    "PUT /v1/flux": "large",
    "POST /v1/agent/resealed": "large",
    **{f"POST {of}/{{service}}": "large" for of in ("/git/cluster/{name}", "/git/shared/{name}", "/uuid/{uuid}")},
    "PUT /v1/agent/status": "status",
}
"""What the body of an operation is bounded as, where it is not the usual. Pushes have limits of their own:
tests/api/git_http."""
TAKING_BODIES = [
    f"{method} {path}" for method, path in OPERATIONS if "requestBody" in DOCUMENT["paths"][path][method.lower()]
]


def test_each_limit_is_of_an_operation_that_takes_a_body() -> None:
    assert set(LIMITS) <= set(TAKING_BODIES)


async def being_resealed(centre: GatewayCentre) -> EdgeCredentials:
    """An edge whose re-sealed values are waited for."""
    edge = await centre.register(await centre.create("edge"))
    agent, admin = centre.client(edge.as_agent), await centre.operator(Permission.ADMIN)
    assert (await agent.put("/v1/agent/status", json=edge_status(1))).is_success
    path = f"/v1/cluster/{edge.cluster}"
    assert (await admin.put(f"{path}/secret/default/db/key", content=b"x")).is_success
    assert (await agent.put("/v1/agent/status", json=edge_status(2))).is_success
    assert (await admin.post(f"{path}/reseal")).is_success
    return edge


@pytest.mark.parametrize("operation", TAKING_BODIES)
async def test_bodies_have_the_limits_that_the_documents_state(centre: GatewayCentre, operation: str) -> None:
    limit = octets(LIMITS.get(operation, "usual"))
    method, template = operation.split()
    edge = await being_resealed(centre)
    name = "helm-charts" if "shared" in template else "db" if "secret" in template else "edge"
    name = "populate_repository" if "/step/" in template else name
    places = {"app": APP_OBJECT_INFO, "object_uuid": uuid4(), "namespace": "default", "key": "key"}
    places |= {"chart": "press", "template": "press"}
    url = template.format(**places, uuid=edge.cluster, name=name, service="git-upload-pack")
    headers = {"Content-Type": "application/x-git-upload-pack-request"} if template.endswith("{service}") else {}
    if template == "/v1/register":
        client = centre.client(bearer(await centre.bootstrap_token(edge.cluster)))
    elif template.startswith("/v1/agent/"):
        client = centre.client(edge.as_agent)
    else:
        client = await centre.operator(Permission.ADMIN)
    params = {"sha256": "0" * 64} if template == "/v1/flux" else {}
    for more in (False, True):
        body = Counted(limit + more)
        answer = await client.request(method, url, content=body, headers=headers, params=params)
        assert (answer.status_code == 413) is more, answer.text
        if not template.endswith("{service}"):  # Git reads no further than the first thing that makes no sense
            assert body.sent == limit + more, f"refused before it was read: {answer.text}"


class Counted:
    """A body of spaces that says no length beforehand, and knows how much of it was asked for."""

    def __init__(self, size: int) -> None:
        self.size, self.sent = size, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.sent < self.size:
            piece = min(65536, self.size - self.sent)
            self.sent += piece
            yield b" " * piece
