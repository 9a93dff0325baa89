"""What no schema describes: Git's wire format, certificates, templates, ETags, bodies that break off."""

import gzip
import os
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography import x509
from gateway_centre import STATUS_APP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_gateway import STATUS, LiveGateway, Population

from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_HELM_RELEASE_TEMPLATE

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
MIB = 1024 * 1024
bounded = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 100,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def admin(live: LiveGateway, population: Population) -> httpx.Client:
    return live.client(population.admin)


def fine(answer: httpx.Response) -> httpx.Response:
    """Answered, and not by a defect."""
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    return answer


def pkt(line: bytes) -> bytes:
    """One line of Git's wire format."""
    return f"{len(line) + 4:04x}".encode() + line


ZEROS = b"0" * 40
LINES = st.one_of(
    st.binary(max_size=80).map(pkt),
    st.sampled_from([b"0000", b"0001", b"0002", b"0003", b"0004", b"ffff", b"fff", b"-001", b"00zz"]),
    st.sampled_from(
        [
            pkt(b"want " + ZEROS + b" multi_ack side-band-64k ofs-delta\n"),
            pkt(b"want " + b"f" * 40 + b"\n"),
            pkt(b"have " + ZEROS + b"\n"),
            pkt(b"deepen 2147483648\n"),
            pkt(b"done\n"),
            pkt(b"command=ls-refs\n"),
            pkt(b"command=fetch\n"),
            pkt(ZEROS + b" " + ZEROS + b" refs/heads/main\0report-status\n"),
            pkt(ZEROS + b" " + b"1" * 40 + b" refs/heads/../../evil\0report-status atomic\n"),
            pkt(ZEROS + b" " + b"1" * 40 + b" refs/heads/main\0push-options\n"),
            b"PACK\0\0\0\2\0\0\0\1",
            b"PACK\0\0\0\2\xff\xff\xff\xff",
        ]
    ),
)


@pytest.mark.parametrize("service", ["git-upload-pack", "git-receive-pack"])
def test_git_requests_that_are_none_break_nothing(
    live: LiveGateway, population: Population, admin: httpx.Client, service: str
) -> None:
    before = live.centre.git.head(population.active)

    @bounded
    @given(
        st.lists(LINES, max_size=8), st.sampled_from(["version=2", "version=1", "version=9:x=", ""]), st.booleans()
    )
    def ask(lines: list[bytes], protocol: str, compressed: bool) -> None:
        headers = {"Content-Type": f"application/x-{service}-request", "Git-Protocol": protocol}
        body = b"".join(lines)
        if compressed:
            headers["Content-Encoding"], body = "gzip", gzip.compress(body)[: max(1, len(body))]
        fine(admin.post(f"/uuid/{population.active}/{service}", content=body, headers=headers))

    ask()
    assert live.centre.git.head(population.active) == before


PEM = STATUS["kubeseal_cert"]


@bounded
@given(data=st.data())
def test_certificates_that_are_none_are_refused_and_the_one_in_use_is_kept(
    live: LiveGateway, population: Population, admin: httpx.Client, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(PEM)))
    bent = data.draw(
        st.one_of(
            st.text(max_size=200),
            st.just(PEM[:at]),
            st.just(PEM[:at] + data.draw(st.characters()) + PEM[at + 1 :]),
            st.just(PEM * 2),
            st.none(),
            st.integers(),
        )
    )
    place = f"/v1/app/{STATUS_APP}/object/{population.other}"
    fine(admin.put(place, json={**STATUS, "kubeseal_cert": bent}))
    shown = fine(admin.get(f"/v1/cluster/{population.other}")).json()
    assert shown["certificate"] is not None
    said = fine(admin.get(place)).json().get("kubeseal_cert", PEM)
    assert x509.load_pem_x509_certificate(said.encode()) == x509.load_pem_x509_certificate(PEM.encode())


@bounded
@given(
    text=st.one_of(
        st.text(max_size=100),
        st.sampled_from(
            [
                "{{",
                "}}",
                "{{ }}",
                "{{name}}" * 500,
                "${{x}}",
                "{{__class__}}",
                "{{ name.__class__.__mro__ }}",
                "{% %}",
            ]
        ),
    ),
    key=st.text(max_size=20),
)
def test_templates_that_are_none_break_nothing(live: LiveGateway, admin: httpx.Client, text: str, key: str) -> None:
    place = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{OBJECT_HELM_RELEASE_TEMPLATE}"
    fine(admin.put(place, json={key: text, "files": {text: text}}))


@bounded
@given(
    tag=st.one_of(
        st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60),
        st.sampled_from(['"', '""', "*", "W/", 'W/"x"', '"a","b"', '"a" "b"', ",,,", '"' * 999, "* , *"]),
    ),
    header=st.sampled_from(["If-Match", "If-None-Match"]),
    method=st.sampled_from(["GET", "PUT", "PATCH", "DELETE"]),
)
def test_etags_that_are_none_break_nothing_and_match_nothing(
    population: Population, admin: httpx.Client, tag: str, header: str, method: str
) -> None:
    place = f"/v1/app/{STATUS_APP}/object/{population.pending}"
    answer = fine(admin.request(method, place, json={"hosts": []}, headers={header: tag}))
    if header == "If-Match" and method != "GET" and tag.strip() != "*":
        assert answer.status_code >= 400


NAMES = (
    "..",
    "../x",
    "a/b",
    "%2e%2e",
    "%00",
    "a%0ab",
    "$(id)",
    "`id`",
    "a;b",
    "a b",
    "-rf",
    "x" * 300,
    "ß",
    ".git",
    "A",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_none_reach_no_path_no_shell_and_no_yaml(
    live: LiveGateway, population: Population, admin: httpx.Client, name: str
) -> None:
    refused = [
        admin.put(f"/v1/cluster/{population.active}/secret/{name}/db/key", content=b"x"),
        admin.put(f"/v1/cluster/{population.active}/secret/default/{name}/key", content=b"x"),
        admin.get(f"/git/cluster/{name}/info/refs", params={"service": "git-upload-pack"}),
        admin.get(f"/git/shared/{name}/info/refs", params={"service": "git-upload-pack"}),
        admin.get(f"/uuid/{population.active}/info/refs", params={"service": name}),
        admin.post(f"/v1/cluster/{population.active}/step/{name}/retry"),
    ]
    assert [answer.status_code for answer in refused if not 400 <= answer.status_code < 500] == []


def test_ten_mebibytes_are_refused_wherever_they_are_sent(population: Population, admin: httpx.Client) -> None:
    body = b'{"a":"' + b"x" * 10 * MIB + b'"}'
    places = {
        "POST": ("/v1/cluster", "/v1/token", "/v1/object", f"/v1/cluster/{population.active}/secret"),
        "PUT": (
            f"/v1/app/{STATUS_APP}/object/{population.active}",
            f"/v1/cluster/{population.active}/secret/default/db/big",
        ),
        "PATCH": (f"/v1/cluster/{population.active}",),
    }
    for method, paths in places.items():
        for path in paths:
            answer = admin.request(method, path, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413, f"{method} {path}: {answer.status_code}"


@bounded
@given(cut=st.integers(0, 40), junk=st.binary(max_size=6))
def test_json_that_breaks_off_is_refused(admin: httpx.Client, cut: int, junk: bytes) -> None:
    whole = b'{"name": "never", "labels": {"a": "b"}, "x"'
    headers = {"Content-Type": "application/json"}
    assert fine(admin.post("/v1/cluster", content=whole[:cut] + junk, headers=headers)).status_code in {400, 422}


def test_clients_that_are_slow_or_leave_hold_up_nobody(
    live: LiveGateway, population: Population, admin: httpx.Client
) -> None:
    where = urlsplit(live.url)
    head = (
        f"PUT /v1/cluster/{population.active}/secret/default/db/slow HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {population.admin['Authorization']}\r\nContent-Length: 1000\r\n\r\nhalf"
    ).encode()
    assert where.hostname
    assert where.port
    slow = [socket.create_connection((where.hostname, where.port)) for _ in range(40)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(head[: len(head) * (number + 1) // len(slow)])
        assert admin.get("/v1/cluster").is_success
        for connection in slow[::2]:
            connection.close()
        assert admin.get("/v1/cluster").is_success
    finally:
        for connection in slow:
            connection.close()
    assert admin.get(f"/v1/cluster/{population.active}/secret").json()["items"]
