"""`doctor` names the clusters whose stored values their chart does not take any more."""

import json
from pathlib import Path
from typing import Any

import pytest
from database_stores import ACTOR, Store

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.cli import values_checks as checked
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage
from edgewright.settings import Settings

SCHEMA = "edge-cluster/values.schema.json"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def git(settings: Settings) -> BareGitServer:
    git = BareGitServer(settings.effective_git_root)
    publish_charts(git, charts_path(), SealedSecretsChart())
    return git


async def findings(store: Store, settings: Settings) -> dict[str, Check]:
    checks = checked.values_checks(
        store.database, store.config, BareGitServer(settings.effective_git_root), settings.effective_external_url
    )
    return {check.name: check async for check in checks}


def push(git: BareGitServer, schema: bytes) -> None:
    head = git.head(REPOSITORY_HELM_CHARTS)
    message = CommitMessage(subject="Our own", actor="test")
    git.commit(REPOSITORY_HELM_CHARTS, {SCHEMA: schema}, message, expected_head=head)


async def test_nothing_is_said_of_values_that_fit(store: Store, settings: Settings, git: BareGitServer) -> None:
    await store.create("fits", values={"sealed-secrets": {"enabled": False}, "global": {"a": 1}})
    assert await findings(store, settings) == {}


async def test_clusters_whose_values_do_not_fit_are_named_without_what_they_hold(
    store: Store, settings: Settings, git: BareGitServer
) -> None:
    await store.create("fits")
    await store.create("removed", values={"replicas": 2})
    removed = await store.directory.find("removed")
    assert removed is not None
    await store.wishes.request_removal(removed, actor=ACTOR)
    for number in range(checked.MOST_NAMES + 2):
        await store.create(f"shop-{number:02}", values={"replicas": "s3cr3t"})
    found = (await findings(store, settings))[checked.NAME]
    assert found.verdict is CheckVerdict.WRONG
    assert "shop-00 (replicas: there is no such value); shop-01" in found.sentence
    assert found.sentence.endswith("; and 2 more.")
    assert not any(word in found.sentence for word in ("fits", "removed", "s3cr3t"))
    assert "docs/troubleshooting.md" in found.fix


async def test_a_misspelt_value_of_a_dependency_that_is_stored_is_named(
    store: Store, settings: Settings, git: BareGitServer
) -> None:
    await store.create("old", values={"sealed-secrets": {"enabld": True}})
    found = (await findings(store, settings))[checked.NAME]
    assert "old (sealed-secrets.enabld: there is no such value)" in found.sentence


async def test_a_schema_that_cannot_be_used_is_told(store: Store, settings: Settings, git: BareGitServer) -> None:
    await store.create("unchecked", values={"replicas": 2})
    push(git, b'{"type": 3}')
    [found] = (await findings(store, settings)).values()
    assert (found.name, found.verdict) == (checked.SCHEMA_NAME, CheckVerdict.WARNING)
    assert "edge-cluster: The chart's values.schema.json is no JSON Schema" in found.sentence


async def test_an_installation_without_charts_is_not_examined(store: Store, settings: Settings) -> None:
    await store.create("early", values={"replicas": 2})
    assert await findings(store, settings) == {}


async def test_looking_at_values_ends(
    store: Store, settings: Settings, git: BareGitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create("late", values={"replicas": 2})
    monkeypatch.setattr(checked, "MOST_SECONDS", 0.0)
    found = (await findings(store, settings))[checked.NAME]
    assert (found.verdict, "1 more" in found.sentence) == (CheckVerdict.WARNING, True)


async def test_a_chart_of_an_installations_own_decides(store: Store, settings: Settings, git: BareGitServer) -> None:
    schema: Any = json.loads((charts_path() / SCHEMA).read_text())
    schema["properties"]["replicas"] = {"type": "integer"}
    push(git, json.dumps(schema).encode())
    await store.create("own", values={"replicas": 2})
    assert await findings(store, settings) == {}
