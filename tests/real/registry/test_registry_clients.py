"""A registry client that others wrote, on the registry that a gateway is: it checks each digest and copies the image.

Container runtimes pull in the same protocol; none can run here.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from components import component
from free_ports import free_port
from live_gateway import LiveGateway, live_gateway
from loopback import PLAIN
from supervised import eventually

from edgewright.adapters.agent_image.build import build_image
from edgewright.adapters.agent_image.layout import ImageLayout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edgewright.ports.agent_images import PublishedImage

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first test may build the client


def crane(*arguments: str | Path) -> str:
    done = subprocess.run([component("crane"), *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> ImageLayout:
    return ImageLayout(tmp_path_factory.mktemp("home") / "agent-image")


@pytest.fixture(scope="module")
def image(layout: ImageLayout) -> PublishedImage:
    """The agent's image as this machine builds it."""
    return build_image(layout)


@pytest.fixture(scope="module")
def live(layout: ImageLayout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    with live_gateway(tmp_path_factory.mktemp("gateway")) as live:
        live.centre.offer(images=layout)
        yield live


@pytest.fixture(scope="module")
def served(live: LiveGateway, image: PublishedImage) -> str:
    """What nodes pull."""
    return image.reference(live.url.removeprefix("http://"))


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """A registry of somebody else's; its address."""
    address = f"127.0.0.1:{free_port()}"
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [component("crane"), "registry", "serve", "--address", address, "--disk", folder], stdout=log, stderr=log
        )
        try:
            eventually(lambda: _answers(address))
            yield address
        finally:
            process.terminate()
            process.wait(30)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"http://{address}/v2/", **PLAIN).is_success
    except httpx.HTTPError:
        return False


def test_every_layer_and_manifest_passes_a_clients_own_checks(served: str) -> None:
    assert "PASS" in crane("validate", "--remote", served)


def test_tags_digest_and_configuration_are_as_the_centre_says(served: str, image: PublishedImage) -> None:
    repository, _, tag = served.rpartition(":")
    assert crane("ls", repository).split() == [tag]
    assert crane("digest", served).strip() == image.digest
    config = json.loads(crane("config", served))
    assert f"{config['os']}/{config['architecture']}" == image.platforms[0]
    assert config["config"]["Cmd"] == ["python", "-P", "-m", "edgewright.agent"]


def test_it_can_be_copied_to_a_registry_of_ones_own(served: str, image: PublishedImage, tmp_path: Path) -> None:
    with registry(tmp_path) as address:
        there = f"{address}/tools/edgewright-agent:1"
        crane("copy", served, there)
        assert crane("digest", there).strip() == image.digest
        assert "PASS" in crane("validate", "--remote", there)


def test_an_archive_of_it_is_one_that_clients_read(layout: ImageLayout, served: str, tmp_path: Path) -> None:
    layout.save(tmp_path / "agent.tar", served)
    (unpacked := tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "agent.tar", "-C", unpacked], check=True)
    with registry(tmp_path) as address:
        crane("push", "--index", unpacked, f"{address}/tools/edgewright-agent:2")
        assert "PASS" in crane("validate", "--remote", f"{address}/tools/edgewright-agent:2")
