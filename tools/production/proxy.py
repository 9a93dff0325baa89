"""A real nginx with the configuration of ``docs/examples/nginx.conf``, and with other ports and paths."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from debian import debian_tree, library_path

from tools.production.compose import CHECKOUT
from tools.production.ports import Ports

PORTS = ("8484", "8485")
"""Those of the two gateways, in the configuration."""
SCRATCH = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def proxy_command(folder: Path, ports: Ports, say: Callable[[str], None]) -> tuple[dict[str, str], list[str]]:
    """The variables and the command of a proxy; its configuration is written into the folder.

    Args:
        folder: holds ``proxy.crt``, ``proxy.key`` and ``logs/``.
    """
    configuration = (CHECKOUT / "docs" / "examples" / "nginx.conf").read_text("utf-8")
    for old, new in _places(folder, ports).items():
        assert old in configuration, f"docs/examples/nginx.conf does not hold {old} any more"
        configuration = configuration.replace(old, new)
    written = folder / "nginx.conf"
    written.write_text(configuration)
    (folder / "proxy").mkdir()
    program, libraries = _nginx(say)
    return libraries, [str(program), "-p", str(folder), "-c", str(written), "-e", "stderr", "-g", "daemon off;"]


def _places(folder: Path, ports: Ports) -> dict[str, str]:
    # Where a proxy that was installed keeps bodies for a while; the configuration lets it keep none.
    scratch = " ".join(f"{kind}_temp_path {folder / 'proxy' / kind};" for kind in SCRATCH)
    gateways = {f"127.0.0.1:{old}": f"127.0.0.1:{new}" for old, new in zip(PORTS, ports.gateways, strict=True)}
    return {
        **gateways,
        "http {": f"http {{ {scratch}",
        "listen 443 ssl": f"listen 127.0.0.1:{ports.proxy} ssl",
        "edgewright.example.com": "localhost",
        "/etc/nginx/edgewright.crt": str(folder / "proxy.crt"),
        "/etc/nginx/edgewright.key": str(folder / "proxy.key"),
        "/run/nginx.pid": str(folder / "nginx.pid"),
        "/var/log/nginx/edgewright-error.log": str(folder / "logs" / "proxy-error.log"),
        "/var/log/nginx/edgewright-access.log": str(folder / "logs" / "proxy-access.log"),
    }


def _nginx(say: Callable[[str], None]) -> tuple[Path, dict[str, str]]:
    """The program, and the variables that it needs."""
    found = shutil.which("nginx", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"]))
    if found:
        return Path(found), {}
    tree = debian_tree("nginx", say=say)
    return tree / "usr" / "sbin" / "nginx", {"LD_LIBRARY_PATH": library_path(tree)}
