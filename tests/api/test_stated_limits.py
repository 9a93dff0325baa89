"""The limits that ship are the figures that docs/security.md states."""

import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from gateway_centre import Edge, GatewayCentre

from api.allowances import Allowance
from api.live import Live
from api.routes.resealing import RESEALED_JSON
from edgewright.errors import TooMany

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8").split())
UNITS = {"KiB": 1024, "MiB": 1024 * 1024}


def stated(pattern: str) -> list[int]:
    """Numbers of the one sentence of the page that the pattern fits, in bytes where a unit follows."""
    [sentence] = re.finditer(pattern, PAGE)
    figures = [figure.partition(" ") for figure in sentence.groups()]
    return [int(number) * UNITS.get(unit, 1) for number, _, unit in figures]


def sessions(live: Live) -> tuple[Allowance, list[int]]:
    return live.sessions, [*stated(r"at most (\d+) sessions at once, then one a minute"), 1, 60]


def statuses(live: Live) -> tuple[Allowance, list[int]]:
    return live.edge_statuses, [*stated(r"at most (\d+) statuses at once, then one a second"), 1, 1]


def credentials(live: Live) -> tuple[Allowance, list[int]]:
    burst, seconds = stated(r"at most (\d+) credentials at once, then one every (\d+) seconds")
    return live.edge_secrets, [burst, 1, seconds]


def bodies(live: Live) -> tuple[Allowance, list[int]]:
    each_second, burst = stated(r"at most (\d+ KiB) a second after a burst of (\d+ MiB)")
    return live.edge_bodies, [burst, each_second, 1]


@pytest.mark.parametrize("kind", [sessions, statuses, credentials, bodies])
async def test_allowances_are_those_that_the_documents_state(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch, kind: Callable[[Live], tuple[Allowance, list[int]]]
) -> None:
    allowance, (burst, amount, seconds) = kind(centre.app.state.live)
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
        r"Bodies are bounded by route: (\d+ KiB), (\d+ KiB) for a status, (\d+ MiB) for an entry and for all keys of"
        r" one Secret, (\d+ MiB) for re-sealed values, (\d+ MiB) for many secrets at once"
    )
    return dict(zip(("usual", "status", "entry", "re-sealed", "many secrets"), figures, strict=True))[what]


@pytest.mark.parametrize(
    ("what", "method", "path"),
    [
        ("usual", "POST", "/v1/token"),
        ("entry", "POST", "/v1/cluster"),
        ("entry", "PUT", "/v1/app/{any}/object/{any}"),
        ("entry", "PUT", "/v1/cluster/{cluster}/secret/default/db/key"),
        ("many secrets", "POST", "/v1/cluster/{cluster}/secret"),
    ],
)
async def test_bodies_of_operators_have_the_limits_that_the_documents_state(
    centre: GatewayCentre, admin: httpx.AsyncClient, what: str, method: str, path: str
) -> None:
    url = path.format(any=uuid4(), cluster=await centre.create("edge"))
    for more in (False, True):
        answer = await admin.request(method, url, content=b" " * (octets(what) + more))
        assert (answer.json()["code"] in {"too_large", "secret_too_large"}) is more, answer.text


@pytest.mark.parametrize(
    ("what", "method", "path"), [("usual", "POST", "/v1/agent/heartbeat"), ("status", "PUT", "/v1/agent/status")]
)
async def test_bodies_of_edges_have_the_limits_that_the_documents_state(
    centre: GatewayCentre, what: str, method: str, path: str
) -> None:
    edge: Edge = await centre.register(await centre.create("edge"))
    for more in (False, True):
        answer = await centre.client(edge.as_agent).request(method, path, content=b" " * (octets(what) + more))
        assert (answer.json()["code"] == "too_large") is more, answer.text


def test_resealed_values_have_the_limit_that_the_documents_state() -> None:
    assert octets("re-sealed") == RESEALED_JSON.octets
