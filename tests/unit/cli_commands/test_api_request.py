"""`edgewright api`: any request, with the token, the errors and the exit codes of every other command."""

import json
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre, Terminal


def test_body_is_printed_as_it_came(edgewright: CommandLine, centre: ServedCentre) -> None:
    cluster = centre.create("press-shop")
    shown = edgewright.ok("api", "get", "/v1/cluster?limit=5")
    assert [each["uuid"] for each in json.loads(shown.out)["items"]] == [str(cluster)]
    assert shown.err == ""


def test_fields_make_the_body_of_a_post(edgewright: CommandLine, centre: ServedCentre) -> None:
    shown = edgewright.ok(
        "api",
        "POST",
        "/v1/cluster",
        *("-f", "name=0123", "-F", "bare=true", "-f", "labels[site]=true", "-F", "values[cluster][replicas]=3"),
    )
    made = json.loads(shown.out)
    assert (made["name"], made["bare"], made["labels"]) == ("0123", True, {"site": "true"})
    assert centre.row(centre.uuid("0123")).spec.values == {"cluster": {"replicas": 3}}


def test_fields_of_a_get_are_its_query(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop", labels={"site": "a.b-c"})
    centre.create("paint-shop")
    shown = edgewright.ok("api", "GET", "/v1/cluster", "-f", "label[]=site=a.b-c", "-F", "limit=10")
    assert [each["name"] for each in json.loads(shown.out)["items"]] == ["press-shop"]


def test_patch_is_a_merge_patch(edgewright: CommandLine, centre: ServedCentre, tmp_path: Path) -> None:
    cluster = centre.create("press-shop", labels={"site": "a", "line": "b"})

    def labels() -> object:
        return json.loads(edgewright.ok("api", "GET", f"/v1/cluster/{cluster}").out)["labels"]

    patch = tmp_path / "patch.json"
    patch.write_text('{"labels": {"site": null}}')
    edgewright.ok("api", "PATCH", f"/v1/cluster/{cluster}", "--input", str(patch))
    assert labels() == {"line": "b"}
    edgewright.ok("api", "PATCH", f"/v1/cluster/{cluster}", "--input", "-", typed='{"labels": {"line": "c"}}')
    assert labels() == {"line": "c"}


def test_field_can_be_read_from_a_file(edgewright: CommandLine, centre: ServedCentre, tmp_path: Path) -> None:
    centre.create("press-shop")
    reason = tmp_path / "reason"
    reason.write_text("because: of 'this'")
    uuid = centre.uuid("press-shop")
    edgewright.ok("api", "POST", f"/v1/cluster/{uuid}/pause", "-F", f"reason=@{reason}")
    assert "because: of 'this'" in edgewright.ok("cluster", "show", "press-shop").out


def test_status_and_headers_come_first_when_they_are_asked_for(edgewright: CommandLine) -> None:
    shown = edgewright.ok("api", "GET", "/ping", "-i", "-H", "X-Request-Id: 0123456789")
    head, _, body = shown.out.partition("\n\n")
    assert head.startswith("HTTP/1.1 200 OK\n")
    assert "content-type: application/json" in head.lower()
    assert json.loads(body)["software"]["application"] == "edgewright"


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["GET", "/v1/cluster/179fdd25-708d-4eb1-a2a6-0f6884b7612f"], 3, "cluster_unknown"),
        (["POST", "/v1/cluster", "-f", "name=-"], 2, "name_invalid"),
        (["POST", "/v1/cluster", "-f", "name=taken"], 4, "name_taken"),
        (["GET", "/no/such/path"], 3, "route_unknown"),
        (["DELETE", "/v1/cluster"], 2, "method_not_allowed"),
    ],
)
def test_error_shows_its_body_and_exits_like_every_command(
    edgewright: CommandLine, centre: ServedCentre, arguments: list[str], code: int, problem: str
) -> None:
    centre.create("taken")
    shown = edgewright("api", *arguments)
    document = json.loads(shown.out)
    assert (shown.code, document["code"]) == (code, problem)
    assert shown.err.startswith(f"edgewright: {document['detail']}\n")


def test_all_pages_are_one_document(edgewright: CommandLine, centre: ServedCentre) -> None:
    names = sorted(f"shop-{number}" for number in range(5))
    for name in names:
        centre.create(name)
    shown = edgewright.ok("api", "GET", "/v1/cluster?sort=name&limit=2", "--paginate")
    document = json.loads(shown.out)
    assert [each["name"] for each in document["items"]] == names
    assert document["next"] is None
    timeline = f"/v1/cluster/{centre.uuid('shop-0')}/timeline"
    paged = json.loads(edgewright.ok("api", "GET", timeline, "-F", "limit=1", "--paginate").out)
    whole = json.loads(edgewright.ok("api", "GET", timeline).out)
    assert [each["position"] for each in paged["items"]] == [each["position"] for each in whole["items"]]


@pytest.mark.parametrize(
    "path",
    [
        "v1/cluster",
        "https://elsewhere.example/v1/cluster",
        "//elsewhere.example/v1/cluster",
        "/\\elsewhere.example/",
        "@elsewhere.example/",
        "/v1/cluster#x",
        "/v1/a b",
        "/v1/\x1b[31m",
        "/" + "x" * 10_000,
        "",
    ],
)
def test_path_leads_to_this_gateway_alone(edgewright: CommandLine, path: str) -> None:
    shown = edgewright("api", "GET", path)
    assert (shown.code, shown.out) == (2, "")
    assert "Traceback" not in shown.err and "\x1b" not in shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["BREW", "/ping"],
        ["GET", "/ping", "-H", "no colon"],
        ["GET", "/ping", "-H", "Authorization: Bearer x"],
        ["GET", "/ping", "-H", "Host: elsewhere.example"],
        ["GET", "/ping", "-H", "X-Y: a\r\nX-Z: b"],
        ["GET", "/ping", "--paginate"],
        ["POST", "/v1/cluster", "--paginate"],
        ["GET", "/v1/cluster", "--paginate", "-i"],
        ["POST", "/v1/cluster", "-f", "name"],
        ["POST", "/v1/cluster", "-f", "=x"],
        ["POST", "/v1/cluster", "-f", "a[=x"],
        ["POST", "/v1/cluster", "-f", "a=1", "-f", "a=2"],
        ["POST", "/v1/cluster", "-f", "a=1", "-f", "a[b]=2"],
        ["POST", "/v1/cluster", "-f", "a[]=1", "-f", "a[b]=2"],
        ["POST", "/v1/cluster", "-f", "a[b]=1", "-f", "a[]=2"],
        ["GET", "/v1/cluster", "-f", "a[b]=1"],
        ["POST", "/v1/cluster", "-F", "name=@/nonexistent"],
        ["POST", "/v1/cluster", "--input", "/nonexistent"],
        ["POST", "/v1/cluster", "--input", "/"],
    ],
)
def test_mistake_is_wrong_usage(edgewright: CommandLine, arguments: list[str]) -> None:
    shown = edgewright("api", *arguments)
    assert (shown.code, shown.out) == (2, ""), shown
    assert len(shown.err.splitlines()) >= 2
    assert "Traceback" not in shown.err


def test_terminal_gets_json_that_is_easy_to_read(terminal: Terminal) -> None:
    shown = terminal("api", "GET", "/ping")
    assert '\r\n  "version": ' in shown.out


def test_terminal_gets_nothing_that_steers_it(terminal: Terminal, centre: ServedCentre) -> None:
    shown = terminal("api", "GET", "/v1/uninstall.sh")
    assert "\x1b" not in shown.out
    assert "#!/bin/sh" in shown.out
