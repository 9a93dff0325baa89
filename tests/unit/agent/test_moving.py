"""The centre moves to another URL: an edge follows once that works, and is never left without a way, if killed."""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from edge_cluster.certificates import Authority
from rotating_centre import CLUSTER, AgentKilled, Blind, EdgeSecrets, NoDetacher, NoFlux
from scripted_centre import (
    QuickClock,
    ReceivedRequest,
    Reply,
    ScriptedCentre,
    TimeIsUp,
    answer,
    scripted_centre,
    taken,
)
from structlog.testing import capture_logs

from edgewright.agent.attachment import Attachment, read_attachment
from edgewright.agent.centre import Centre
from edgewright.agent.fetching import FluxFetching
from edgewright.agent.leaving import Leaving
from edgewright.agent.moving import Moving
from edgewright.agent.observation import Fetched, Observation
from edgewright.agent.reporter import Reporter
from edgewright.agent.rotation import Rotation
from edgewright.agent.watch import Watch
from edgewright.errors import Waiting

HOUR = 3600.0
OWN, FLUX = "edgewright-agent", "flux-secrets"


class MovingCentre:
    """One centre behind two doors, each of which may be shut."""

    def __init__(self) -> None:
        self.move_to: dict[str, Any] | None = None
        self.is_settled = False
        self.shut: set[str] = set()
        self.last_nonce: str | None = None
        self.breaks = 0

    def reply_at(self, name: str, request: ReceivedRequest) -> Reply:
        if name in self.shut:
            return Reply(502, b"<html>nobody here</html>")
        if request.path != "/v1/agent/heartbeat":
            return taken()
        said = request.body
        if "previous_nonce" in said and self.last_nonce not in (said["previous_nonce"], said["nonce"]):
            self.breaks += 1
        self.last_nonce = said["nonce"]
        wanted: dict[str, Any] = {}
        if self.move_to is not None and said["centre_url"] != self.move_to["url"]:
            wanted = {"move_to": self.move_to}
        elif self.is_settled and said.get("holds_former"):
            wanted = {"forget_former": True}
        return answer(request, **wanted)


class Life:
    """Agents of one edge, one after the other, and two doors of its centre."""

    def __init__(self, old: ScriptedCentre, new: ScriptedCentre, centre: MovingCentre) -> None:
        self.old, self.new, self.centre = old, new, centre
        self.secrets = EdgeSecrets()
        self.secrets.write(OWN, url=old.url)
        self.seen = Observation()

    def use(self) -> str | None:
        return self.secrets.text(OWN, "url")

    async def live(self, lasts: float = HOUR) -> list[dict[str, Any]]:
        """One agent, until its time is up or it is killed; returns what it logged."""
        clock = QuickClock(lasts)
        watch = Watch(
            Blind(),
            self._no_certificate,
            namespace="edgewright",
            cluster=CLUSTER,
            look_seconds=15,
            clock=clock,
            chance=Random(7),
        )
        watch.seen = self.seen
        reporter = Reporter(
            Centre(await self._attachment()),
            watch,
            attachment=self._attachment,
            connect=Centre,
            rotation=Rotation(self.secrets, namespace="edgewright"),
            leaving=Leaving(NoDetacher(), namespace="edgewright"),
            moving=Moving(self.secrets, namespace="edgewright", clock=clock),
            fetching=FluxFetching(NoFlux(), namespace="edgewright", clock=clock, chance=Random(1)),
            clock=clock,
            chance=Random(7),
        )
        with capture_logs() as logged, pytest.raises((TimeIsUp, AgentKilled)):
            await reporter.run()
        return [dict(line) for line in logged]

    async def _attachment(self) -> Attachment:
        return read_attachment(self.secrets.data(OWN))

    async def _no_certificate(self) -> str:
        raise Waiting("Nothing is seen.")


@pytest.fixture
def life() -> Iterator[Life]:
    centre = MovingCentre()
    with (
        scripted_centre(lambda request: centre.reply_at("old", request)) as old,
        scripted_centre(lambda request: centre.reply_at("new", request)) as new,
    ):
        yield Life(old, new, centre)


def moves(logged: list[dict[str, Any]]) -> list[str]:
    return [line["state"] for line in logged if line["event"] == "move"]


async def test_it_moves_and_forgets_the_old_way_when_it_is_told_so(life: Life) -> None:
    life.centre.move_to = {"url": life.new.url, "ca_bundle": None}
    assert moves(await life.live()) == ["moved"]
    assert life.use() == life.new.url
    assert len(life.old.beats) == 1
    assert life.new.beats[-1].body["holds_former"] is True
    life.centre.is_settled = True
    assert moves(await life.live()) == ["settled"]
    assert life.secrets.text(OWN, "centre.former") is None
    assert "holds_former" not in life.new.beats[-1].body
    assert life.centre.breaks == 0, "one agent, whichever way it comes"


@pytest.mark.parametrize("door", ["shut", "nobody", "refuses", "another"])
async def test_a_wrong_url_locks_nobody_out(life: Life, door: str) -> None:
    url = life.new.url
    match door:
        case "shut":
            life.centre.shut = {"new"}
        case "nobody":
            url = "http://127.0.0.1:9"
        case "refuses":
            life.new.reply = lambda _request: Reply(401)
        case "another":  # such as a cache, which answers for another heartbeat
            life.new.reply = lambda _request: Reply(200, {"state": "active", "interval": 100})
    life.centre.move_to = {"url": url, "ca_bundle": None}
    logged = await life.live()
    assert moves(logged) == ["stayed"]
    assert life.use() == life.old.url
    assert 33 <= len(life.old.beats) <= 45, "it goes on where it was"
    assert life.old.beats[-1].body["centre_problem"].startswith(url)
    assert len(life.new.beats) <= 7, "and does not hammer"


async def test_it_never_leaves_https_for_plain_http(life: Life, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served = authority.server("centre")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served.certificate, served.key)
    with scripted_centre(lambda request: life.centre.reply_at("old", request), tls=context) as old:
        life.secrets.write(OWN, url=old.url, ca_crt=authority.identity.certificate.read_text())
        life.centre.move_to = {"url": life.new.url, "ca_bundle": None}
        assert moves(await life.live()) == ["stayed"]
        assert life.new.beats == [], "its password goes nowhere in clear"


async def test_other_certificates_are_trusted_once_they_fit_and_by_flux_before(life: Life, tmp_path: Path) -> None:
    first, second, foreign = (_authority(tmp_path / name) for name in ("first", "second", "foreign"))
    pems = [each.identity.certificate.read_text() for each in (first, second, foreign)]
    served = second.server("centre")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served.certificate, served.key)
    life.secrets.write(FLUX, ca_crt=pems[0])
    with scripted_centre(lambda request: life.centre.reply_at("new", request), tls=context) as new:
        life.centre.move_to = {"url": new.url, "ca_bundle": pems[2]}
        assert moves(await life.live()) == ["stayed"]
        assert "not trusted" in life.old.beats[-1].body["centre_problem"]
        life.centre.move_to = {"url": new.url, "ca_bundle": pems[1]}
        assert moves(await life.live()) == ["moved"]
        assert life.secrets.text(OWN, "ca.crt") == pems[1].strip()
        flux = life.secrets.text(FLUX, "ca.crt")
        assert flux is not None and pems[0].strip() in flux and pems[1].strip() in flux


async def test_when_the_new_way_fails_later_it_goes_back(life: Life) -> None:
    life.centre.move_to = {"url": life.new.url, "ca_bundle": None}
    await life.live()
    life.centre.shut = {"new"}
    assert moves(await life.live()) == ["fell_back", "stayed"]
    assert life.use() == life.old.url
    life.centre.shut = set()
    assert moves(await life.live()) == ["moved"]
    assert life.use() == life.new.url


async def test_the_old_way_is_kept_as_long_as_flux_uses_it(life: Life) -> None:
    life.centre.move_to = {"url": life.new.url, "ca_bundle": None}
    await life.live()
    life.centre.is_settled = True
    life.seen = Observation(sources=(Fetched("self-link", url=f"{life.old.url}/uuid/x"),))
    assert moves(await life.live()) == []
    assert life.secrets.text(OWN, "centre.former") is not None
    life.seen = Observation(sources=(Fetched("self-link", url=f"{life.new.url}/uuid/x"),))
    assert moves(await life.live()) == ["settled"]


@pytest.mark.parametrize("before", [True, False], ids=["before the change", "after it"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_killed_at_any_change_of_a_secret_the_next_agent_goes_on(
    life: Life, tmp_path: Path, number: int, before: bool
) -> None:
    old, new = (_authority(tmp_path / name).identity.certificate.read_text().strip() for name in ("old", "new"))
    life.centre.move_to = {"url": life.new.url, "ca_bundle": new}
    life.secrets.write(FLUX, ca_crt=old)
    life.secrets.write(OWN, ca_crt=old)
    changes, struck = count(1), []

    def strike(_number: int) -> None:
        if next(changes) == number:
            struck.append(number)
            raise AgentKilled

    if before:
        life.secrets.before_change = strike
    else:
        life.secrets.after_change = strike
    for _ in range(3):
        life.centre.is_settled = life.use() == life.new.url
        await life.live()
    assert struck == [number]
    assert (life.use(), life.secrets.text(OWN, "ca.crt")) == (life.new.url, new)
    assert life.secrets.text(OWN, "centre.former") is None
    assert life.secrets.text(FLUX, "ca.crt") == new


async def test_a_secret_of_another_cluster_is_left_alone(life: Life) -> None:
    life.centre.move_to = {"url": life.new.url, "ca_bundle": None}
    life.secrets.label = "another"
    assert moves(await life.live()) == ["stayed"]
    assert life.use() == life.old.url


def test_a_former_way_that_cannot_be_read_is_none() -> None:
    secrets = EdgeSecrets()
    secrets.write(OWN, url="https://a")
    for wrong in (b"{", b"[]", b'{"url": "ftp://x"}', b'{"url": "https://a", "ca_bundle": 7}', b"\xff"):
        data = {**secrets.data(OWN), "centre.former": b64encode(wrong).decode()}
        assert read_attachment(data).former is None


def _authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)
