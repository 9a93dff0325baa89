"""The agent's image, pulled as a container runtime pulls it: without a login, by tag, digest and range."""

import asyncio
import hashlib
from pathlib import Path

import httpx
import pytest
import yaml
from gateway_centre import GatewayCentre, bearer
from small_images import publish_small
from starlette.types import Message, Scope

from api.image_downloads import AT_ONCE, OF_ONE_ADDRESS, CountedFile, ImageDownloads
from edgewright.adapters.agent_image.layout import ImageLayout
from edgewright.bootstrap import AgentPod
from edgewright.errors import Busy, TooMany
from edgewright.ports.agent_images import PublishedImage

REPOSITORY = "/v2/edgewright/agent"


@pytest.fixture
def layout(tmp_path: Path, centre: GatewayCentre) -> ImageLayout:
    layout = ImageLayout(tmp_path / "agent-image")
    centre.offer(images=layout)
    return layout


@pytest.fixture
def image(layout: ImageLayout) -> PublishedImage:
    return publish_small(layout)


async def layers(anybody: httpx.AsyncClient, tag: str) -> list[dict[str, object]]:
    index = (await anybody.get(f"{REPOSITORY}/manifests/{tag}")).raise_for_status().json()
    digest = index["manifests"][0]["digest"]
    manifest = (await anybody.get(f"{REPOSITORY}/manifests/{digest}")).raise_for_status().json()
    return [manifest["config"], *manifest["layers"]]


async def test_a_runtime_pulls_every_part_and_each_has_its_digest(
    anybody: httpx.AsyncClient, image: PublishedImage
) -> None:
    version = await anybody.get("/v2/")
    assert (version.status_code, version.json()) == (200, {})
    assert version.headers["docker-distribution-api-version"] == "registry/2.0"
    assert (await anybody.get(f"{REPOSITORY}/tags/list")).json() == {"name": "edgewright/agent", "tags": [image.tag]}
    index = await anybody.get(f"{REPOSITORY}/manifests/{image.tag}")
    assert index.headers["content-type"] == "application/vnd.oci.image.index.v1+json"
    assert (
        index.headers["docker-content-digest"]
        == image.digest
        == f"sha256:{hashlib.sha256(index.content).hexdigest()}"
    )
    for part in await layers(anybody, image.tag):
        blob = await anybody.get(f"{REPOSITORY}/blobs/{part['digest']}")
        assert f"sha256:{hashlib.sha256(blob.content).hexdigest()}" == part["digest"]
        assert len(blob.content) == part["size"]
        assert blob.headers["docker-content-digest"] == part["digest"]


async def test_head_tells_the_size_and_sends_nothing(anybody: httpx.AsyncClient, image: PublishedImage) -> None:
    [*_, layer] = await layers(anybody, image.tag)
    for path in (f"manifests/{image.tag}", f"blobs/{layer['digest']}"):
        asked = await anybody.head(f"{REPOSITORY}/{path}")
        got = await anybody.get(f"{REPOSITORY}/{path}")
        assert asked.status_code == 200 and asked.content == b""
        for header in ("content-length", "docker-content-digest", "content-type"):
            assert asked.headers[header] == got.headers[header]


async def test_an_interrupted_pull_goes_on_where_it_was(anybody: httpx.AsyncClient, image: PublishedImage) -> None:
    [*_, layer] = await layers(anybody, image.tag)
    path = f"{REPOSITORY}/blobs/{layer['digest']}"
    whole = (await anybody.get(path)).content
    rest = await anybody.get(path, headers={"Range": "bytes=10-"})
    assert rest.status_code == 206
    assert rest.content == whole[10:]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("manifests/latest", "manifest_unknown"),
        (f"manifests/sha256:{'0' * 64}", "manifest_unknown"),
        (f"blobs/sha256:{'0' * 64}", "blob_unknown"),
        ("blobs/..%2f..%2findex.json", "route_unknown"),
        ("blobs/index.json", "blob_unknown"),
    ],
)
@pytest.mark.usefixtures("image")
async def test_what_the_image_does_not_have_is_not_found(anybody: httpx.AsyncClient, path: str, code: str) -> None:
    refused = await anybody.get(f"{REPOSITORY}/{path}")
    assert (refused.status_code, refused.json()["code"]) == (404, code)


async def test_a_gateway_without_an_image_serves_none(anybody: httpx.AsyncClient) -> None:
    assert (await anybody.get(f"{REPOSITORY}/tags/list")).json()["tags"] == []
    assert (await anybody.get(f"{REPOSITORY}/manifests/1.0.0")).status_code == 404
    assert (await anybody.get(f"{REPOSITORY}/blobs/sha256:{'0' * 64}")).status_code == 404


@pytest.mark.usefixtures("image")
async def test_nobody_writes_to_the_registry(admin: httpx.AsyncClient) -> None:
    for method, path in (("POST", "blobs/uploads/"), ("PUT", "manifests/1.0.0"), ("DELETE", "manifests/1.0.0")):
        assert (await admin.request(method, f"{REPOSITORY}/{path}")).status_code in {404, 405}


async def test_edges_get_the_served_image_as_soon_as_it_is_built(
    centre: GatewayCentre, admin: httpx.AsyncClient, layout: ImageLayout
) -> None:
    cluster = await centre.create("press-shop")
    before = (await admin.post(f"/v1/cluster/{cluster}/registration-token")).json()
    assert (before["agent_image"], before["agent_image_served"]) == (None, False)
    image = publish_small(layout)
    line = (await admin.post(f"/v1/cluster/{cluster}/registration-token")).json()
    assert line["agent_image"] == f"127.0.0.1:8484/edgewright/agent:{image.tag}"
    assert line["agent_image_served"] is True
    script = await centre.client().get(line["url"])
    assert f"agent_image='{line['agent_image']}'" in script.text
    fetched = await centre.client(bearer(await centre.bootstrap_token(cluster))).get(
        f"/v1/cluster/{cluster}/install/agent"
    )
    deployments = [one for one in yaml.safe_load_all(fetched.text) if one["kind"] == "Deployment"]
    assert {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments} == {line["agent_image"]}


async def test_an_image_in_the_settings_goes_before_the_served_one(
    centre: GatewayCentre, admin: httpx.AsyncClient, layout: ImageLayout
) -> None:
    publish_small(layout)
    centre.offer(agent=AgentPod("registry.example.com/edgewright:1"))
    cluster = await centre.create("press-shop")
    line = (await admin.post(f"/v1/cluster/{cluster}/registration-token")).json()
    assert (line["agent_image"], line["agent_image_served"]) == ("registry.example.com/edgewright:1", False)


async def test_a_gateway_below_a_path_serves_no_image_for_registries_have_none(
    centre: GatewayCentre, admin: httpx.AsyncClient, layout: ImageLayout
) -> None:
    publish_small(layout)
    centre.offer(external_url="https://centre.example.com/edgewright")
    cluster = await centre.create("press-shop")
    line = (await admin.post(f"/v1/cluster/{cluster}/registration-token")).json()
    assert line["agent_image"] is None


def test_downloads_have_a_bound_of_an_address_and_one_of_all() -> None:
    downloads, open_ones = ImageDownloads(), []
    for number in range(AT_ONCE):
        download = downloads.one_of(f"192.0.2.{number // OF_ONE_ADDRESS}")
        download.__enter__()
        open_ones.append(download)
    with pytest.raises(TooMany), downloads.one_of("192.0.2.0"):
        pass
    with pytest.raises(Busy), downloads.one_of("192.0.2.200"):
        pass
    for download in open_ones:
        download.__exit__(None, None, None)
    assert len(downloads) == 0


async def test_a_reader_that_takes_nothing_is_cut_off_and_leaves_its_place(tmp_path: Path) -> None:
    (file := tmp_path / "layer").write_bytes(b"x" * 200_000)
    downloads = ImageDownloads(stall_seconds=0.05)
    answer = CountedFile(file, downloads, headers={}, media_type="application/octet-stream")
    scope: Scope = {"type": "http", "method": "GET", "headers": [], "client": ("192.0.2.1", 1), "extensions": {}}

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def stuck(message: Message) -> None:
        if message["type"] == "http.response.body":
            assert len(downloads) == 1
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await answer(scope, receive, stuck)
    assert len(downloads) == 0
