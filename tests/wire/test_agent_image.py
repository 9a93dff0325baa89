"""The image as the command line builds it: unpacked, and run with nothing else in sight.

There is no container runtime here. A program runs with the image as its whole file system (chroot in a user
namespace), in the environment that the image names, and sees none of this machine's files.
"""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

import edgewright
from edgewright import __version__
from edgewright.adapters.agent_image.build import build_image
from edgewright.adapters.agent_image.layout import ImageLayout
from edgewright.cli.agent_image import BackgroundBuild
from edgewright.ports.agent_images import PublishedImage
from edgewright.settings import Settings

pytestmark = pytest.mark.timeout(300)

DEPLOYMENT = Path(edgewright.__file__).parent / "agent" / "deployment.yaml"
EVERY_MODULE = """
import importlib, json, os, pkgutil, ssl, sys
import edgewright.agent as agent
for module in pkgutil.walk_packages(agent.__path__, "edgewright.agent."):
    importlib.import_module(module.name)
told = {"python": sys.version, "prefix": sys.prefix, "root": os.listdir("/")}
print(json.dumps(told | {"authorities": len(ssl.create_default_context().get_ca_certs())}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def cli(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.environ["PATH"], "EDGEWRIGHT_HOME": str(home), "HOME": str(home)}
    variables["EDGEWRIGHT_EXTERNAL_URL"] = "https://centre.example.com:8484"
    return subprocess.run(
        [Path(sys.executable).with_name("edgewright"), "agent-image", *arguments],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture(scope="module")
def layout(home: Path) -> ImageLayout:
    """What `edgewright agent-image build` has made."""
    done = cli(home, "build")
    assert done.returncode == 0, done.stderr
    return ImageLayout(home / "agent-image")


@pytest.fixture(scope="module")
def image(layout: ImageLayout) -> PublishedImage:
    published = layout.published()
    assert published is not None
    return published


@pytest.fixture(scope="module")
def config(layout: ImageLayout, image: PublishedImage) -> dict[str, Any]:
    """The image's configuration."""
    found: dict[str, Any] = json.loads(_document(layout, _manifest(layout, image)["config"]["digest"]))
    return found


@pytest.fixture(scope="module")
def root(layout: ImageLayout, image: PublishedImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's file system, unpacked layer by layer."""
    folder = tmp_path_factory.mktemp("root")
    for layer in _manifest(layout, image)["layers"]:
        path = layout.blob(layer["digest"])
        assert path is not None
        subprocess.run(["tar", "-xzf", path, "-C", folder], check=True)
    return folder


def _document(layout: ImageLayout, digest: str) -> bytes:
    path = layout.blob(digest)
    assert path is not None
    return path.read_bytes()


def _manifest(layout: ImageLayout, image: PublishedImage) -> dict[str, Any]:
    [described] = json.loads(_document(layout, image.digest))["manifests"]
    found: dict[str, Any] = json.loads(_document(layout, described["digest"]))
    return found


def alone(root: Path) -> list[str]:
    """Runs what follows with this folder as its whole file system; needs no rights."""
    unshare, chroot = shutil.which("unshare"), shutil.which("chroot")
    assert unshare and chroot, "this needs unshare (util-linux) and chroot (coreutils)"
    return [unshare, "--user", "--map-root-user", chroot, str(root)]


def environment(config: dict[str, Any]) -> dict[str, str]:
    return dict(one.split("=", 1) for one in config["config"]["Env"])


def inside(root: Path, config: dict[str, Any], *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as a container of the image would."""
    return subprocess.run(
        [*alone(root), *command],
        env=environment(config),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_everything_that_the_agent_imports_is_there(root: Path, config: dict[str, Any]) -> None:
    told = inside(root, config, "/opt/python/bin/python", "-P", "-c", EVERY_MODULE)
    assert told.returncode == 0, told.stderr
    said = json.loads(told.stdout)
    assert said["python"] == sys.version
    assert said["prefix"] == "/opt/python"
    assert said["authorities"] > 0
    assert set(said["root"]) <= {"etc", "kubeconfig", "lib", "lib64", "opt", "run"}


@pytest.mark.parametrize(
    ("module", "event"), [("edgewright.agent", "attachment"), ("edgewright.agent.detacher", "detach")]
)
def test_agent_and_detacher_start_and_ask_kubernetes(
    root: Path, config: dict[str, Any], module: str, event: str
) -> None:
    assert config["config"]["Cmd"] == ["python", "-P", "-m", "edgewright.agent"]
    assert config["config"]["User"] == "10001:10001"
    with api_server() as url:
        (root / "kubeconfig").write_text(json.dumps(_kubeconfig(url)))
        variables = environment(config) | {"KUBECONFIG": "/kubeconfig", "EDGEWRIGHT_AGENT_NAMESPACE": "edgewright"}
        process = subprocess.Popen(
            [*alone(root), "/opt/python/bin/python", "-P", "-m", module],
            env=variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            events = iter(json.loads(line)["event"] for line in process.stderr)
            assert next(events) == "started"
            assert event in events  # reads on until it is there; the test's timeout ends a silent program
        finally:
            process.terminate()
            process.wait(30)


def test_the_probes_run_in_it(root: Path, config: dict[str, Any]) -> None:
    [deployment] = [one for one in yaml.safe_load_all(DEPLOYMENT.read_text("utf-8")) if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    folder = root / "run" / "edgewright"
    folder.mkdir(parents=True)
    for probe, file, before in (
        ("livenessProbe", "alive", "FileNotFoundError"),
        ("readinessProbe", "answered", "no answer from the centre"),
    ):
        program, *arguments = container[probe]["exec"]["command"]
        probed = inside(root, config, f"/opt/python/bin/{program}", *arguments)
        assert (probed.returncode, before in probed.stderr) == (1, True)
        (folder / file).touch()
        assert inside(root, config, f"/opt/python/bin/{program}", *arguments).returncode == 0


def test_the_image_holds_the_agent_and_nothing_of_the_centre(root: Path) -> None:
    packages = {path.name for path in (root / "opt" / "packages").iterdir()}
    assert {"edgewright", "httpx2", "lightkube", "structlog", "yaml"} <= packages
    assert packages.isdisjoint(
        {"api", "workflows", "activities", "fastapi", "sqlalchemy", "temporalio", "cryptography"}
    )
    assert {path.name for path in (root / "opt" / "packages" / "edgewright").iterdir() if path.is_dir()} == {
        "__pycache__",
        "agent",
    }
    assert not (root / "bin").exists() and not list(root.rglob("sh"))


def test_another_build_of_the_same_files_has_the_same_digest(image: PublishedImage, tmp_path: Path) -> None:
    assert build_image(ImageLayout(tmp_path / "again")) == image


def test_a_second_build_finds_it_there_and_writes_nothing(layout: ImageLayout, image: PublishedImage) -> None:
    index = layout.folder / "index.json"
    before = index.stat()
    assert build_image(layout) == image
    assert index.stat() == before


def test_the_command_line_shows_saves_and_takes_back_an_image(
    home: Path, image: PublishedImage, tmp_path: Path
) -> None:
    reference = f"centre.example.com:8484/edgewright/agent:{image.tag}"
    shown = cli(home, "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.split(r"\s{2,}|\n", shown.stdout.strip()) == [
        *("image", reference, "platforms", image.platforms[0], "digest", image.digest)
    ]
    saved = cli(home, "save", str(tmp_path / "agent.tar"))
    assert saved.stdout == f"{tmp_path / 'agent.tar'}: {reference}\n"
    with tarfile.open(tmp_path / "agent.tar") as archive:
        assert {"oci-layout", "index.json"} < set(archive.getnames())
    other = tmp_path / "other"
    assert cli(other, "show").returncode == 3
    added = cli(other, "add", str(tmp_path / "agent.tar"))
    assert (added.returncode, added.stdout) == (0, shown.stdout)
    assert ImageLayout(other / "agent-image").published() == image
    assert image.version == __version__


def test_the_command_line_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    for file, code in (("missing", 2), ("text", 2)):
        refused = cli(tmp_path / "home", "add", str(tmp_path / file))
        assert refused.returncode == code, refused.stderr
        assert "Traceback" not in refused.stderr


def _told(build: Callable[[Callable[[str], None]], BackgroundBuild]) -> str:
    """What a build in the background says in the end."""
    told: queue.Queue[str] = queue.Queue()
    build(told.put).start()
    return told.get(timeout=240)


def test_up_builds_it_in_the_background_and_tells_its_name(
    home: Path, image: PublishedImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDGEWRIGHT_HOME", raising=False)
    settings = Settings(home=home, external_url="https://centre.example.com:8484")
    told = _told(lambda tell: BackgroundBuild(settings, tell))
    assert told == f"centre.example.com:8484/edgewright/agent:{image.tag}"


def test_a_build_that_fails_says_why_and_what_follows(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    (home / "agent-image").write_text("in the way")
    told = _told(lambda tell: BackgroundBuild(Settings(home=home), tell))
    assert told.startswith("could not be built: ") and told.endswith("Without it, edges get no agent.")
    assert "agent-image" in told and "Traceback" not in told


def test_a_build_that_is_stopped_says_nothing_and_leaves_no_process(tmp_path: Path) -> None:
    told: list[str] = []
    build = BackgroundBuild(Settings(home=tmp_path / "home"), told.append)
    build.start()
    build.stop()
    build.stop()
    assert told == []
    assert build.has_ended


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "edge", "cluster": {"server": url}}],
        "users": [{"name": "agent", "user": {"token": "none"}}],
        "contexts": [{"name": "edge", "context": {"cluster": "edge", "user": "agent"}}],
        "current-context": "edge",
    }


@contextmanager
def api_server() -> Iterator[str]:
    """A Kubernetes API server that knows of nothing."""

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}).encode()
            self.send_response(404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
