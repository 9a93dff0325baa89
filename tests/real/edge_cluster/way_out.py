"""The only way out of a plant: a proxy that wants a password, and behind it a centre with a private authority.

The centre's name is known to the proxy alone, so that whatever reaches the centre has come through it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from debian import debian_program
from free_ports import free_port
from supervised import eventually

from edge_cluster.certificates import Authority
from edgewright.cli.parts import connects
from tools.production.ports import Ports
from tools.production.proxy import proxy_command

NAME = "centre.plant.example"
USER, PASSWORD = "press", "pa55-of-the-proxy"
OWN_HOSTS = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
CONFIGURATION = """\
Port {port}
Listen 127.0.0.1
Timeout 600
MaxClients 100
LogFile "{log}"
LogLevel Connect
BasicAuth {user} {password}
"""


class ForwardProxy:
    """A real tinyproxy.

    Args:
        folder: for its files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "tinyproxy.log"
        self._port = free_port()
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a shell that has no other way out."""
        return {"HTTPS_PROXY": f"http://{USER}:{PASSWORD}@127.0.0.1:{self._port}", "NO_PROXY": "127.0.0.1"}

    def tunnels(self) -> int:
        """How many have led to the centre."""
        said = self._log.read_text() if self._log.exists() else ""
        return len([line for line in said.splitlines() if f'Established connection to host "{NAME}"' in line])

    def start(self) -> None:
        """Returns when it serves."""
        hosts, configuration = self._folder / "hosts", self._folder / "tinyproxy.conf"
        hosts.write_text(f"127.0.0.1 localhost {NAME}\n")
        said = CONFIGURATION.format(port=self._port, log=self._log, user=USER, password=PASSWORD)
        configuration.write_text(said)
        own = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        program = str(debian_program("tinyproxy"))
        self._running = subprocess.Popen(
            [*own, "sh", "-c", OWN_HOSTS, "sh", str(hosts), program, "-d", "-c", str(configuration)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        eventually(lambda: connects(f"127.0.0.1:{self._port}"))

    def stop(self) -> None:
        """kill -9, with the tunnels that are open."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None


class Front:
    """nginx as the documentation has it, with a certificate of an authority of its own.

    Args:
        folder: for its files.
        gateway: port of the gateway behind it.
    """

    def __init__(self, folder: Path, gateway: int) -> None:
        self._folder = folder
        for made in ("pki", "logs"):
            (folder / made).mkdir()
        authority = Authority(folder / "pki")
        identity = authority.server("front", hosts=[NAME])
        shutil.copy(identity.certificate, folder / "proxy.crt")
        shutil.copy(identity.key, folder / "proxy.key")
        self.authority = authority.identity.certificate
        """PEM file of what has signed the certificate."""
        self._ports = Ports(gateways=(gateway, gateway))

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self._ports.proxy}"

    def asked_for(self) -> Sequence[str]:
        """Method and path of each request, in order."""
        lines = (self._folder / "logs" / "proxy-access.log").read_text().splitlines()
        return [" ".join(line.split()[2:4]) for line in lines]

    @contextmanager
    def serving(self) -> Iterator[None]:
        variables, command = proxy_command(self._folder, self._ports, print)
        with subprocess.Popen(command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL) as running:
            try:
                eventually(lambda: connects(f"127.0.0.1:{self._ports.proxy}"))
                yield
            finally:
                running.terminate()
                with suppress(subprocess.TimeoutExpired):
                    running.wait(20)
                running.kill()
