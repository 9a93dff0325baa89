"""Which ports the processes of the topology listen on."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from free_ports import free_port

from edgewright.cli.ports import hidden_address


@dataclass(frozen=True)
class Ports:
    """Free ports of the loopback address. ``temporal``: one for each of the server's own listeners."""

    postgresql: int = field(default_factory=free_port)
    temporal: Mapping[str, int] = field(
        default_factory=lambda: {
            f"{service}_{kind}_PORT": free_port()
            for service, kinds in (
                ("FRONTEND", ("GRPC", "MEMBERSHIP")),
                ("MATCHING", ("GRPC", "MEMBERSHIP")),
                ("HISTORY", ("GRPC", "MEMBERSHIP")),
                ("WORKER", ("GRPC", "MEMBERSHIP")),
            )
            for kind in kinds
        }
    )
    ui: int = field(default_factory=free_port)
    """The guard's; the UI itself is at ``hidden_ui``."""
    hidden_ui: tuple[str, int] = field(default_factory=hidden_address)
    gateways: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    metrics: defaultdict[str, int] = field(default_factory=lambda: defaultdict(free_port))
    """By the name of the process: in containers all have the same."""
    proxy: int = field(default_factory=free_port)

    @property
    def temporal_address(self) -> str:
        """``host:port`` of the front end."""
        return f"127.0.0.1:{self.temporal['FRONTEND_GRPC_PORT']}"
