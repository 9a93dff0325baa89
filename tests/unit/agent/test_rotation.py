"""Credentials are replaced without a moment in which none of them works, whenever the agent is killed."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import count, cycle
from random import Random
from typing import Any

import pytest
from rotating_centre import CLUSTER, AgentKilled, Blind, EdgeSecrets, NoDetacher, NoFlux, RotatingCentre
from scripted_centre import QuickClock, ReceivedRequest, Reply, ScriptedCentre, TimeIsUp, scripted_centre
from structlog.testing import capture_logs

from edgewright.agent.attachment import Attachment, read_attachment
from edgewright.agent.centre import Centre
from edgewright.agent.fetching import FluxFetching
from edgewright.agent.leaving import Leaving
from edgewright.agent.moving import Moving
from edgewright.agent.observation import Observation
from edgewright.agent.reporter import Reporter
from edgewright.agent.rotation import Rotation
from edgewright.agent.watch import Watch
from edgewright.errors import Waiting

HOUR = 3600.0
OWN, FLUX = "edgewright-agent", "flux-secrets"


class Life:
    """Agents of one edge, one after the other, on the Secrets that the edge keeps."""

    def __init__(self, served: ScriptedCentre, centre: RotatingCentre, secrets: EdgeSecrets) -> None:
        self.served, self.centre, self.secrets = served, centre, secrets
        self.fluxes = True
        self.unheard: list[str] = []
        self.ended_by: type[BaseException] | None = None

    async def live(self, lasts: float = HOUR) -> list[dict[str, Any]]:
        """One agent, until its time is up or it is killed; returns what it logged."""
        clock = QuickClock(lasts, self._each_sleep)
        watch = Watch(
            Blind(),
            self._no_certificate,
            namespace="edgewright",
            cluster=CLUSTER,
            look_seconds=15,
            clock=clock,
            chance=Random(7),
        )
        watch.seen = Observation()
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
        with capture_logs() as logged, pytest.raises((TimeIsUp, AgentKilled)) as ended:
            await reporter.run()
        self.ended_by = ended.type
        return [dict(line) for line in logged]

    def fetch(self) -> None:
        """What Flux does, with what is in its Secret."""
        password = self.secrets.text(FLUX)
        assert password
        if not self.centre.held["flux"].use(password):
            self.unheard.append(password)

    def _each_sleep(self) -> None:
        if self.fluxes:
            self.fetch()

    async def _attachment(self) -> Attachment:
        url = b64encode(self.served.url.encode()).decode()
        return read_attachment({**self.secrets.data(OWN), "url": url})

    async def _no_certificate(self) -> str:
        raise Waiting("Nothing is seen.")


def settled(life: Life) -> bool:
    """Whether each side knows what the other one uses, and nothing is left over."""
    pairs = ((OWN, "agent"), (FLUX, "flux"))
    same = all(life.secrets.text(name) == life.centre.held[role].active for name, role in pairs)
    clean = all(life.secrets.text(name, "password.next") is None for name, _role in pairs)
    return same and clean and not any(held.pending for held in life.centre.held.values())


@pytest.fixture
def rotating() -> RotatingCentre:
    return RotatingCentre("agent", "flux")


@pytest.fixture
def life(rotating: RotatingCentre) -> Iterator[Life]:
    with scripted_centre(rotating.reply) as served:
        yield Life(served, rotating, EdgeSecrets())


Arrow = Callable[[Life, pytest.MonkeyPatch], None]


def states(logged: list[dict[str, Any]], matter: str) -> list[str]:
    return [line["state"] for line in logged if line["event"] == matter]


async def test_what_the_centre_wants_replaced_is_made_registered_and_used(life: Life) -> None:
    logged = await life.live()
    assert settled(life)
    assert [each.revoked for each in life.centre.held.values()] == [["agent-first"], ["flux-first"]]
    assert (life.secrets.text(OWN, "password.previous"), life.unheard) == ("agent-first", [])
    assert [each[:4] for each in life.centre.registered] == ["ewf_", "ewa_"]
    assert all(len(each) == 68 for each in life.centre.registered)
    assert states(logged, "agent_credential") == ["made", "replaced"]
    assert states(logged, "flux_credential") == ["known", "made", "replaced", "known"]
    assert states(logged, "centre") == ["active", "attachment_changed", "active"]
    assert not [each for each in life.centre.registered if each in str(logged)]


def _kill() -> None:
    raise AgentKilled


def at_change(number: int, hook: str) -> Arrow:
    def arm(life: Life, _patch: pytest.MonkeyPatch) -> None:
        setattr(life.secrets, hook, lambda now: _kill() if now == number else None)

    return arm


def at_request(path: str, number: int, *, answered: bool) -> Arrow:
    """The agent dies while its request is on the way, or before it has read the answer."""

    def arm(_life: Life, patch: pytest.MonkeyPatch) -> None:
        send, sent = Centre._send, count(1)

        async def dies(self: Centre, method: str, to: str, body: Any, **more: Any) -> Any:
            last = to == path and next(sent) == number
            if last and not answered:
                _kill()
            answer = await send(self, method, to, body, **more)
            if last:
                _kill()
            return answer

        patch.setattr(Centre, "_send", dies)

    return arm


ARROWS = {
    f"change {number} of a Secret, {hook}": at_change(number, hook)
    for number in (1, 2, 3, 4)
    for hook in ("before_change", "after_change")
} | {
    f"{path} {number}, {answered=}": at_request(path, number, answered=answered)
    for path in ("/v1/agent/credential", "/v1/agent/heartbeat")
    for number in (1, 2)
    for answered in (False, True)
}


@pytest.mark.parametrize("arrow", ARROWS)
async def test_an_agent_that_is_killed_at_any_arrow_goes_on_where_it_was(life: Life, arrow: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        ARROWS[arrow](life, patch)
        await life.live()
    assert life.ended_by is AgentKilled
    life.fetch()
    life.secrets.before_change = life.secrets.after_change = lambda _number: None
    await life.live()
    assert settled(life)
    assert [each.revoked for each in life.centre.held.values()] == [["agent-first"], ["flux-first"]]
    assert life.unheard == [], "Flux was let in all the time"


async def test_flux_keeps_its_new_password_and_no_other_is_made_until_it_was_used(life: Life) -> None:
    life.fluxes = False
    await life.live(3 * HOUR)
    flux = life.centre.held["flux"]
    assert (flux.active, flux.pending) == ("flux-first", life.secrets.text(FLUX))
    assert len(life.centre.registered) == 2
    life.fetch()
    assert flux.revoked == ["flux-first"]


async def test_a_centre_that_went_back_in_time_is_met_with_the_password_that_it_knows(life: Life) -> None:
    await life.live()
    life.centre.held = RotatingCentre().held
    logged = await life.live()
    assert states(logged, "agent_credential") == ["adopted", "made", "replaced"], (
        "and what it wanted then is done again"
    )
    assert states(logged, "flux_credential")[:3] == ["known", "made", "replaced"]
    life.unheard.clear()
    await life.live()
    assert settled(life) and life.unheard == []


async def test_a_centre_that_never_has_enough_is_not_hammered(life: Life) -> None:
    def insists(request: ReceivedRequest) -> Reply:
        reply = life.centre.reply(request)
        wants = reply.status == 200 and request.path == "/v1/agent/heartbeat"
        return Reply(200, {**reply.body, "rotate": ["agent"]}) if wants else reply

    life.served.reply = insists
    await life.live()
    assert len(life.centre.registered) <= 40
    assert len(life.served.beats) <= 80


async def test_gateways_that_know_different_passwords_are_not_hammered(life: Life) -> None:
    life.secrets.write(OWN, password_previous="other", password_generation="1")
    passwords = cycle(["other", "agent-first"])

    def disagree(request: ReceivedRequest) -> Reply:
        life.centre.held["agent"].active = next(passwords)
        return life.centre.reply(request)

    life.served.reply = disagree
    await life.live()
    assert len(life.served.beats) < 120


async def test_what_flux_uses_and_the_centre_does_not_know_is_replaced(life: Life) -> None:
    life.centre.wanted = {}
    life.secrets.write(FLUX, password="of-a-later-day")
    await life.live()
    assert settled(life)


@pytest.mark.parametrize("key", ["password_previous", "password_next"])
async def test_an_edge_that_went_back_in_time_finds_the_password_that_is_valid_by_now(life: Life, key: str) -> None:
    life.centre.wanted = {}
    life.secrets.write(OWN, password="too-old", password_generation="1", **{key: "agent-first"})
    logged = await life.live()
    assert states(logged, "agent_credential") == ["adopted"]
    assert (life.secrets.text(OWN), life.secrets.text(OWN, "password.previous")) == ("agent-first", "too-old")
    assert settled(life)


async def test_what_is_left_of_earlier_hardware_is_not_used(life: Life) -> None:
    for name in (OWN, FLUX):
        life.secrets.write(name, password_next="old-next", password_previous="old", password_generation="0")
    await life.live()
    assert settled(life)
    assert "old-next" not in life.centre.registered
    life.centre.held["agent"].active = "old"
    life.secrets.write(OWN, password_previous="old", password_generation="0")
    assert "adopted" not in states(await life.live(), "agent_credential")


async def test_a_successor_that_was_revoked_on_its_way_is_thrown_away(life: Life) -> None:
    life.secrets.write(FLUX, password_next="dead", password_generation="1")
    life.centre.held["flux"].revoked.append("dead")
    logged = await life.live()
    assert states(logged, "flux_credential") == ["known", "kept", "known", "made", "replaced", "known"]
    assert life.centre.held["flux"].revoked == ["dead", "flux-first"]


async def test_somebody_elses_secret_is_left_alone(life: Life) -> None:
    life.secrets.label = "another-cluster"
    before = [life.secrets.data(name) for name in (OWN, FLUX)]
    logged = await life.live()
    assert [life.secrets.data(name) for name in (OWN, FLUX)] == before
    assert states(logged, "flux_credential") == ["unreadable"]
    assert states(logged, "agent_credential") == ["kept"]
    assert states(logged, "centre") == ["active"]


async def test_a_change_by_somebody_else_is_not_overwritten(life: Life) -> None:
    def interferes(number: int) -> None:
        if number == 2:
            life.secrets.write(FLUX, username="renamed")

    life.secrets.before_change = interferes
    logged = await life.live()
    assert states(logged, "flux_credential") == ["known", "made", "kept", "known", "replaced", "known"]
    assert settled(life) and life.secrets.text(FLUX, "username") == "renamed"
    assert len(life.centre.registered) == 3, "the same one twice, and the agent's own"
    assert len(set(life.centre.registered)) == 2


async def test_the_lease_is_kept_while_the_secrets_cannot_be_reached(life: Life) -> None:
    life.secrets.is_away = True
    logged = await life.live()
    assert 33 <= len(life.served.beats) <= 40
    assert all("flux_sha256" not in beat.body for beat in life.served.beats)
    assert states(logged, "agent_credential") == ["kept"]
    life.secrets.is_away = False
    await life.live()
    assert settled(life)


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 500, 503, 200])
async def test_a_registration_that_fails_changes_nothing_that_is_used(life: Life, status: int) -> None:
    def reply(request: ReceivedRequest) -> Reply:
        well = life.centre.reply(request)
        return Reply(status, {}) if request.path == "/v1/agent/credential" else well

    life.centre.lets_register = False
    life.served.reply = reply
    await life.live()
    assert (life.secrets.text(OWN), life.secrets.text(FLUX)) == ("agent-first", "flux-first")
    life.centre.lets_register = True
    life.served.reply = life.centre.reply
    await life.live()
    assert settled(life)
    assert len(life.centre.registered) == 2, "what was made before is what was registered"
