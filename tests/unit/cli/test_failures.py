"""A command that fails says what to do, and its exit code says of which kind the failure is."""

import errno

import pytest
from pydantic import ValidationError

from edgewright.cli.failures import ExitCode, of_product, of_settings, of_system
from edgewright.errors import Conflict, Forbidden, Invalid, NotFound, Refused, Stalled, Unauthenticated, Waiting
from edgewright.settings import Settings


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (Refused("no"), ExitCode.USAGE),
        (Conflict("no"), ExitCode.REFUSED),
        (Invalid("no"), ExitCode.USAGE),
        (Stalled("no"), ExitCode.REFUSED),
        (NotFound("no"), ExitCode.NOT_FOUND),
        (Unauthenticated("no"), ExitCode.NOT_ALLOWED),
        (Forbidden("no"), ExitCode.NOT_ALLOWED),
        (Waiting("no"), ExitCode.UNAVAILABLE),
    ],
)
def test_exit_code_follows_the_branch_of_the_error(error: Refused, exit_code: ExitCode) -> None:
    assert of_product(error).exit_code == exit_code


def test_hint_and_place_of_an_error_reach_the_reader() -> None:
    shown = of_product(Invalid("is not a port.", hint="Choose another.", where="port"))
    assert (shown.sentence, shown.hint) == ("port: is not a port.", "Choose another.")


def test_bad_settings_are_named_by_their_variables_and_never_by_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_GATEWAY_PORT", "marked-value")
    monkeypatch.setenv("EDGEWRIGHT_LOG_LEVEL", "marked-value")
    with pytest.raises(ValidationError) as caught:
        Settings()
    shown = of_settings(caught.value)
    assert "EDGEWRIGHT_GATEWAY_PORT must be a whole number" in shown.sentence
    assert "EDGEWRIGHT_LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR" in shown.sentence
    assert "marked-value" not in shown.sentence
    assert shown.exit_code == ExitCode.USAGE


def test_settings_that_contradict_each_other_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_EXTERNAL_URL", "http://edge.example.com")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert "EDGEWRIGHT_ALLOW_PLAIN_HTTP=1" in of_settings(caught.value).sentence


def test_full_disk_is_called_a_full_disk() -> None:
    shown = of_system(OSError(errno.ENOSPC, "No space left on device", "some/file"))
    assert shown.sentence == "The disk is full: some/file."
    assert shown.hint


def test_missing_rights_name_the_file() -> None:
    assert "some/file" in of_system(PermissionError(errno.EACCES, "Permission denied", "some/file")).sentence
