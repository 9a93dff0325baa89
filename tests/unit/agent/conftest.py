"""A centre, or an API server, that answers what a test wants."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_centre import ScriptedCentre, scripted_centre


@pytest.fixture
def centre() -> Iterator[ScriptedCentre]:
    with scripted_centre() as centre:
        yield centre


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file of a ServiceAccount's token, as a kubelet keeps it new."""
    file = tmp_path / "token"
    file.write_text("first")
    return file


@pytest.fixture
def kubeconfig(centre: ScriptedCentre, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What ``KUBECONFIG`` names, where the scripted server stands for the API server."""
    named = {"name": "edge"}
    config = {
        "current-context": "edge",
        "contexts": [{**named, "context": {"cluster": "edge", "user": "edge"}}],
        "clusters": [{**named, "cluster": {"server": centre.url}}],
        "users": [{**named, "user": {"tokenFile": str(token)}}],
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(file))
    return file
