"""Every line of a log is JSON, and the lines about a request can be put together."""

import re

from supervised import eventually
from watched import SECRET, Watched


def lines_of(watched: Watched, part: str, what: str) -> list[dict[str, object]]:
    return [line for line in watched.log(part) if line.get("request_id") == watched.requests[what]]


def test_commissioning_can_be_read_from_the_request_to_its_steps(watched: Watched) -> None:
    about = {"cluster": watched.cluster, "workflow_id": f"cluster-{watched.cluster}"}
    (answered,) = lines_of(watched, "gateway", "create")
    assert (answered["event"], answered["status"]) == ("request", 201)
    assert about.items() <= answered.items()

    eventually(lambda: any(line.get("step") == "publish_status" for line in lines_of(watched, "worker", "create")))
    lines = lines_of(watched, "worker", "create")
    steps = [line for line in lines if line["event"] == "step"]
    assert list(dict.fromkeys(line["step"] for line in steps)) == [  # each is safe to repeat, and may be
        "allocate_address",
        "create_accounts",
        "create_repository",
        "populate_repository",
        "publish_status",
    ]
    assert all(about.items() <= line.items() for line in lines)
    assert {line["step"] for line in steps if line["outcome"] == "done"} == {line["step"] for line in steps}


def test_secret_can_be_followed_to_its_commit(watched: Watched) -> None:
    [committed] = [line for line in lines_of(watched, "gateway", "secret") if line["event"] == "secrets committed"]
    assert (committed["cluster"], committed["requests"]) == (watched.cluster, 1)
    assert re.fullmatch(r"[0-9a-f]{40}", str(committed["commit"]))


def test_every_line_is_json_with_a_level_a_time_and_an_event(watched: Watched) -> None:
    for part in ("gateway", "worker"):
        lines = watched.log(part)
        assert lines
        assert [line for line in lines if not {"event", "level", "timestamp"} <= set(line)] == []


def test_no_line_holds_a_secret(watched: Watched) -> None:
    token = (watched.centre.home / "admin-token").read_text().strip()
    text = watched.centre.logs()
    assert [secret for secret in (SECRET, token, watched.registration_token) if secret in text] == []
