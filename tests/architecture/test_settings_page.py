"""docs/settings.md says what the programs read."""

from pathlib import Path

import pytest

from edgewright.agent.settings import VARIABLES, AgentSettings, read_settings
from edgewright.cli.client_settings import ClientSettings
from edgewright.settings import Settings
from tools.settings_page import COMMAND, EXAMPLES, page, variables


def test_the_page_is_current(root: Path) -> None:
    assert (root / "docs" / "settings.md").read_text("utf-8") == page(), f"run: {COMMAND}"


def test_every_example_is_taken_and_says_another_value_than_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (Settings, ClientSettings):
        for variable in variables(model):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    untouched = [Settings(), ClientSettings()]
    for variable in {*variables(Settings), *variables(ClientSettings)}:
        monkeypatch.setenv(variable, EXAMPLES[variable])
    for before, after in zip(untouched, [Settings(), ClientSettings()], strict=True):
        same = {name for name, value in after if value == getattr(before, name)}
        assert same == set()
    agent = read_settings({variable: EXAMPLES[variable] for variable in VARIABLES})
    assert not {name for name in AgentSettings.__slots__ if getattr(agent, name) == getattr(AgentSettings(), name)}


def test_no_example_is_left_of_a_setting_that_is_gone() -> None:
    assert set(EXAMPLES) == {*variables(Settings), *variables(ClientSettings), *VARIABLES}
