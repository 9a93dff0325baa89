"""Lives of a cluster that nobody has thought of: whatever is asked in whatever order, model and system agree."""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import pytest
from embedded import EmbeddedEdgewright
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from life_model import LifeModel
from loopback import PLAIN
from supervised import eventually

from tools.chaos.edge_keys import EdgeKey, make_keys
from tools.chaos.golden import CONFIGURATION, EDGE_STATUS, RELEASE_FILE, REPOSITORIES
from tools.chaos.repositories import CheckedRepository, is_secret, read_repositories
from tools.chaos.sealed import Opener

pytestmark = pytest.mark.timeout(3600)

LONG = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Lives to live; `make fuzz` asks for many, other ones each time."""
LIVES = max(LONG // 5, 10)
STEPS = 25 if LONG else 15
SEED = int(os.environ.get("FUZZ_SEED", secrets.randbelow(2**32)))
PLACES = ("default/db/user", "default/db/password")
PATIENCE = 60.0
"""Seconds until what was asked for is done; usually it takes a fraction of one."""


class ClusterLife(RuleBasedStateMachine):
    """One name, and the clusters that bear it one after the other."""

    centre: ClassVar[EmbeddedEdgewright]
    keys: ClassVar[list[EdgeKey]]

    def __init__(self) -> None:
        super().__init__()
        self.life = LifeModel(f"life-{uuid4().hex[:8]}")
        self.stamps = 0
        self.refused = False

    def ask(self, method: str, path: str, *, auth: tuple[str, str] | None = None, **options: Any) -> httpx.Response:
        """The first answer that is not "later"."""
        headers = options.pop("headers", {}) | {"Idempotency-Key": str(uuid4())}
        if auth is None and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {(self.centre.home / 'admin-token').read_text().strip()}"
        url = f"{self.centre.endpoints()['gateway']}{path}"
        answers: list[httpx.Response] = []

        def settled() -> bool:
            answers.append(
                httpx.request(
                    method,
                    url,
                    headers=headers,
                    auth=auth,
                    timeout=60,
                    **PLAIN,
                    **options,
                )
            )
            return answers[-1].status_code != 503

        eventually(settled, seconds=PATIENCE)
        assert answers[-1].status_code < 500, answers[-1].text
        return answers[-1]

    def of_cluster(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        return self.ask(method, f"/v1/cluster/{self.life.uuid}{path}", **options)

    def stamp(self) -> str:
        self.stamps += 1
        return f"stamp-{self.stamps}"

    @property
    def desired(self) -> str:
        return self.life.desired

    # --- wishes ----------------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.create()

    @precondition(lambda self: self.desired == "none")
    @rule()
    def create(self) -> None:
        stamp = self.stamp()
        body = {"name": self.life.name, "values": {"global": {"stamp": stamp}}, "labels": {"stamp": stamp}}
        answer = self.ask("POST", "/v1/cluster", json=body)
        assert answer.status_code == 201, answer.text
        self.life.created(answer.json()["uuid"], stamp)

    @precondition(lambda self: self.desired in {"present", "removed"} and not self.refused)
    @rule()
    def create_another_of_the_same_name(self) -> None:
        self.refused = True
        answer = self.ask("POST", "/v1/cluster", json={"name": self.life.name.upper()})
        assert said(answer) == (409, "name_taken")

    @precondition(lambda self: self.desired in {"present", "removed"})
    @rule(what=st.sampled_from(["values", "labels"]))
    def change(self, what: str) -> None:
        stamp = self.stamp()
        stamped = {"stamp": stamp}
        answer = self.of_cluster("PATCH", json={what: {"global": stamped} if what == "values" else stamped})
        if what == "values" and self.desired == "removed":
            assert said(answer) == (409, "removed")
            return
        assert answer.status_code == 200, answer.text
        if what == "values":
            self.life.stamp = stamp
        else:
            self.life.label = stamp

    @precondition(lambda self: self.desired in {"present", "removed"})
    @rule(place=st.sampled_from(PLACES), report=st.booleans())
    def put_secret(self, place: str, report: bool) -> None:
        if report and self.desired == "present":
            self.report()
        value = self.stamp()
        answer = self.of_cluster("PUT", f"/secret/{place}", content=value.encode())
        assert said(answer) == self.life.writable, answer.text
        if answer.is_success:
            self.life.secrets[place] = value

    @precondition(lambda self: self.desired == "present" and not self.life.paused)
    @rule(place=st.sampled_from(PLACES))
    def delete_secret(self, place: str) -> None:
        answer = self.of_cluster("DELETE", f"/secret/{place}")
        assert said(answer) == ((204, "") if place in self.life.secrets else (404, "secret_unknown"))
        self.life.secrets.pop(place, None)

    @precondition(lambda self: self.desired == "present" and not self.life.paused)
    @rule()
    def pause(self) -> None:
        assert self.of_cluster("POST", "/pause", json={"reason": "a rule"}).status_code == 200
        self.life.paused = True

    @precondition(lambda self: self.desired == "present" and self.life.paused)
    @rule()
    def resume(self) -> None:
        assert self.of_cluster("POST", "/resume", json={}).status_code == 200
        self.life.paused = False

    @precondition(lambda self: self.desired in {"present", "removed"})
    @rule()
    def remove(self) -> None:
        answer = self.ask("DELETE", f"/v1/app/{CONFIGURATION}/object/{self.life.uuid}")
        assert said(answer) == ((204, "") if self.desired == "present" else (404, "entry_unknown"))
        self.life.desired = "removed"

    @precondition(lambda self: self.desired == "removed")
    @rule()
    def come_back_by_entry(self) -> None:
        stamp = self.stamp()
        body = {"name": self.life.name, "namespace": "edgewright", "values": {"global": {"stamp": stamp}}}
        assert self.ask("PUT", f"/v1/app/{CONFIGURATION}/object/{self.life.uuid}", json=body).is_success
        self.life.recreated(stamp, new_hardware=False)

    @precondition(lambda self: self.desired in {"present", "removed"})
    @rule(new_hardware=st.booleans())
    def recreate(self, new_hardware: bool) -> None:
        answer = self.of_cluster("POST", "/recreate", json={"new_hardware": new_hardware})
        assert answer.status_code == 202, answer.text
        self.life.recreated(None, new_hardware=new_hardware)

    @precondition(lambda self: self.desired in {"present", "removed", "deleted"})
    @rule(force=st.booleans())
    def delete(self, force: bool) -> None:
        answer = self.of_cluster("DELETE", params={"force": "true"} if force else {})
        gone = self.desired == "deleted" and answer.status_code == 410
        assert answer.status_code == 202 or gone, answer.text
        self.life.deleted()
        if force or not self.life.edge:
            self._until_gone()

    @precondition(lambda self: self.desired == "deleted")
    @rule()
    def undelete(self) -> None:
        answer = self.of_cluster("POST", "/undelete")
        if answer.status_code == 200:
            self.life.desired = self.life.desired_before
        else:
            assert said(answer) == (409, "too_late"), answer.text

    # --- the edge --------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.desired == "present" and not self.life.paused and not self.life.edge)
    @rule()
    def attach(self) -> None:
        self._at_rest()
        answer = self.of_cluster("POST", "/registration-token", json={})
        assert answer.status_code == 200, answer.text
        agent = f"ewa_{secrets.token_hex(32)}"
        body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.31.2+k3s1", "agent_secret": agent}
        token = {"Authorization": f"Bearer {answer.json()['url'].partition('token=')[2]}"}
        body["flux_secret"] = f"ewf_{secrets.token_hex(32)}"
        answer = self.ask("POST", "/v1/register", json=body, headers=token)
        assert answer.status_code == 200, answer.text
        self.life.edge = agent
        self.report()

    def report(self) -> None:
        """By the edge if there is one, else by an operator."""
        status = {"hosts": [{"hostname": "press-1"}], "kubeseal_cert": self.keys[self.life.key].certificate}
        path = "/v1/agent/status" if self.life.edge else f"/v1/app/{EDGE_STATUS}/object/{self.life.uuid}"
        auth = (self.life.uuid, self.life.edge) if self.life.edge else None
        assert self.ask("PUT", path, json=status, auth=auth).is_success
        self.life.certified = True

    # --- looking ---------------------------------------------------------------------------------------------------

    @rule()
    def look(self) -> None:
        """Waits until all is at rest, and compares everything."""
        if self.desired == "none":
            self._is_gone()
        elif self.desired != "deleted":
            self._at_rest()

    def teardown(self) -> None:
        self.look()

    def _at_rest(self) -> None:
        wrong: list[str] = []

        def fits() -> bool:
            shown = self.of_cluster("GET")
            wrong[:] = self.life.shows(shown.json()) if shown.is_success else [shown.text]
            wrong.extend([] if wrong else self._wrong_elsewhere())
            return not wrong

        try:
            eventually(fits, seconds=PATIENCE)
        except AssertionError:
            raise AssertionError(f"{self.life}: {wrong}") from None

    def _wrong_elsewhere(self) -> Iterator[str]:
        """What the other doors and the repository say that is not so."""
        life = self.life
        present, settled = life.desired == "present", not life.paused
        status = self.of_cluster("GET", "/status")
        if settled and (status.status_code, status.json().get("ready")) != ((200, True) if present else (404, None)):
            yield f"the setup status is {status.text}"
        entry = self.ask("GET", f"/v1/app/{CONFIGURATION}/object/{life.uuid}")
        if entry.status_code != (200 if present else 404):
            yield f"the entry is {entry.text}"
        listed = self.ask("GET", "/v1/cluster", params={"name": life.name, "phase": "Removed"} if not present else {})
        if present and [i["uuid"] for i in listed.json()["items"] if i["name"] == life.name] != [life.uuid]:
            yield "it is not once in the list"
        if life.edge and settled:
            beat = self.ask("POST", "/v1/agent/heartbeat", json={}, auth=(life.uuid, life.edge)).json()
            if beat["state"] != ("active" if present else "suspended"):
                yield f"the agent is {beat['state']}"
        if settled:
            yield from self._wrong_in_git()

    def _wrong_in_git(self) -> Iterator[str]:
        repositories = read_repositories(self.centre.home / REPOSITORIES)
        found = [one for one in repositories if one.uuid == self.life.uuid and not one.archived]
        if not found and self.life.desired == "removed" and not self.life.secrets:
            return  # removed before it had one
        [repository] = found
        opened = opened_secrets(repository, self.keys)
        if opened != self.life.secrets:
            yield f"the repository holds {opened}, not {self.life.secrets}"
        release = repository.blobs.get(repository.files.get(RELEASE_FILE, ""), "")
        if self.life.desired == "present" and json.dumps(self.life.stamp).strip('"') not in release.split():
            yield f"{self.life.stamp} is not delivered"

    def _until_gone(self) -> None:
        eventually(lambda: self.of_cluster("GET").status_code == 410, seconds=PATIENCE)
        self._is_gone()
        self.life = LifeModel(self.life.name)

    def _is_gone(self) -> None:
        if self.life.uuid:
            assert self.of_cluster("GET", "/status").status_code == 410
            repositories = read_repositories(self.centre.home / REPOSITORIES)
            assert not [one for one in repositories if one.uuid == self.life.uuid and not one.archived]
        items = self.ask("GET", "/v1/cluster").json()["items"]
        assert self.life.name not in {item["name"] for item in items}


def said(answer: httpx.Response) -> tuple[int, str]:
    """Status and code; a success has no code."""
    return answer.status_code, "" if answer.is_success else str(answer.json()["code"])


def opened_secrets(repository: CheckedRepository, keys: list[EdgeKey]) -> dict[str, str | None]:
    """``namespace/name/key`` -> value, of every sealed Secret at the head."""
    opener, found = Opener(keys), dict[str, str | None]()
    for path, blob in repository.files.items():
        if is_secret(path):
            found |= {place: opened.value for place, opened in opener.values(repository.blobs[blob]).items()}
    return found


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    folder: Path = tmp_path_factory.mktemp("life")
    centre = EmbeddedEdgewright(folder / "home", {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "2"})
    ClusterLife.keys = make_keys(folder / "edge-keys.json")
    try:
        centre.up()
        ClusterLife.centre = centre
        yield centre
    finally:
        centre.clear_up()


def test_model_and_system_agree_on_every_life(centre: EmbeddedEdgewright) -> None:
    if LONG:
        sys.stderr.write(f"lives of FUZZ_SEED={SEED}\n")
        seed(SEED)(ClusterLife)
    run_state_machine_as_test(
        ClusterLife,
        settings=settings(
            max_examples=LIVES,
            stateful_step_count=STEPS,
            derandomize=not LONG,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
    assert not centre.ended()
