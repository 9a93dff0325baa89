"""The cluster `demo` of a fresh home: made through the gateway, as any user would make it."""

import time
from pathlib import Path

from edgewright.cli.client import GatewayClient
from edgewright.cli.client_settings import read_token
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.local import gateway_url
from edgewright.settings import Settings

DEMO_NAME = "demo"
_DUE = "demo-is-due"
_SECONDS = 60.0


def want_demo(home: Path) -> None:
    """Remembers that a fresh home shall get its demo; a killed first start does not forget it."""
    (home / _DUE).touch(mode=0o600)


def demo_is_due(home: Path) -> bool:
    """Whether the demo is wanted and not there yet."""
    return (home / _DUE).exists()


def commission_demo(settings: Settings) -> float:
    """Creates the cluster and waits until it is ready; returns the seconds that this took.

    Raises:
        CliError: it was not created, or not ready within a minute; the demo stays due unless it was created.
    """
    token = read_token(settings.home / "admin-token")
    with GatewayClient(gateway_url(settings), token, ca_bundle=settings.ca_bundle) as gateway:
        began = time.monotonic()
        uuid = _created(gateway)
        (settings.home / _DUE).unlink(missing_ok=True)
        _await_ready(gateway, uuid, until=began + _SECONDS)
        return time.monotonic() - began


def _created(gateway: GatewayClient) -> str:
    try:
        return str(gateway.post("/v1/cluster", {"name": DEMO_NAME})["uuid"])
    except CliError as error:
        if error.code != "name_taken":
            raise
    # A first start that was killed has created it already.
    items = gateway.get("/v1/cluster", {"name": DEMO_NAME})["items"]
    return next(str(item["uuid"]) for item in items if item["name"].lower() == DEMO_NAME)


def _await_ready(gateway: GatewayClient, uuid: str, *, until: float) -> None:
    path = f"/v1/cluster/{uuid}/ready"
    while True:
        answer = gateway.request("GET", path, params={"wait": 10}, accept=frozenset({503}))
        if answer.is_success and answer.json().get("ready"):
            return
        if time.monotonic() > until:
            raise CliError(f"{DEMO_NAME} is not ready after {_SECONDS:.0f} s.", exit_code=ExitCode.UNAVAILABLE)
        time.sleep(0.05)
