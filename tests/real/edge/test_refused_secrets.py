"""A secret that the edge's real controller refuses: told at the centre in its words, and healed."""

from __future__ import annotations

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from supervised import eventually

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from edge.conftest import Edge

pytestmark = [pytest.mark.real, pytest.mark.timeout(600), pytest.mark.usefixtures("flux")]

SENTENCE = 'failed update: Resource "taken" already exists and is not managed by SealedSecret'


def put(edge: Edge, folder: Path, name: str, text: str) -> CompletedProcess[str]:
    """Types it, and waits; Flux is asked to fetch meanwhile, whether or not the agent may do that already."""
    file = folder / name
    file.write_text(text)
    place = ("press-shop", f"default/{name}", "password", f"@{file}")
    with ThreadPoolExecutor(1) as desk:
        typed = desk.submit(edge.centre.command, "secret", "put", *place, "--wait", "--timeout", "60s")
        while not typed.done():
            edge.cluster.fetch_now()
            time.sleep(1)
        return typed.result()


def on_edge(edge: Edge) -> dict[str, tuple[str, str | None]]:
    """State and refusal of each Secret."""
    items = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret").json()["items"]
    return {each["name"]: (each["edge_state"], each["refusal"]) for each in items}


def told(edge: Edge) -> list[tuple[str, str]]:
    """What the timeline says of secrets on the edge."""
    document = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/timeline", params={"limit": 500}).json()
    return [(each["kind"], each["message"]) for each in document["items"] if each["kind"].startswith("secret.edge_")]


def decrypted(edge: Edge, name: str) -> str:
    found: dict[str, Any] | None = edge.cluster.find("secret", name)
    return "" if found is None else base64.b64decode(found["data"]["password"]).decode()


def test_a_secret_that_the_controller_refuses_is_told_in_its_words_until_it_is_opened(
    edge: Edge, tmp_path: Path
) -> None:
    edge.cluster.kubectl("create", "secret", "generic", "taken", "--from-literal=password=theirs")
    well = put(edge, tmp_path, "free", "ours")
    assert well.returncode == 0, well.stdout + well.stderr
    assert "press-shop has opened default/free after " in well.stdout
    assert decrypted(edge, "free") == "ours", "it is there when the command has ended"

    refused = put(edge, tmp_path, "taken", "ours")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert f"The edge of press-shop does not open default/taken: {SENTENCE}" in refused.stderr
    assert on_edge(edge) == {"free": ("opened", None), "taken": ("refused", SENTENCE)}
    assert decrypted(edge, "taken") == "theirs"
    eventually(lambda: edge.condition("Healthy") == ("False", "SecretRefused"))
    assert edge.message("Healthy").startswith(f"The secret default/taken is not opened on the edge: {SENTENCE}")
    assert told(edge) == [
        ("secret.edge_refused", f"The edge of press-shop does not open default/taken ({SENTENCE}).")
    ]
    listed = edge.centre.command("secret", "list", "press-shop")
    assert f"Refused on the edge: default/taken: {SENTENCE}" in listed.stderr

    edge.cluster.kubectl("delete", "secret", "taken")
    time.sleep(5)  # it has given up by then, as the command's hint and docs/troubleshooting.md say
    assert edge.cluster.find("secret", "taken") is None
    assert on_edge(edge)["taken"] == ("refused", SENTENCE)
    healed = put(edge, tmp_path, "taken", "ours")
    assert healed.returncode == 0, healed.stdout + healed.stderr
    assert decrypted(edge, "taken") == "ours"
    assert on_edge(edge) == {"free": ("opened", None), "taken": ("opened", None)}
    eventually(lambda: edge.condition("Healthy") != ("False", "SecretRefused"))
    assert told(edge)[1:] == [("secret.edge_healed", "The edge of press-shop no longer refuses default/taken.")]
    shown = [well, refused, listed, healed]
    assert not [each for each in shown if "ours" in each.stdout + each.stderr], "a value is never shown"
    assert "ours" not in str(edge.agent.log())


def test_what_is_deleted_at_the_edge_is_not_said_to_be_opened(edge: Edge, tmp_path: Path) -> None:
    assert put(edge, tmp_path, "gone", "ours").returncode == 0
    edge.cluster.kubectl("delete", "sealedsecret", "gone")
    eventually(lambda: on_edge(edge)["gone"][0] == "sealed", seconds=120)
