"""A port is free, or it is said who has it."""

import os
import socket

import pytest

from edgewright.cli import ports as cli_ports
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.ports import FREE, PortWish, resolve_ports


def wish(port: int, name: str = "EDGEWRIGHT_GATEWAY_PORT", address: str = "127.0.0.1") -> PortWish:
    return PortWish("the gateway", name, address, port)


def test_taken_port_names_its_holder_and_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CliError) as caught:
            resolve_ports([wish(port)])
    assert f"Port {port} is taken by " in caught.value.sentence
    assert f"(pid {os.getpid()})" in caught.value.sentence
    assert "EDGEWRIGHT_GATEWAY_PORT" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.REFUSED


def test_zero_picks_free_ports_that_differ() -> None:
    names = [f"EDGEWRIGHT_{number}" for number in range(20)]
    ports = resolve_ports([wish(0, name) for name in names])
    assert set(ports) == set(names)
    assert len(set(ports.values())) == 20
    assert 0 not in ports.values()


def test_a_free_port_is_none_that_the_kernel_gives_to_others() -> None:
    ports = resolve_ports([wish(0, f"EDGEWRIGHT_{number}") for number in range(20)])
    assert set(ports.values()) <= set(FREE)


def test_where_all_are_taken_the_kernel_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        had = taken.getsockname()[1]
        monkeypatch.setattr(cli_ports, "FREE", [had] * 100)
        [port] = resolve_ports([wish(0)]).values()
    assert port not in (0, had)


def test_port_that_was_just_released_can_be_had() -> None:
    port = resolve_ports([wish(0)])["EDGEWRIGHT_GATEWAY_PORT"]
    assert resolve_ports([wish(port)]) == {"EDGEWRIGHT_GATEWAY_PORT": port}


def test_free_port_of_the_last_run_is_picked_again() -> None:
    before = resolve_ports([wish(0)])
    assert resolve_ports([wish(0)], before=before) == before
    with socket.create_server(("127.0.0.1", before["EDGEWRIGHT_GATEWAY_PORT"])):
        assert resolve_ports([wish(0)], before=before) != before
    assert resolve_ports([wish(0)], before={"EDGEWRIGHT_GATEWAY_PORT": 700_000}) != before


def test_given_port_wins_over_that_of_the_last_run() -> None:
    port = resolve_ports([wish(0)])["EDGEWRIGHT_GATEWAY_PORT"]
    assert resolve_ports([wish(port)], before={"EDGEWRIGHT_GATEWAY_PORT": port + 1}) == {
        "EDGEWRIGHT_GATEWAY_PORT": port
    }


def test_one_port_for_two_parts_is_refused() -> None:
    with pytest.raises(CliError, match="EDGEWRIGHT_A and EDGEWRIGHT_B are both 8484"):
        resolve_ports([wish(8484, "EDGEWRIGHT_A"), wish(8484, "EDGEWRIGHT_B")])


@pytest.mark.parametrize("address", ["192.0.2.1", "no-such-host.invalid"])
def test_address_of_another_machine_is_refused(address: str) -> None:
    with pytest.raises(CliError, match="is not an address of this machine"):
        resolve_ports([wish(0, address=address)])
