"""What each part is told when it is started."""

import os
from pathlib import Path

import pytest

from edgewright.cli.local import gateway_url, listening_url, with_ports
from edgewright.cli.parts import gateway_part, temporal_parts, told, worker_part
from edgewright.cli.ports import BLOCKED
from edgewright.messages.names import SEARCH_ATTRIBUTES
from edgewright.settings import Settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EDGEWRIGHT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return with_ports(Settings(home=tmp_path, gateway_port=0, temporal_port=0, temporal_ui_port=0))


def test_children_learn_the_ports_that_were_picked(settings: Settings) -> None:
    for part in (worker_part(settings), gateway_part(settings)):
        assert part.environment["EDGEWRIGHT_GATEWAY_PORT"] == str(settings.gateway_port)
        assert part.environment["EDGEWRIGHT_TEMPORAL_ADDRESS"] == f"127.0.0.1:{settings.temporal_port}"
        assert part.environment["EDGEWRIGHT_TEMPORAL_UI_URL"] == f"http://127.0.0.1:{settings.temporal_ui_port}"
        assert "EDGEWRIGHT_EXTERNAL_URL" not in part.environment, "each makes the same of the port"
        assert part.environment["EDGEWRIGHT_HOME"] == str(settings.home)
    assert 0 not in {settings.gateway_port, settings.temporal_port, settings.temporal_ui_port}


def test_next_start_on_the_same_home_picks_the_same_ports(settings: Settings) -> None:
    again = with_ports(Settings(home=settings.home, gateway_port=0, temporal_port=0, temporal_ui_port=0))
    assert again == settings


def test_what_children_are_told_makes_the_same_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in told(settings).items():
        monkeypatch.setenv(name, value)
    child = Settings()
    assert child.effective_external_url == settings.effective_external_url
    assert child.effective_database_url == settings.effective_database_url
    assert child.effective_git_root == settings.effective_git_root
    assert child.temporal_address == settings.temporal_address


def test_temporal_server_gets_nothing_of_our_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_DATABASE_URL", "postgresql://user:marked@host/db")
    monkeypatch.setenv("TEMPORAL_PROFILE", "prod")
    part, _ = temporal_parts(settings)
    assert not [name for name in part.environment if name.startswith(("EDGEWRIGHT_", "TEMPORAL_"))]
    assert "marked" not in " ".join(part.command)
    assert part.environment["PATH"] == os.environ["PATH"]


def test_temporal_server_is_file_backed_fast_and_knows_our_attributes(settings: Settings) -> None:
    part, _ = temporal_parts(settings)
    line = " ".join(part.command)
    assert "--db-filename temporal.db" in line
    assert part.folder == settings.home
    assert "--ip 127.0.0.1" in line
    for words in ("journal_mode=WAL", "synchronous=NORMAL", "history.timerProcessorMaxPollRPS=1000"):
        assert words in line
    for name, kind in SEARCH_ATTRIBUTES.items():
        assert f"--search-attribute {name}={kind}" in line


def test_web_ui_hides_from_browsers_and_its_guard_is_on_the_known_port(settings: Settings) -> None:
    server, guard = temporal_parts(settings)
    option = dict(zip(server.command, server.command[1:], strict=False))
    assert int(option["--ui-port"]) in BLOCKED
    told_guard = dict(zip(guard.command, guard.command[1:], strict=False))
    assert told_guard["--upstream"] == f"{option['--ui-ip']}:{option['--ui-port']}"
    assert told_guard["--listen"] == f"127.0.0.1:{settings.temporal_ui_port}"


def test_server_elsewhere_needs_no_port_here(tmp_path: Path) -> None:
    settings = with_ports(Settings(home=tmp_path, gateway_port=0, temporal_address="temporal.example.com:7233"))
    assert settings.temporal_address == "temporal.example.com:7233"
    assert settings.temporal_ui_url is None


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8484"),
        ("0.0.0.0", "http://127.0.0.1:8484"),
        ("192.0.2.7", "http://192.0.2.7:8484"),
        ("::1", "http://[::1]:8484"),
    ],
)
def test_local_url_is_where_the_gateway_listens(bind: str, url: str) -> None:
    assert gateway_url(Settings(bind=bind)) == url


def test_behind_tls_the_url_bears_the_name_of_the_certificate(tmp_path: Path) -> None:
    settings = Settings(
        tls_cert=tmp_path / "cert", tls_key=tmp_path / "key", external_url="https://edge.example.com:8484"
    )
    assert gateway_url(settings) == "https://edge.example.com:8484"
    assert listening_url(settings) == "https://127.0.0.1:8484"


def test_file_in_the_present_folder_is_not_run_instead_of_a_part(settings: Settings) -> None:
    for part in (worker_part(settings), gateway_part(settings)):
        assert "-P" in part.command
