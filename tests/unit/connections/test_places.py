"""Who gets a place among the connections, and who gives theirs up."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from api.connections.limits import ConnectionLimits, limits_for
from api.connections.places import Connection, Places, Standing, source_of
from api.connections.refusals import RefusalReason, TooManyConnections
from api.metrics import Metrics

LIMITS = ConnectionLimits(overall=16, per_address=3, per_cluster=2, trusted_proxies=("10.9.0.0/16",))


class Port:
    """A listening port, and what became of its connections."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.places = Places(limits, Metrics())
        self.closed: list[Connection] = []

    def connect(self, address: str) -> Connection:
        connection, reason = self.try_to_connect(address)
        assert reason is None
        return connection

    def try_to_connect(self, address: str) -> tuple[Connection, RefusalReason | None]:
        connection = Connection(address, close=lambda: self.closed.append(connection))
        return connection, self.places.enter(connection)

    def edge(self, address: str = "192.0.2.1") -> Connection:
        connection = self.connect(address)
        self.places.identify(connection, Standing.EDGE, uuid4())
        return connection

    def busy(self, connection: Connection) -> Connection:
        self.places.work(connection)
        return connection


@pytest.fixture
def port() -> Port:
    return Port()


def test_one_address_gives_up_its_own_idle_connections(port: Port) -> None:
    other = port.connect("192.0.2.1")
    first = port.connect("192.0.2.2")
    for _ in range(3):
        port.connect("192.0.2.2")
    assert port.closed == [first]
    assert other.has_place


def test_an_address_whose_connections_are_all_busy_gets_no_more(port: Port) -> None:
    for _ in range(3):
        port.busy(port.connect("192.0.2.2"))
    assert port.try_to_connect("192.0.2.2")[1] is RefusalReason.ADDRESS_LIMIT
    assert port.try_to_connect("192.0.2.3")[1] is None


def test_a_connection_that_has_ended_makes_room(port: Port) -> None:
    held = [port.busy(port.connect("192.0.2.2")) for _ in range(3)]
    port.places.leave(held[0])
    port.places.leave(held[0])
    assert port.try_to_connect("192.0.2.2")[1] is None


def test_edges_behind_one_address_do_not_count_against_it(port: Port) -> None:
    edges = [port.busy(port.edge()) for _ in range(10)]
    assert port.closed == []
    assert all(edge.has_place for edge in edges)


def test_strangers_never_take_more_than_a_quarter(port: Port) -> None:
    strangers = [port.connect(f"192.0.2.{number}") for number in range(100)]
    assert len(port.places) == 4
    assert [each for each in strangers if each.has_place] == strangers[-4:]


def test_operators_never_take_more_than_a_half(port: Port) -> None:
    for number in range(8):
        port.places.identify(port.busy(port.connect(f"192.0.2.{number}")), Standing.OPERATOR)
    one_too_many = port.busy(port.connect("192.0.2.9"))
    with pytest.raises(TooManyConnections) as refused:
        port.places.identify(one_too_many, Standing.OPERATOR)
    assert (refused.value.reason, refused.value.status) == (RefusalReason.OPERATOR_LIMIT, 503)
    port.edge("192.0.2.9")


def test_an_idle_operator_gives_way_to_another_one(port: Port) -> None:
    first = port.connect("192.0.2.100")
    port.places.identify(first, Standing.OPERATOR)
    port.places.rest(first)
    for number in range(8):
        port.places.identify(port.busy(port.connect(f"192.0.2.{number}")), Standing.OPERATOR)
    assert port.closed == [first]


def test_when_all_is_full_strangers_give_way_first_then_operators_then_idle_edges() -> None:
    port = Port(ConnectionLimits(overall=4, per_address=10))
    edge, operator = port.edge(), port.connect("192.0.2.2")
    port.places.identify(operator, Standing.OPERATOR)
    port.places.rest(edge)
    port.places.rest(operator)
    port.busy(port.edge("192.0.2.3"))
    stranger = port.connect("192.0.2.4")
    port.busy(port.edge("192.0.2.5"))
    port.busy(port.edge("192.0.2.6"))
    port.busy(port.edge("192.0.2.7"))
    assert port.closed == [stranger, operator, edge]
    assert port.try_to_connect("192.0.2.8")[1] is RefusalReason.OVERALL_LIMIT


def test_one_cluster_has_few_connections_from_however_many_addresses(port: Port) -> None:
    cluster = uuid4()
    for number in range(2):
        port.places.identify(port.busy(port.connect(f"192.0.2.{number}")), Standing.EDGE, cluster)
    with pytest.raises(TooManyConnections) as refused:
        port.places.identify(port.busy(port.connect("192.0.2.9")), Standing.EDGE, cluster)
    assert (refused.value.reason, refused.value.status) == (RefusalReason.CLUSTER_LIMIT, 429)


def test_one_token_has_few_connections_from_however_many_addresses(port: Port) -> None:
    for number in range(port.places.limits.per_token):
        port.places.identify(port.busy(port.connect(f"192.0.2.{number}")), Standing.OPERATOR, "token a")
    with pytest.raises(TooManyConnections) as refused:
        port.places.identify(port.busy(port.connect("192.0.2.9")), Standing.OPERATOR, "token a")
    assert (refused.value.reason, refused.value.status) == (RefusalReason.TOKEN_LIMIT, 429)
    port.places.identify(port.busy(port.connect("192.0.2.10")), Standing.OPERATOR, "token b")


def test_whoever_waits_hears_that_its_connection_has_ended(port: Port) -> None:
    connection = port.connect("192.0.2.1")
    heard: list[str] = []
    connection.on_end = lambda: heard.append("ended")
    port.places.leave(connection)
    port.places.leave(connection)
    assert heard == ["ended"]


def test_a_proxy_has_no_limit_of_its_own_but_counts_among_all(port: Port) -> None:
    for _ in range(16):
        port.busy(port.edge("10.9.8.7"))
    assert port.closed == []
    assert port.try_to_connect("10.9.8.7")[1] is RefusalReason.OVERALL_LIMIT


def test_requests_through_a_proxy_count_for_whoever_sent_them(port: Port) -> None:
    passed_on = [port.busy(port.connect("10.9.8.7")) for _ in range(4)]
    for connection in passed_on[:3]:
        port.places.act_for(connection, "198.51.100.1")
    with pytest.raises(TooManyConnections) as refused:
        port.places.act_for(passed_on[3], "198.51.100.1")
    assert (refused.value.reason, refused.value.status) == (RefusalReason.ADDRESS_LIMIT, 429)
    port.places.act_for(passed_on[3], "198.51.100.2")
    port.places.act_for(passed_on[0], None)
    port.places.act_for(passed_on[3], "198.51.100.1")


def test_what_a_request_through_a_proxy_was_ends_with_it(port: Port) -> None:
    connection = port.busy(port.connect("10.9.8.7"))
    port.places.act_for(connection, "198.51.100.1")
    port.places.identify(connection, Standing.EDGE, uuid4())
    assert port.places.count(Standing.EDGE) == 1
    port.places.act_for(connection, None)
    assert (port.places.count(Standing.EDGE), port.places.count(Standing.UNKNOWN)) == (0, 1)


def test_addresses_of_one_ipv6_host_are_one() -> None:
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:2") != source_of("2001:db8:0:1::1")
    assert source_of("192.0.2.1") == "192.0.2.1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:50123", "192.0.2.1"),
        ("[2001:db8::1]:50123", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_address_counts_as_one_however_a_proxy_writes_it(written: str, meant: str) -> None:
    assert source_of(written) == meant


@pytest.mark.parametrize(
    ("descriptors", "overall", "per_address"), [(1024, 896, 112), (20_000, 16_384, 512), (None, 16_384, 512)]
)
def test_limits_follow_from_the_files_that_may_be_open(
    descriptors: int | None, overall: int, per_address: int
) -> None:
    limits = limits_for(descriptors)
    assert (limits.overall, limits.per_address) == (overall, per_address)


def test_settings_lower_the_limits_but_open_no_more_files_than_there_are() -> None:
    assert limits_for(1024, overall=100_000).overall == 896
    assert (limits_for(None).per_token, limits_for(1024).per_token) == (128, 112)
    assert (limits_for(1024, overall=80).overall, limits_for(1024, overall=80).per_address) == (80, 10)


def test_a_flood_is_counted_whole_and_told_now_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    clock: Callable[[], float] = lambda: now  # noqa: E731 - reads the hand of this clock
    metrics = Metrics()
    places = Places(LIMITS, metrics, clock=clock)
    for _ in range(1000):
        places.note(RefusalReason.ADDRESS_LIMIT, "192.0.2.1")
    now = 11.0
    places.note(RefusalReason.ADDRESS_LIMIT, "192.0.2.1")
    lines = [line for line in capsys.readouterr().out.splitlines() if "closed early" in line]
    assert len(lines) == 2
    assert "999" in lines[1]
    counted = metrics.registry.get_sample_value("edgewright_connections_refused_total", {"reason": "address_limit"})
    assert counted == 1001
