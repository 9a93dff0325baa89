"""What others wrote reaches the terminal without steering it."""

import json

import pytest

from edgewright.cli.commands.screen import show_json

STEERING = "\x1b[31m \x7f \x85 \x9b31m \u202e \u2066 \u200f \u2028 \ufeff \U000e0041 \ud800"


@pytest.mark.parametrize("indent", [2, None])
def test_json_holds_nothing_that_steers_a_terminal_and_means_the_same(
    capsys: pytest.CaptureFixture[str], indent: int | None
) -> None:
    document = {f"key {STEERING}": [f"value {STEERING}", "näch \U0001f600 漢字"]}
    show_json(document, indent=indent)
    shown = capsys.readouterr().out
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []
    assert "\\u009b31m" in shown
    assert "\\u202e" in shown
    assert "näch \U0001f600 漢字" in shown
    assert json.loads(shown) == document
