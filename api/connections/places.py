"""Who has a place among a gateway's connections, and who gives theirs up when there are too many.

A connection whose caller is not identified rests until its request has arrived whole, once that is answered, and
while its answer waits for it to read on; an identified one rests between two requests. Where a limit is reached, the
connection that has rested the longest is closed for the new one. So however many connections idle, an edge gets
through.
"""

import re
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, ip_address, ip_network
from uuid import UUID

import structlog

from api.connections.entrance import Entrance
from api.connections.limits import ConnectionLimits
from api.connections.refusals import RefusalReason, TooManyConnections
from api.metrics import Metrics

_WITH_PORT = re.compile(r"\[([^]]+)\](?::[0-9]+)?|([^:]+):[0-9]+")
LOG_SECONDS = 10.0
"""How often, at most, the log tells of one reason."""

_log = structlog.get_logger("edgewright.connections")


class Standing(StrEnum):
    """Who is at the other end, as far as is known."""

    UNKNOWN = "unknown"
    OPERATOR = "operator"
    EDGE = "edge"


Holder = str | UUID
"""Whom a connection counts for: an address, or the cluster or operator token that has authenticated."""


@dataclass(eq=False)
class Connection:
    """One connection.

    Args:
        address: of the peer.
        close: ends it at once; called when somebody else gets its place.
        is_proxy: the peer passes on requests of others.
        client: the address that counts, as ``source_of`` has it; None: that of a proxy, which has no limit.
        on_end: called once the connection has lost its place, while somebody wants to know.
    """

    address: str
    close: Callable[[], None]
    is_proxy: bool = False
    client: str | None = None
    standing: Standing = Standing.UNKNOWN
    holder: Holder | None = None
    has_place: bool = False
    rests: bool = False
    on_end: Callable[[], object] | None = None

    @property
    def is_identified(self) -> bool:
        return self.standing is not Standing.UNKNOWN


def source_of(address: str) -> str:
    """What an address counts as: an IPv6 host has 64 bits of addresses to itself, and IPv4 may be written as IPv6.

    Args:
        address: as the system or a proxy writes it; some proxies add the port, which differs for each connection.
    """
    with_port = _WITH_PORT.fullmatch(address)
    host = (with_port[1] or with_port[2]) if with_port else address
    try:
        ip = ip_address(host.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))


class _Group:
    """Connections that share a limit."""

    def __init__(self) -> None:
        self.size = 0
        self.resting: OrderedDict[Connection, None] = OrderedDict()

    def add(self, connection: Connection) -> None:
        self.size += 1
        if connection.rests:
            self.resting[connection] = None

    def remove(self, connection: Connection) -> None:
        self.size -= 1
        self.resting.pop(connection, None)

    def set_resting(self, connection: Connection, *, rests: bool) -> None:
        if rests:
            self.resting[connection] = None
        else:
            del self.resting[connection]

    @property
    def longest_resting(self) -> Connection | None:
        return next(iter(self.resting), None)


class Places:
    """The places of one listening port.

    Args:
        clock: monotonic, in seconds.
    """

    def __init__(
        self, limits: ConnectionLimits, metrics: Metrics, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self.entrance = Entrance()
        self._metrics = metrics
        self._clock = clock
        self._proxies = [ip_network(each) for each in limits.trusted_proxies]
        self._of_standing = {standing: _Group() for standing in Standing}
        self._of_holder: defaultdict[Holder, _Group] = defaultdict(_Group)
        self._told_at: dict[RefusalReason, float] = {}
        self._untold: defaultdict[RefusalReason, int] = defaultdict(int)

    def __len__(self) -> int:
        return sum(group.size for group in self._of_standing.values())

    def count(self, standing: Standing) -> int:
        """How many connections there are of that kind."""
        return self._of_standing[standing].size

    def enter(self, connection: Connection) -> RefusalReason | None:
        """Gives a new connection a place; returns why it gets none."""
        connection.is_proxy = self._is_proxy(connection.address)
        connection.client = None if connection.is_proxy else source_of(connection.address)
        unknown = self._of_standing[Standing.UNKNOWN]
        if not self._make_room_for(connection.client, self.limits.per_address):
            return RefusalReason.ADDRESS_LIMIT
        if not self._make_room(unknown, self.limits.newcomers) or not self._make_room_overall():
            return RefusalReason.OVERALL_LIMIT
        connection.has_place = connection.rests = True
        self._join(connection, Standing.UNKNOWN, connection.client)
        return None

    def leave(self, connection: Connection) -> None:
        """The connection has ended; may be said again."""
        if connection.has_place:
            connection.has_place = False
            self._part(connection)
            if connection.on_end is not None:
                connection.on_end()

    def rest(self, connection: Connection) -> None:
        """From now on the connection may be closed for another one."""
        self._set_resting(connection, rests=True)

    def work(self, connection: Connection) -> None:
        """A whole request is being answered."""
        self._set_resting(connection, rests=False)

    def act_for(self, connection: Connection, client: str | None) -> None:
        """A proxy's connection carries a request of somebody else, nobody knows yet of whom.

        Args:
            client: the address that the proxy was asked from; None: the request is over.

        Raises:
            TooManyConnections: that address has too many.
        """
        if not connection.has_place:
            return
        self._part(connection)
        connection.client = None if client is None else source_of(client)
        crowded = not self._make_room_for(connection.client, self.limits.per_address)
        self._join(connection, Standing.UNKNOWN, None if crowded else connection.client)
        if crowded:
            raise self._refused(RefusalReason.ADDRESS_LIMIT, connection)

    def identify(self, connection: Connection, standing: Standing, caller: Holder | None = None) -> None:
        """The caller has authenticated, as an operator or as the edge of a cluster.

        Args:
            caller: the cluster, or the operator's token; None: the connection counts for its address as before.

        Raises:
            TooManyConnections: operators, that token, or that cluster, have too many.
        """
        reason = self.try_identify(connection, standing, caller)
        if reason is not None:
            raise self._refused(reason, connection)

    def try_identify(
        self, connection: Connection, standing: Standing, caller: Holder | None = None
    ) -> RefusalReason | None:
        """The same for whoever notes and answers it in another way: returns why not."""
        holder = caller or connection.client
        if not connection.has_place or (connection.standing is standing and connection.holder == holder):
            return None
        self._part(connection)
        reason = self._reason_against(standing, caller)
        if reason is None:
            connection.rests = False
            self._join(connection, standing, holder)
        else:
            self._join(connection, connection.standing, connection.holder)
        return reason

    def note(self, reason: RefusalReason, address: str) -> None:
        """Counts a connection that was refused or closed early; the log tells of some."""
        self._metrics.connections_refused.labels(reason.value).inc()
        now = self._clock()
        if now - self._told_at.get(reason, -LOG_SECONDS) < LOG_SECONDS:
            self._untold[reason] += 1
            return
        self._told_at[reason] = now
        _log.warning(
            "connection refused or closed early",
            reason=reason.value,
            client=address,
            more=self._untold.pop(reason, 0),
            connections=len(self),
            limit=self.limits.overall,
        )

    def _reason_against(self, standing: Standing, caller: Holder | None) -> RefusalReason | None:
        if standing is Standing.EDGE and not self._make_room_for(caller, self.limits.per_cluster):
            return RefusalReason.CLUSTER_LIMIT
        if standing is Standing.OPERATOR and not self._make_room_for(caller, self.limits.per_token):
            return RefusalReason.TOKEN_LIMIT
        operators = self._of_standing[Standing.OPERATOR]
        if standing is Standing.OPERATOR and not self._make_room(operators, self.limits.operators):
            return RefusalReason.OPERATOR_LIMIT
        return None

    def _make_room_for(self, holder: Holder | None, limit: int) -> bool:
        group = None if holder is None else self._of_holder.get(holder)
        return group is None or self._make_room(group, limit)

    def _make_room_overall(self) -> bool:
        return len(self) < self.limits.overall or any(
            self._close_longest_resting(self._of_standing[standing]) for standing in Standing
        )

    def _make_room(self, group: _Group, limit: int) -> bool:
        return group.size < limit or self._close_longest_resting(group)

    def _close_longest_resting(self, group: _Group) -> bool:
        connection = group.longest_resting
        if connection is None:
            return False
        self.leave(connection)
        self.note(RefusalReason.MADE_ROOM, connection.client or connection.address)
        connection.close()
        return True

    def _set_resting(self, connection: Connection, *, rests: bool) -> None:
        if not connection.has_place or connection.rests is rests:
            return
        connection.rests = rests
        self._of_standing[connection.standing].set_resting(connection, rests=rests)
        if connection.holder is not None:
            self._of_holder[connection.holder].set_resting(connection, rests=rests)

    def _join(self, connection: Connection, standing: Standing, holder: Holder | None) -> None:
        connection.standing, connection.holder = standing, holder
        self._of_standing[standing].add(connection)
        if holder is not None:
            self._of_holder[holder].add(connection)

    def _part(self, connection: Connection) -> None:
        self._of_standing[connection.standing].remove(connection)
        if connection.holder is not None:
            group = self._of_holder[connection.holder]
            group.remove(connection)
            if not group.size:
                del self._of_holder[connection.holder]

    def _refused(self, reason: RefusalReason, connection: Connection) -> TooManyConnections:
        self.note(reason, connection.client or connection.address)
        return TooManyConnections(reason)

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            peer = ip_address(address)
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)
