"""Starts and watches the topology: PostgreSQL, Temporal, its Web UI and the guard before that, init, workers,
gateways, a TLS proxy."""

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from components import component
from postgresql_server import PostgreSQL, postgresql_server

from edgewright.cli.failures import CliError
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.parts import answers
from edgewright.cli.supervisor import Part, RestartPolicy, StopRequested, StopSignals, Supervisor, in_background
from tools.production.certificates import make_certificates
from tools.production.compose import ComposeFile, MachinePlaces, image_command, image_environment
from tools.production.frontend import serves
from tools.production.ports import Ports
from tools.production.proxy import proxy_command

AS_COMPOSE = RestartPolicy(longest_pause=2.0, deaths=1_000_000)
"""Compose starts again whatever ends, however often it does."""
READY_SECONDS = 120.0
INIT_SECONDS = 180


class Topology:
    """All of it, in one folder. Use ``running``.

    Args:
        folder: for everything but PostgreSQL's data; made by the caller, removed by the caller.
        say: takes one plain line for whoever waits.
        instead: variables of Edgewright's programs with another value than the file gives them.
        policy: how deaths are answered.
    """

    def __init__(
        self,
        folder: Path,
        ports: Ports,
        postgresql: PostgreSQL,
        say: Callable[[str], None],
        signals: StopSignals | None = None,
        *,
        instead: Mapping[str, str] | None = None,
        policy: RestartPolicy | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ports = ports
        self.postgresql = postgresql
        self._say = say
        for made in (self.home, folder / "logs", folder / "bin"):
            made.mkdir(mode=0o700)
        make_certificates(folder)
        self._places = MachinePlaces(
            whole={"postgres": "127.0.0.1", "5432": str(ports.postgresql), "0.0.0.0": "127.0.0.1"},
            parts={
                "@postgres:5432": f"@127.0.0.1:{ports.postgresql}",
                "--ep postgres -p 5432": f"--ep 127.0.0.1 -p {ports.postgresql}",
                "temporal:7233": ports.temporal_address,
                "temporal-ui:6667": f"{ports.hidden_ui[0]}:{ports.hidden_ui[1]}",
                "0.0.0.0:8080": f"127.0.0.1:{ports.ui}",
                "/var/lib/edgewright": str(self.home),
                "/etc/temporal/dynamic.yaml": str(folder / "dynamic.yaml"),
            },
        )
        answered = {
            "POSTGRES_PASSWORD": postgresql.password,
            "EDGEWRIGHT_EXTERNAL_URL": self.url,
            "EDGEWRIGHT_CA_BUNDLE": str(self.ca),
            "EDGEWRIGHT_TRUSTED_PROXIES": "127.0.0.1",
            "EDGEWRIGHT_TEMPORAL_UI_URL": self.ui_url,
        }
        self.compose = ComposeFile(answered, self._places)
        self._instead = dict(instead or {})
        self._signals = signals or StopSignals()
        self.supervisor = Supervisor(ProcessLedger(folder), self._signals, say, policy or RestartPolicy())
        self._parts: dict[str, Part] = {}
        self._watcher: threading.Thread | None = None
        self.failure: CliError | None = None

    @property
    def url(self) -> str:
        """The external URL: the proxy's."""
        return f"https://127.0.0.1:{self.ports.proxy}"

    @property
    def ui_url(self) -> str:
        """Temporal's Web UI."""
        return f"http://127.0.0.1:{self.ports.ui}"

    @property
    def ca(self) -> Path:
        """PEM of the authority that vouches for the proxy."""
        return self.folder / "ca.pem"

    @property
    def token_file(self) -> Path:
        """The admin token, once ``init`` has run."""
        return self.home / "admin-token"

    @property
    def gateways(self) -> list[str]:
        """Names of the parts."""
        return [f"gateway-{number}" for number in range(1, self.compose.replicas("gateway") + 1)]

    @property
    def workers(self) -> list[str]:
        """Names of the parts."""
        return [f"worker-{number}" for number in range(1, self.compose.replicas("worker") + 1)]

    def start(self) -> None:
        """Starts everything, each when what it waits for is there, and watches over it from then on."""
        self.make_databases()
        self.start_temporal()
        self.start_edgewright()

    def make_databases(self) -> None:
        """An empty one for Edgewright if there is none, and Temporal's with their schemas."""
        database = self.compose.environment("postgres")["POSTGRES_DB"]
        if not int(self.postgresql.sql(f"SELECT count(*) FROM pg_database WHERE datname = '{database}'")):
            self.postgresql.sql(f'CREATE DATABASE "{database}"')
        self._make_temporal_databases()

    def start_temporal(self) -> None:
        """Temporal's server and its Web UI, in prepared databases."""
        self._begin(self._temporal(), "answers at " + self.ports.temporal_address)
        self._begin(self._ui(), "behind its guard")
        self._begin(self._web_ui(), self.ui_url)

    def start_edgewright(self) -> None:
        """Init, workers, gateways and the proxy; from then on everything is watched over."""
        self._say(f"  init         {self._beside(self.init).splitlines()[-1]}")
        parts = [self._worker(name) for name in self.workers]
        parts += [self._gateway(*each) for each in zip(self.gateways, self.ports.gateways, strict=True)]
        for part in parts:
            self._start(part)
        for part in parts:
            self._await(part.name, "runs")
        self._begin(self._proxy(), self.url)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Stops everything in the opposite order of its start."""
        self._signals.ask()
        if self._watcher:
            self._watcher.join(60)
        self.supervisor.stop()

    def init(self, **instead: str) -> str:
        """Runs the one-shot that the others wait for; returns what it printed. May be repeated, also at once.

        Args:
            instead: variables with another value than the file gives them.

        Raises:
            RuntimeError: it failed; the text is what it said.
        """
        done = subprocess.run(
            self._ours(self.compose.command("init")),
            env=self._surroundings(self.compose.environment("init") | self._instead | instead),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=INIT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout

    def serves(self, name: str) -> bool:
        """Whether a part runs and answers."""
        return self.supervisor.pid_of(name) is not None and self._parts[name].ready()

    def client(self) -> httpx.Client:
        """A client of the proxy with the admin token."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token_file.read_text().strip()}"},
            verify=ssl.create_default_context(cafile=self.ca),
            trust_env=False,
            timeout=60,
        )

    def last_words(self) -> str:
        """The end of each log."""
        logs = sorted((self.folder / "logs").glob("*.log"))
        return "".join(f"--- {log.name}\n{log.read_text(errors='replace')[-1000:]}\n" for log in logs)

    def _watch(self) -> None:
        try:
            self.supervisor.watch()
        except StopRequested:
            pass
        except CliError as error:
            self.failure = error
            self._say(f"{error.sentence} {error.hint or ''}")

    def _beside(self, work: Callable[[], str]) -> str:
        """The result of work that runs while the children are watched."""
        outcome = in_background(work)
        assert self.supervisor.wait_for(outcome.done, seconds=INIT_SECONDS), "it did not end in time"
        return outcome.result()

    def _start(self, part: Part) -> None:
        self._parts[part.name] = part
        self.supervisor.start(part)

    def _begin(self, part: Part, where: str) -> None:
        self._start(part)
        self._await(part.name, where)

    def _await(self, name: str, where: str) -> None:
        self.supervisor.wait_ready(name, seconds=READY_SECONDS)
        self._say(f"  {name:<12} {where}")

    def _make_temporal_databases(self) -> None:
        (self.folder / "bin" / "temporal-sql-tool").symlink_to(component("temporal-sql-tool", say=self._say))
        tools = {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            self.compose.command("temporal-schema"),
            env=self._surroundings(self.compose.environment("temporal-schema") | tools),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        self._say(f"  postgresql   127.0.0.1:{self.ports.postgresql}, with Temporal's schemas")

    def _temporal(self) -> Part:
        (self.folder / "dynamic.yaml").write_text(self.compose.config("temporal-dynamic"))
        environment = self.compose.environment("temporal")
        ports = {name: str(port) for name, port in self.ports.temporal.items()}
        return self._part(
            "temporal",
            [str(component("temporal-server", say=self._say)), "start"],  # what the image's entrypoint runs
            self._surroundings(environment | ports),
            ready=lambda: serves(self.ports.temporal_address),
        )

    def _ui(self) -> Part:
        address = self.compose.environment("temporal-ui")["TEMPORAL_ADDRESS"]
        (self.folder / "ui").mkdir()
        host, port = self.ports.hidden_ui
        told = f"temporalGrpcAddress: {address}\nhost: {host}\nport: {port}\nenableUi: true\n"
        (self.folder / "ui" / "base.yaml").write_text(told)
        command = [
            str(component("temporal-ui", say=self._say)),
            "--root",
            str(self.folder),
            "--config",
            "ui",
            "start",
        ]
        return self._part(
            "temporal-ui", command, self._surroundings({}), ready=lambda: answers(f"http://{host}:{port}/healthz")
        )

    def _web_ui(self) -> Part:
        command = self._ours(self.compose.command("web-ui"))
        return self._part("web-ui", command, self._surroundings({}), ready=lambda: answers(f"{self.ui_url}/healthz"))

    def _worker(self, name: str) -> Part:
        ready_file = self.folder / f"{name}.ready"
        metrics = str(self.ports.metrics[name])
        told = {"EDGEWRIGHT_READY_FILE": str(ready_file), "EDGEWRIGHT_WORKER_METRICS_PORT": metrics}
        environment = self._surroundings(self.compose.environment("worker") | self._instead | told)
        command = self._ours(self.compose.command("worker"))
        return self._part(name, command, environment, ready=ready_file.exists, ready_file=ready_file)

    def _gateway(self, name: str, port: int) -> Part:
        own = {"EDGEWRIGHT_GATEWAY_PORT": str(port), "EDGEWRIGHT_METRICS_PORT": str(self.ports.metrics[name])}
        image = image_environment(self._places)
        environment = self._surroundings({**image, **self.compose.environment("gateway"), **self._instead, **own})
        url = f"http://127.0.0.1:{port}/readyz"
        return self._part(name, self._ours(image_command()), environment, ready=lambda: answers(url))

    def _proxy(self) -> Part:
        libraries, command = proxy_command(self.folder, self.ports, self._say)
        return self._part(
            "proxy", command, self._surroundings(libraries), ready=lambda: answers(f"{self.url}/healthz")
        )

    def _part(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        *,
        ready: Callable[[], bool],
        ready_file: Path | None = None,
    ) -> Part:
        return Part(
            name=name,
            command=command,
            environment=environment,
            log=self.folder / "logs" / f"{name}.log",
            ready=ready,
            ready_file=ready_file,
            folder=self.home,
        )

    def _surroundings(self, told: Mapping[str, str]) -> dict[str, str]:
        """What a container would have: nothing of this shell's settings, and what the file says."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG", "TZ") if name in os.environ}
        return {**kept, "PYTHONUNBUFFERED": "1", **told}

    def _ours(self, command: Sequence[str]) -> list[str]:
        """The same command in this environment instead of the image's."""
        first = {"python": sys.executable, "edgewright": str(Path(sys.executable).parent / "edgewright")}
        return [first[command[0]], *command[1:]]


@contextmanager
def running(
    folder: Path,
    say: Callable[[str], None],
    ports: Ports | None = None,
    signals: StopSignals | None = None,
    *,
    policy: RestartPolicy | None = None,
) -> Iterator[Topology]:
    """The whole topology, until the end of the context.

    Args:
        folder, policy: see ``Topology``.
        signals: end the start, too.

    Raises:
        StopRequested: during the start.
        RuntimeError, ComponentMissing: a part does not come up; the text has the end of each log.
    """
    chosen = ports or Ports()
    with real_postgresql(chosen, say) as postgresql:
        topology = Topology(folder, chosen, postgresql, say, signals, policy=policy)
        try:
            with telling(topology):
                topology.start()
            yield topology
        finally:
            topology.stop()


@contextmanager
def real_postgresql(ports: Ports, say: Callable[[str], None]) -> Iterator[PostgreSQL]:
    """The server that a topology runs on, once all that the topology needs is built."""
    for name in ("temporal-server", "temporal-sql-tool", "temporal-ui"):
        component(name, say=say)
    with postgresql_server(port=ports.postgresql, settings={"max_connections": "300"}) as postgresql:
        yield postgresql


@contextmanager
def telling(topology: Topology) -> Iterator[None]:
    """Raises ``RuntimeError`` with the end of each log if a part does not come up."""
    try:
        yield
    except CliError as error:
        raise RuntimeError(f"{error.sentence}\n{topology.last_words()}") from error
