"""``make production-demo``: the topology on this machine, until Ctrl-C."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from free_ports import free_port
from workshop import ComponentMissing

from edgewright.cli.clusters_page import clusters_link
from edgewright.cli.supervisor import StopRequested, StopSignals
from tools.production.compose import CHECKOUT
from tools.production.ports import Ports
from tools.production.topology import Topology, running

USUAL_PORT = 8443
"""The port of the external URL, if nobody else has it."""


def main() -> int:
    """The exit code."""
    os.umask(0o077)
    signals = StopSignals()
    signals.listen()
    folder = Path(tempfile.mkdtemp(prefix="edgewright-production-"))
    _say(f"Edgewright as in docker-compose.yml, as processes of this machine, in {folder}")
    try:
        with running(folder, _say, Ports(proxy=_external_port()), signals) as topology:
            _commission_demo(topology)
            _farewell(topology)
            while not signals.count and topology.failure is None:
                time.sleep(0.2)
            _say("Stopping.")
            return 1 if topology.failure else 0
    except StopRequested:
        return 130
    except (ComponentMissing, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _external_port() -> int:
    with socket.socket() as probe:
        return free_port() if probe.connect_ex(("127.0.0.1", USUAL_PORT)) == 0 else USUAL_PORT


def _settings(topology: Topology) -> dict[str, str]:
    """What the command line needs to reach it."""
    return {
        "EDGEWRIGHT_URL": topology.url,
        "EDGEWRIGHT_TOKEN_FILE": str(topology.token_file),
        "EDGEWRIGHT_CA_BUNDLE": str(topology.ca),
    }


def _commission_demo(topology: Topology) -> None:
    program = str(CHECKOUT / "bin" / "edgewright")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    done = subprocess.run(
        [program, "cluster", "create", "demo", "--wait"],
        env={**surroundings, **_settings(topology)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    _say("".join(f"  demo         {line}\n" for line in done.stdout.splitlines()[:2]).rstrip())


def _farewell(topology: Topology) -> None:
    told = " ".join(f"{name}={shlex.quote(value)}" for name, value in _settings(topology).items())
    gateways = ", ".join(f"http://127.0.0.1:{port}" for port in topology.ports.gateways)
    pids = {name: topology.supervisor.pid_of(name) for name in (*topology.gateways, *topology.workers)}
    _say(f"""
Everything runs.
  API          {topology.url}/docs
  gateways     {gateways}
  Web UI       {clusters_link(topology.ui_url, "default", guarded=True)}
  admin token  {topology.token_file}
  authority    {topology.ca}
  logs         {topology.folder / "logs"}

Try next, in another terminal:
  export {told}
  ./bin/edgewright cluster list
  ./bin/edgewright cluster create press-shop --wait
  ./bin/edgewright cluster bootstrap press-shop
  kill -9 {pids["gateway-1"]}    (gateway-1; the other one answers, and it comes back)
  kill -9 {pids["worker-1"]}    (worker-1; the other one goes on)

Ctrl-C stops everything and removes the folder.""")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
