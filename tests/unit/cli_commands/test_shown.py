"""Every help and every list at 80 columns, as the files in ``shown`` hold them.

After a change that is meant, write them anew, and read what has changed::

    WRITE_SHOWN=1 .venv/bin/python -m pytest tests/unit/cli_commands/test_shown.py -n 0
"""

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from command_line import Terminal
from scripted_centre import ReceivedRequest, Reply, scripted_centre
from typer.testing import CliRunner

from edgewright.cli.main import app, command_tree

SHOWN = Path(__file__).parent / "shown"
WIDTH = 80
DOCUMENT = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text("utf-8"))
CLUSTER = "05194035-8ee5-56f1-95fa-86bca267c5c1"
OTHER = "179fdd25-708d-4eb1-a2a6-0f6884b7612f"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TOKEN = "ew_0123456789abcdef_" + "A" * 43


# --- helps ---------------------------------------------------------------------------------------------------------


def helps() -> Iterator[tuple[str, ...]]:
    """Every command and every group: the words that name it."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), command_tree())]
    while waiting:
        words, command = waiting.pop()
        yield words
        waiting += [((*words, name), inner) for name, inner in getattr(command, "commands", {}).items()]


HELPS = sorted(helps())


def file_of(kind: str, words: tuple[str, ...]) -> Path:
    return SHOWN / kind / ("-".join(("edgewright", *words)) + ".txt")


def plain(text: str) -> str:
    """Without colours, and without the blanks at the end that fill a line."""
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def hold(file: Path, shown: str) -> None:
    """Compares with the file, or writes it where that is wanted."""
    if os.environ.get("WRITE_SHOWN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shown, "utf-8")
    assert file.exists(), f"{file.name} is missing: {__doc__}"
    assert shown == file.read_text("utf-8"), __doc__


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_is_what_its_file_holds(
    environment: dict[str, str | None], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", WIDTH)  # whatever TERMINAL_WIDTH was when Typer was loaded
    runner = CliRunner(env={**environment, "COLUMNS": str(WIDTH)})  # names the program, whatever runs the test
    # The tree has the options that every command gets; what Typer makes of the application has none of them.
    monkeypatch.setattr("typer.testing._get_command", lambda _app: command_tree())
    hold(file_of("help", words), plain(runner.invoke(app, [*words, "--help"], prog_name="edgewright").stdout))


# --- lists ---------------------------------------------------------------------------------------------------------


def before(**ago: float) -> str:
    """A moment so long before now, and half a minute more, so that it is told alike while the test runs."""
    return (datetime.now(UTC) - timedelta(**ago) - timedelta(seconds=30)).isoformat()


def summary(name: str, **changes: Any) -> dict[str, Any]:
    wont: dict[str, Any] = {
        "uuid": OTHER,
        "name": name,
        "phase": "Active",
        "ready": True,
        "available": "True",
        "blocked": False,
        "synced": "True",
        "healthy": "True",
        "paused": False,
        "labels": {"site": "sheffield"},
        "generation": 1,
        "created_at": before(days=40),
        "last_heard": before(minutes=3),
        "waiting_for": "",
        "deleted_at": None,
    }
    return {**wont, **changes}


def clusters() -> dict[str, Any]:
    mend = "The template cannot be rendered: values do not fit its schema. Mend the template."
    silent = "No heartbeat since yesterday. Look at the pod of the agent on the edge."
    return {
        "items": [
            summary("paint-shop", blocked=True, healthy="False", phase="Commissioning", last_heard=None)
            | {"available": "Unknown", "waiting_for": mend},
            summary("ship-in-the-north-sea", available="False", last_heard=before(days=2), waiting_for=silent),
            summary("press-shop-of-the-plant-with-a-name-that-is-very-long-and-ends-1", paused=True),
            summary("demo", phase="AwaitingBootstrap", available="Unknown", last_heard=None)
            | {"waiting_for": "Run the bootstrap line on the edge cluster."},
            summary("weld-shop"),
        ],
        "next": None,
    }


def cluster() -> dict[str, Any]:
    condition = {"status": "True", "since": before(hours=5)}
    step: dict[str, Any] = {"state": "done", "attempts": 1, "finished_at": before(hours=5), "next_at": None}
    step |= {"error": "", "hint": "", "skipped_because": ""}
    no_room = "The repository cannot be written: there is no room on the disk of the centre."
    return {
        **{"uuid": CLUSTER, "name": "press-shop", "namespace": "edgewright", "chart": None, "bare": False},
        **{"values": {}, "labels": {"line": "4", "site": "sheffield"}, "accept": "manual", "lease_seconds": 300},
        **{"generation": 1, "desired": "present", "phase": "Commissioning", "ready": False},
        **{"waiting_for": no_room, "acceptance": "accepted", "short_code": "K7QX-94TM"},
        "pause": {"paused": False, "reason": ""},
        "conditions": [
            {**condition, "type": "Joined", "reason": "Reported", "message": "The edge reports its status."},
            {**condition, "type": "Blocked", "reason": "DiskFull", "message": f"{no_room} Make some room there."},
            {**condition, "type": "SealingKeyCurrent", "status": "Unknown", "reason": "NotReported", "message": ""},
        ],
        "steps": [
            {**step, "name": "create_repository"},
            {**step, "name": "populate_repository", "state": "waiting", "attempts": 3, "error": no_room}
            | {"hint": "Make some room.", "finished_at": None, "next_at": before(minutes=-5)},
        ],
        "hosts": [{"hostname": "press-1"}, {"hostname": "press-2"}],
        "versions": {"agent": "0.3.0", "agent-image": "example.com/agent:0.3.0", "flux": "v2.7.3"},
        "certificate": {"fingerprint": DIGEST, "not_before": before(days=9), "not_after": before(days=-3600)}
        | {"taken_at": before(days=9)},
        "revisions": {"desired": "d854a4fd41f4f7ab04183e65b9a82be4441c1e60", "observed": None},
        "lease": {"state": "current", "last_heard": before(minutes=3), "expires_at": before(minutes=-2)}
        | {"clock_offset_seconds": 0.2},
        "residue": [{"step": "remove_accounts", "reason": "The broker is away.", "since": before(days=1)}],
        "must_reenter": ["default/db/password"],
        "deletion": None,
        "links": {
            "repository": "http://127.0.0.1:8484/git/cluster/press-shop",
            "temporal_ui": f"http://127.0.0.1:8233/namespaces/default/workflows/cluster-{CLUSTER}",
        },
        **{"created_at": before(days=40), "created_by": "token:admin-bcc97ef0", "as_of": before(minutes=1)},
    }


def timeline() -> dict[str, Any]:
    said = [
        ("cluster.created", "token:admin-bcc97ef0", "The cluster press-shop was created."),
        ("step.done", "centre", "Step allocate_address done. Sparkplug Group-ID Edgewright-press-shop."),
        ("step.failed", "centre", "Step populate_repository failed: there is no room on the disk of the centre."),
        ("phase.changed", "token:continuous-integration-of-the-plant", "Now Active (was Commissioning)."),
    ]
    events = [
        {"id": CLUSTER, "cluster": CLUSTER, "kind": kind, "actor": actor, "message": message, "position": position}
        | {"at": before(hours=5), "detail": {}}
        for position, (kind, actor, message) in enumerate(said, 1)
    ]
    return {"items": events, "next": None, "waiting_for": "", "waiting": []}


def secrets() -> dict[str, Any]:
    long = "a-namespace-of-a-team-with-a-long-name"
    key: dict[str, Any] = {
        "namespace": "default",
        "name": "db",
        "sealed_at": before(minutes=3),
        "fingerprint": DIGEST,
    }
    key |= {"state": "current", "edge_state": "opened", "refusal": None, "opens": None}
    listed = {"namespace": "default", "name": "db", "type": "Opaque", "labels": {}, "annotations": {}}
    listed |= {"edge_state": "opened"}
    return {
        "items": [
            {**key, "key": "password"},
            {**key, "key": "username", "state": "stale", "edge_state": "refused", "sealed_at": before(days=90)},
            {**key, "namespace": long, "name": "registry", "key": ".dockerconfigjson", "opens": False},
        ],
        "secrets": [
            listed,
            {**listed, "namespace": long, "name": "registry"} | {"type": "kubernetes.io/dockerconfigjson"},
        ],
        "unreadable": ["edo/secrets/default/notes.yaml"],
        "must_reenter": [f"{long}/registry/.dockerconfigjson"],
        "more_unopened": 2,
    }


def tokens() -> dict[str, Any]:
    made = {"created_at": before(days=40), "expires_at": None}
    everything = ["read", "clusters", "secrets", "push", "admin"]
    return {
        "items": [
            {**made, "id": "bcc97ef0bcc97ef0", "name": "admin-bcc97ef0", "permissions": everything},
            {**made, "id": "0123456789abcdef", "name": "continuous-integration-of-the-plant-in-the-north"}
            | {"permissions": ["read", "clusters", "secrets"], "expires_at": before(days=-5)},
        ]
    }


def webhook() -> dict[str, Any]:
    tried = "cluster.blocked of press-shop was not taken in 3 tries: the receiver answered 503 Service Unavailable."
    return {
        "id": CLUSTER,
        "url": "https://alerts.example.com/edgewright",
        "created_at": before(days=3),
        "stopped_at": before(hours=1),
        "last_delivery": {
            "at": before(hours=2),
            "type": "cluster.blocked",
            "cluster": "press-shop",
            "delivered": False,
        }
        | {"status": 503, "attempts": 3, "message": tried},
        "waiting": {"count": 4, "since": before(hours=2), "message": "4 notifications wait."},
    }


def flux() -> dict[str, Any]:
    images = [f"ghcr.io/fluxcd/{name}:v1.7.0" for name in ("helm-controller", "kustomize-controller")]
    return {
        **{"version": "v2.7.0", "sha256": DIGEST, "images": images, "mirror": None, "imported_at": before(days=3)},
        "releases": [
            {"version": "v2.7.0", "sha256": DIGEST, "imported_at": before(days=3), "offered": True},
            {"version": None, "sha256": DIGEST[::-1], "imported_at": before(days=4), "offered": False},
        ],
    }


def upgrades() -> dict[str, Any]:
    agent: dict[str, Any] = {"cluster": CLUSTER, "name": "press-shop", "component": "agent", "version": "0.4.0"}
    agent |= {"before": "0.3.0", "state": "done", "since": before(hours=2), "ended_at": before(hours=1), "reason": ""}
    nothing = "Nothing has proven 0.4.0 within 15 minutes. Flux says: the image cannot be pulled."
    refused = "Nothing has proven v2.7.3 within 15 minutes. Flux says: the kind has a version that is stored."
    return {
        "items": [
            {**agent, "name": "ship-in-the-north-sea", "state": "under_way", "ended_at": None} | {"before": None},
            {**agent, "name": "weld-shop", "component": "flux", "state": "failed", "reason": refused}
            | {"before": "v2.7.0", "version": "v2.7.3"},
            {**agent, "name": "paint-shop", "state": "fell_back", "reason": nothing},
            {**agent, "version": "0.4.0-1f2e3d4c5b6a", "before": "0.3.0-9a8b7c6d5e4f"},
        ],
        "next": None,
    }


def charts() -> dict[str, Any]:
    ours: dict[str, Any] = {
        "name": "edge-cluster",
        "version": "1.4.0",
        "app_version": None,
        "description": None,
        "own": False,
    }
    theirs: dict[str, Any] = {
        "name": "press-with-a-name-that-is-rather-long",
        "version": "0.1.0-rc.1",
        "app_version": "7",
    }
    theirs |= {"description": "The press.", "path": "charts/press", "own": True}
    return {
        "items": [
            {**ours, "path": "edge-cluster", "templates": ["default", "shop-floor"], "clusters": 10_000},
            {**theirs, "templates": [], "clusters": 0},
        ]
    }


def templates() -> dict[str, Any]:
    default: dict[str, Any] = {
        "uuid": CLUSTER,
        "name": "default",
        "chart": "edge-cluster",
        "source": "helm-charts",
        "prefix": None,
    }
    long: dict[str, Any] = {
        "uuid": OTHER,
        "name": "presses-of-the-plant-in-the-north-and-in-the-south",
        "chart": "press",
    }
    return {
        "items": [
            {**default, "modified_at": before(days=40), "clusters": 10_000},
            {**long, "source": "charts-of-the-team", "prefix": "charts/", "modified_at": before(minutes=3)}
            | {"clusters": 2},
        ]
    }


def repositories() -> dict[str, Any]:
    url = "https://edgewright.example.com/git/shared"
    made: dict[str, Any] = {"commit": "d854a4fd41f4f7ab04183e65b9a82be4441c1e60", "made_at": before(days=40)}
    return {
        "items": [
            {**made, "name": "helm-charts", "uuid": CLUSTER, "url": f"{url}/helm-charts", "own": False},
            {**made, "name": "manifests-of-the-team", "uuid": OTHER, "url": f"{url}/manifests-of-the-team"}
            | {"own": True, "commit": None},
        ]
    }


def residue() -> dict[str, Any]:
    away = "The broker is away, and has been for a while: its accounts of this cluster are still there."
    left = [{"step": "remove_accounts", "reason": away, "since": before(days=1)}]
    left += [{"step": "archive_repository", "reason": "The disk is full.", "since": before(minutes=3)}]
    return {"items": [{"cluster": CLUSTER, "name": "press-shop", "residue": left}]}


ANSWERS = {
    "/v1/cluster": clusters,
    "/v1/cluster/{uuid}": cluster,
    "/v1/cluster/{uuid}/timeline": timeline,
    "/v1/cluster/{uuid}/secret": secrets,
    "/v1/token": tokens,
    "/v1/webhook": webhook,
    "/v1/flux": flux,
    "/v1/upgrade": upgrades,
    "/v1/chart": charts,
    "/v1/template": templates,
    "/v1/repository": repositories,
    "/v1/residue": residue,
}
LISTS = (
    ("cluster", "list"),
    ("cluster", "show", CLUSTER),
    ("cluster", "timeline", CLUSTER),
    ("secret", "list", CLUSTER),
    ("token", "list"),
    ("webhook", "show"),
    ("flux", "show"),
    ("upgrade", "list"),
    ("flux", "list"),
    ("chart", "list"),
    ("template", "list"),
    ("repository", "list"),
    ("residue",),
)


def reply(request: ReceivedRequest) -> Reply:
    path = urlsplit(request.path).path.replace(CLUSTER, "{uuid}")
    return Reply(200, ANSWERS[path](), {"Content-Type": "application/json"})


@pytest.fixture
def narrow(environment: dict[str, str | None], tmp_path: Path) -> Iterator[Terminal]:
    """A terminal of 80 columns, where a centre answers with long and with short names.

    The centre is a stand-in: names, times and troubles of a real one would be others each time.
    """
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with scripted_centre(reply) as centre:
        where = {"EDGEWRIGHT_URL": centre.url, "EDGEWRIGHT_TOKEN_FILE": str(token), "COLUMNS": str(WIDTH)}
        yield Terminal({**environment, **where})


@pytest.mark.parametrize("path", ANSWERS)
def test_stand_in_answers_as_the_gateway_does(path: str) -> None:
    schema = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    assert [error.message for error in validator.iter_errors(ANSWERS[path]())] == []


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_list_is_what_its_file_holds(narrow: Terminal, words: tuple[str, ...]) -> None:
    shown = narrow(*words)
    assert shown.code == 0, shown
    always = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2031-02-03T04:05:06Z", plain(shown.out))
    always = re.sub(r"\b\d{4}-\d\d-\d\d\b(?!T)", "2031-02-03", always)
    hold(file_of("lists", words[:2]), always)


# --- both ----------------------------------------------------------------------------------------------------------


def test_nothing_is_wider_than_80_columns() -> None:
    """But for a line with one word, such as a URL, that has no room in any line and must stay in one piece."""
    files = sorted(SHOWN.rglob("*.txt"))
    assert len(files) > 50
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            assert len(line) <= WIDTH or re.fullmatch(rf"(\w+ +)?\S{{{WIDTH - 20},}}", line), f"{file.name}: {line}"


def test_no_file_is_of_a_command_that_is_gone() -> None:
    known = {file_of("help", words) for words in HELPS} | {file_of("lists", words[:2]) for words in LISTS}
    assert set(SHOWN.rglob("*.txt")) == known
