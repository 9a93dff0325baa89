"""Image and compose file agree with the settings model, and give nothing away by default."""

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from go_programs import PROGRAMS

from edgewright.agent import settings as agent_settings
from edgewright.cli.client_settings import ClientSettings
from edgewright.cli.parts import gateway_part
from edgewright.cli.ports import BLOCKED
from edgewright.settings import Settings
from tools.image_platforms import complaint, pinned_images

BESIDE_SETTINGS = {"EDGEWRIGHT_COMPONENTS_DIR", "EDGEWRIGHT_KUBE_CONTEXT"}
"""Variables of the tests' components: no setting of a process."""
VARIABLE = re.compile(r"\bEDGEWRIGHT_[A-Z_]*[A-Z]\b")
NAME_OF_A_SECRET = "EDGEWRIGHT_AGENT_PULL_SECRET"
"""Names an object on edges, whose content the centre never sees."""
SECRET_NAME = re.compile(r"PASSWORD|PWD|TOKEN|SECRET")
PINNED = re.compile(r"[a-z/-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}")
WITHOUT_DEFAULT = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
OWN_IMAGE = re.compile(r"([a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?)/(?:[\w.-]+/)*edgewright[\w/.-]*[:@]")
"""The registry in the name of an image of ours."""
RESERVED_NAME = re.compile(r"(?:[a-z0-9-]+\.)*example\.(?:com|org)(?::\d+)?|192\.0\.2\.\d+(?::\d+)?")
"""What nobody can register (RFC 2606, RFC 5737)."""


def _known_variables() -> set[str]:
    prefix = Settings.model_config["env_prefix"]
    return {f"{prefix}{name}".upper() for name in Settings.model_fields}


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    """``docker-compose.yml``, with its anchors resolved."""
    parsed: dict[str, Any] = yaml.safe_load((root / "docker-compose.yml").read_text("utf-8"))
    return parsed


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> list[str]:
    """The instructions of the Dockerfile, continued lines joined, comments left out."""
    text = (root / "Dockerfile").read_text("utf-8")
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["docker-compose.yml", "Dockerfile"])
def test_each_variable_in_a_container_file_is_a_setting(root: Path, name: str) -> None:
    used = set(VARIABLE.findall((root / name).read_text("utf-8")))
    assert used
    assert used - _known_variables() == set()


def test_each_variable_in_a_document_is_known(documents: list[Path]) -> None:
    of_commands = {f"EDGEWRIGHT_{name}".upper() for name in ClientSettings.model_fields}
    known = _known_variables() | BESIDE_SETTINGS | set(agent_settings.VARIABLES) | of_commands
    named = {(path.name, name) for path in documents for name in VARIABLE.findall(path.read_text("utf-8"))}
    assert {pair for pair in named if pair[1] not in known} == set()


def test_the_environment_in_the_compose_file_makes_valid_settings(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"EDGEWRIGHT_EXTERNAL_URL": "https://edgewright.example.com", "POSTGRES_PASSWORD": "s3cret"}
    for name, value in compose["services"]["gateway"]["environment"].items():
        monkeypatch.setenv(name, _interpolate(value, answers))
    settings = Settings()
    assert settings.external_url == "https://edgewright.example.com"
    assert settings.effective_database_url == "postgresql+asyncpg://edgewright:s3cret@postgres:5432/edgewright"
    assert settings.temporal_address == "temporal:7233"
    assert settings.demo is False
    assert settings.allow_plain_http is False


def _interpolate(value: str, answers: dict[str, str]) -> str:
    """What compose makes of ``${NAME:-default}`` and ``${NAME:?sentence}``."""

    def answer(match: re.Match[str]) -> str:
        return answers.get(match["name"], match["text"] if match["kind"] == "-" else "")

    return re.sub(r"\$\{(?P<name>[A-Z_]+):(?P<kind>[-?])(?P<text>[^}]*)\}", answer, value)


def test_gateway_and_worker_share_one_configuration(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["gateway"]["environment"] == services["worker"]["environment"] == services["init"]["environment"]
    assert services["gateway"]["volumes"] == services["worker"]["volumes"] == services["init"]["volumes"]


def test_no_secret_has_a_default(compose: dict[str, Any]) -> None:
    secrets = {
        f"{service}.{name}": value
        for service, definition in compose["services"].items()
        for name, value in definition.get("environment", {}).items()
        if (SECRET_NAME.search(name) and name != NAME_OF_A_SECRET) or ("://" in value and "@" in value)
    }
    assert secrets
    assert {name: value for name, value in secrets.items() if not WITHOUT_DEFAULT.search(value)} == {}


def test_no_published_default_has_edges_pull_the_agent_from_elsewhere(
    root: Path, compose: dict[str, Any], dockerfile: list[str], documents: list[Path]
) -> None:
    """docs/adr/0023: whoever registers a name that nobody owns decides what runs on edges."""
    assert Settings.model_fields["agent_image"].default is None
    services = [each["environment"] for each in compose["services"].values() if "environment" in each]
    given = {each["EDGEWRIGHT_AGENT_IMAGE"] for each in services if "EDGEWRIGHT_AGENT_IMAGE" in each}
    assert given == {"${EDGEWRIGHT_AGENT_IMAGE:-}"}
    assert not [line for line in dockerfile if "EDGEWRIGHT_AGENT_IMAGE" in line]
    examples = [path for path in (root / "docs" / "examples").rglob("*") if path.is_file()]
    texts = [path.read_text("utf-8") for path in (*documents, *examples, root / "edgewright" / "settings.py")]
    named = {host for text in texts for host in OWN_IMAGE.findall(text)}
    assert named, "the pattern finds nothing any more"
    assert [host for host in named if not RESERVED_NAME.fullmatch(host)] == []
    assert OWN_IMAGE.findall("image: ghcr.io/somebody/edgewright-agent:1.2.3") == ["ghcr.io"]


def test_nothing_but_loopback_is_published_and_temporals_port_not_at_all(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    assert [port for port in published if port.endswith(":7233")] == []


def test_no_browser_gets_to_temporal_but_through_the_guard_of_its_web_ui(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["temporal"]["environment"]["FRONTEND_HTTP_PORT"] == "0", "the server speaks gRPC and no HTTP"
    assert "ports" not in services["temporal-ui"]
    hidden = services["temporal-ui"]["environment"]["TEMPORAL_UI_PORT"]
    assert int(hidden) in BLOCKED
    guard = services["web-ui"]["command"]
    assert guard[guard.index("--upstream") + 1] == f"temporal-ui:{hidden}"


def test_each_service_is_pinned_waited_for_and_kept(compose: dict[str, Any]) -> None:
    services, volumes = compose["services"], compose["volumes"]
    for definition in services.values():
        assert re.search(r":\d", definition["image"]), definition["image"]
        ours = definition["image"].startswith("edgewright:")
        assert ours or PINNED.fullmatch(definition["image"]), "a tag may be moved to another image"
        waits = definition.get("depends_on", {})
        for name, wait in waits.items() if isinstance(waits, dict) else ():
            healthy = wait["condition"] == "service_healthy"
            assert not healthy or "test" in services[name]["healthcheck"], name
        named = {volume.split(":")[0] for volume in definition.get("volumes", [])}
        assert named <= set(volumes)


@pytest.mark.parametrize(
    ("service", "program"),
    [("temporal", "temporal-server"), ("temporal-schema", "temporal-sql-tool"), ("temporal-ui", "temporal-ui")],
)
def test_the_compose_file_has_the_versions_that_the_tests_run(
    compose: dict[str, Any], service: str, program: str
) -> None:
    _, _, tag = compose["services"][service]["image"].partition("@")[0].partition(":")
    assert tag == PROGRAMS[program].version.lstrip("v")


def test_the_image_is_built_from_pinned_images_only(dockerfile: list[str]) -> None:
    bases = {line.split()[1] for line in dockerfile if line.startswith("FROM")}
    assert len(bases) == 1, "both stages have the same Python"
    assert all(PINNED.fullmatch(base) for base in bases), "a tag may be moved to another image"


def test_each_pinned_image_is_among_those_whose_platforms_can_be_asked_for(
    root: Path, compose: dict[str, Any], dockerfile: list[str]
) -> None:
    """``make images`` asks; here is no registry."""
    used = {definition["image"] for definition in compose["services"].values()}
    used |= {line.split()[1] for line in dockerfile if line.startswith("FROM")}
    assert {image for image in used if "@" in image} == set(pinned_images(root))
    assert len(pinned_images(root)) == 5


def test_a_digest_of_one_platform_is_told_from_an_index_of_all() -> None:
    platforms = [{"platform": {"os": "linux", "architecture": each}} for each in ("amd64", "arm64", "s390x")]

    def said(**manifest: object) -> str:
        content = json.dumps(manifest).encode()
        return complaint(f"x:1@sha256:{hashlib.sha256(content).hexdigest()}", content) or "fine"

    index = "application/vnd.oci.image.index.v1+json"
    assert said(mediaType=index, manifests=platforms) == "fine"
    assert said(mediaType=index, manifests=platforms[:1]).endswith("there is no image for linux/arm64")
    assert "of one platform's image" in said(mediaType="application/vnd.oci.image.manifest.v1+json", config={})
    assert "another digest" in (complaint(f"x:1@sha256:{'0' * 64}", b"{}") or "")


def test_the_image_runs_as_somebody_and_tells_its_health(dockerfile: list[str]) -> None:
    last_stage = dockerfile[max(number for number, line in enumerate(dockerfile) if line.startswith("FROM")) :]
    (user,) = [line.split()[1] for line in last_stage if line.startswith("USER")]
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    assert any(line.startswith("HEALTHCHECK") and "/healthz" in line for line in last_stage)
    assert any(line.startswith("RUN") and " git " in f"{line} " for line in last_stage)


def test_the_image_runs_what_edgewright_up_runs(dockerfile: list[str]) -> None:
    """That the command starts a gateway is shown by tests/real/production, which runs it."""
    (command,) = [json.loads(line.removeprefix("CMD")) for line in dockerfile if line.startswith("CMD")]
    assert [sys.executable, *command[1:]] == gateway_part(Settings()).command


def test_all_that_the_image_copies_exists_and_reaches_the_builder(root: Path, dockerfile: list[str]) -> None:
    sources = [
        source
        for line in dockerfile
        if line.startswith("COPY") and "--from" not in line
        for source in line.split()[1:-1]
    ]
    let_in = {line[1:] for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert [source for source in sources if not (root / source).exists()] == []
    assert set(sources) == let_in


def test_image_and_makefile_use_the_same_uv(root: Path) -> None:
    image = re.search(r"uv==([\d.]+)", (root / "Dockerfile").read_text("utf-8"))
    script = re.search(r"^uv_version=([\d.]+)$", (root / "bin" / "make-environment").read_text("utf-8"), re.MULTILINE)
    assert image is not None
    assert script is not None
    assert image[1] == script[1]


def test_all_that_the_image_installs_is_there_for_arm64(root: Path) -> None:
    """Without a wheel the build would need a compiler, which its base image lacks."""
    locked = {one["name"]: one for one in tomllib.loads((root / "uv.lock").read_text("utf-8"))["package"]}
    wanted, found = ["edgewright"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            extras = locked[name].get("optional-dependencies", {}).values()
            wanted += [one["name"] for group in (locked[name].get("dependencies", ()), *extras) for one in group]
    assert len(found) > 40
    usable = re.compile(r"-(cp312-cp312|cp3\d+-abi3|py3-none)-manylinux[^/]*_aarch64|-none-any\.whl")
    missing = [
        name
        for name in found - {"edgewright"}
        if not any(usable.search(wheel["url"]) for wheel in locked[name].get("wheels", ()))
    ]
    assert missing == []
