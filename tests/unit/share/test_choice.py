"""The address for other machines: what is taken for one, what is remembered, and what contradicts the settings."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import authority_file, server_file
from edgewright.cli.local import gateway_url
from edgewright.cli.share import choice
from edgewright.cli.share.choice import FILE, Outward, Sharing, checked_address, read_sharing, write_sharing
from edgewright.cli.share.served import chosen_sharing, with_shared_bind, with_shared_door
from edgewright.settings import Settings

HERE = "10.20.30.40"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with two addresses, and with nothing of ours in its environment."""
    for name in [name for name in os.environ if name.startswith("EDGEWRIGHT_")]:
        monkeypatch.delenv(name)
    offered = [Outward(HERE, "eth0"), Outward("fd00::5", "eth1"), Outward("centre-1", "host name")]
    monkeypatch.setattr(choice, "outward_addresses", lambda: offered)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (HERE, HERE),
        (" Centre.Example.COM. ", "centre.example.com"),
        ("[FD00::5]", "fd00::5"),
        ("centre_1", "centre_1"),
        ("xn--mller-kva.example", "xn--mller-kva.example"),
    ],
)
def test_an_address_or_a_name_is_taken(said: str, taken: str) -> None:
    assert checked_address(said) == taken


@pytest.mark.parametrize(
    "said",
    [
        *("", " ", ".", "a b", "a/b", "a'b", "$(rm -rf /)", "`reboot`", "a\nb", "a\x00b", "1.2.3", "a" * 254),
        *("müller.example", "https://centre.example.com", "centre:8484", "[fd00::5]:8484", "user@centre"),
        *("fe80::1%eth0", "*.example.com"),
        *("127.0.0.1", "::1", "localhost", "x.localhost", "0.0.0.0", "::", "224.0.0.1", "169.254.7.7", "fe80::1"),
    ],
)  # fmt: skip
def test_what_no_edge_could_reach_is_refused_with_a_sentence(said: str) -> None:
    with pytest.raises(CliError) as refused:
        checked_address(said)
    assert refused.value.exit_code == ExitCode.USAGE
    assert refused.value.sentence.isprintable()
    assert refused.value.hint


def test_an_address_is_remembered_with_those_before_it(tmp_path: Path) -> None:
    assert read_sharing(tmp_path) == Sharing()
    sharing = Sharing().moved_to("a").moved_to("b").moved_to("b").moved_to(None).moved_to("a")
    assert (sharing.address, sharing.former, sharing.hosts) == ("a", ("b",), ("a", "b"))
    write_sharing(tmp_path, sharing)
    assert read_sharing(tmp_path) == sharing
    for number in range(20):
        sharing = sharing.moved_to(f"host-{number}")
    assert sharing.former[0] == "host-18"
    assert len(sharing.former) == 8


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"address": "a"}', '{"address": "$(id)", "former": []}', '{"address": 1, "former": 2}'],
)
def test_a_damaged_choice_is_not_taken_for_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CliError, match="damaged") as refused:
        read_sharing(tmp_path)
    assert "--share" in (refused.value.hint or "")


def test_the_choice_lasts_until_it_is_taken_back(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert chosen_sharing(settings, share=None, address=None) == Sharing()
    write_sharing(tmp_path, chosen_sharing(settings, share=True, address=HERE))
    for share in (None, True):
        assert chosen_sharing(settings, share=share, address=None).address == HERE
    assert chosen_sharing(settings, share=False, address=None) == Sharing(None, (HERE,))


@pytest.mark.parametrize("share", [None, False])
def test_an_address_without_share_is_refused(tmp_path: Path, share: bool | None) -> None:
    with pytest.raises(CliError, match="goes with --share"):
        chosen_sharing(Settings(home=tmp_path), share=share, address=HERE)


def test_without_a_terminal_nobody_guesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(CliError) as refused:
        chosen_sharing(Settings(home=tmp_path), share=True, address=None)
    assert refused.value.exit_code == ExitCode.USAGE
    assert all(address in (refused.value.hint or "") for address in (HERE, "fd00::5", "centre-1"))


@pytest.mark.parametrize(
    ("typed", "address"), [("1", HERE), ("2", "fd00::5"), ("3", "centre-1"), ("Other.example", "other.example")]
)
def test_at_a_terminal_somebody_picks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, address: str
) -> None:
    at_a_terminal(monkeypatch, typed)
    assert chosen_sharing(Settings(home=tmp_path), share=True, address=None).address == address
    asked = capsys.readouterr().err
    assert [line.split() for line in asked.splitlines()[1:4]] == [
        ["1", HERE, "eth0"],
        ["2", "fd00::5", "eth1"],
        ["3", "centre-1", "host", "name"],
    ]


@pytest.mark.parametrize("typed", ["", "0", "4", "$(id)"])
def test_an_answer_that_is_no_address_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    at_a_terminal(monkeypatch, typed)
    with pytest.raises(CliError):
        chosen_sharing(Settings(home=tmp_path), share=True, address=None)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    ours, theirs = os.openpty()
    os.write(ours, f"{typed}\n".encode())
    monkeypatch.setattr("sys.stdin", os.fdopen(theirs))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)


def test_a_shared_centre_listens_everywhere_and_serves_its_own_certificate(tmp_path: Path) -> None:
    settings = served(tmp_path, Sharing(HERE))
    assert (settings.bind, settings.external_url) == ("0.0.0.0", f"https://{HERE}:8484")
    assert (settings.tls_cert, settings.tls_key) == (server_file(tmp_path), server_file(tmp_path))
    assert settings.ca_bundle == authority_file(tmp_path)
    assert gateway_url(settings) == "https://127.0.0.1:8484", "this machine needs no name to be resolved"
    assert "PRIVATE" not in authority_file(tmp_path).read_text()
    door = settings.read_door()
    assert door is not None
    assert door.url == settings.external_url


def test_an_address_of_ipv6_is_in_brackets_and_heard_there(tmp_path: Path) -> None:
    settings = served(tmp_path, Sharing("fd00::5"))
    assert (settings.bind, settings.external_url) == ("::", "https://[fd00::5]:8484")
    assert gateway_url(settings) == "https://[::1]:8484"


def test_a_name_is_heard_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leads_to(*families: int) -> None:
        found = [(family, 1, 6, "", ("x", 0)) for family in families]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    for families, bind in (((socket.AF_INET6, socket.AF_INET), "0.0.0.0"), ((socket.AF_INET6,), "::")):
        leads_to(*families)
        assert with_shared_bind(Settings(home=tmp_path), Sharing("centre")).bind == bind


def test_not_shared_changes_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert with_shared_door(with_shared_bind(settings, Sharing()), Sharing()) is settings
    assert list(tmp_path.iterdir()) == []


def test_what_was_set_explicitly_wins(tmp_path: Path) -> None:
    certificate, bundle = tmp_path / "own.pem", tmp_path / "bundle.pem"
    bundle.write_text("PEM")
    settings = served(
        tmp_path,
        Sharing(HERE),
        bind="10.20.30.41",
        external_url="https://edge.example.com",
        tls_cert=certificate,
        tls_key=certificate,
        ca_bundle=bundle,
    )
    assert (settings.bind, settings.external_url) == ("10.20.30.41", "https://edge.example.com")
    assert (settings.tls_cert, settings.ca_bundle) == (certificate, bundle)
    assert not server_file(tmp_path).exists()


def test_the_own_certificate_covers_the_external_url_that_was_set(tmp_path: Path) -> None:
    served(tmp_path, Sharing(HERE), external_url="https://edge.example.com")
    before = server_file(tmp_path).read_text()
    served(tmp_path, Sharing(HERE), external_url="https://edge.example.com")
    assert server_file(tmp_path).read_text() == before
    served(tmp_path, Sharing(HERE))
    assert server_file(tmp_path).read_text() != before


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"bind": "127.0.0.1"}, "EDGEWRIGHT_BIND=127.0.0.1 keeps other machines out"),
        ({"bind": "::1"}, "EDGEWRIGHT_BIND=::1 keeps other machines out"),
        ({"external_url": "https://edge.example.com"}, "EDGEWRIGHT_EXTERNAL_URL says edge.example.com"),
    ],
)
def test_what_contradicts_share_is_named(tmp_path: Path, variables: dict[str, Any], said: str) -> None:
    settings = Settings(home=tmp_path, **variables)
    with pytest.raises(CliError, match=said) as refused:
        chosen_sharing(settings, share=True, address=HERE)
    assert refused.value.exit_code == ExitCode.USAGE
    assert chosen_sharing(settings, share=None, address=None) == Sharing()


def test_the_host_of_the_external_url_is_shared_where_no_other_is_named(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, external_url="https://Edge.example.com:9443")
    assert chosen_sharing(settings, share=True, address=None).address == "edge.example.com"


def test_plain_http_and_a_bundle_without_our_authority_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="serves https"):
        served(tmp_path, Sharing(HERE), external_url=f"http://{HERE}:8484", allow_plain_http=True)
    bundle = tmp_path / "bundle.pem"
    with pytest.raises(CliError, match="cannot be read"):
        served(tmp_path, Sharing(HERE), ca_bundle=bundle)
    bundle.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(CliError, match="lacks the authority"):
        served(tmp_path, Sharing(HERE), ca_bundle=bundle)
    bundle.write_text(bundle.read_text() + authority_file(tmp_path).read_text().replace("\n", "\r\n"))
    assert served(tmp_path, Sharing(HERE), ca_bundle=bundle).ca_bundle == bundle


def served(home: Path, sharing: Sharing, **given: Any) -> Settings:
    return with_shared_door(with_shared_bind(Settings(home=home, **given), sharing), sharing)
