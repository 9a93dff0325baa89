"""What the bootstrap script left, and what the environment says."""

from base64 import b64encode

import pytest

from edgewright.agent.attachment import Attachment, read_attachment
from edgewright.agent.settings import LOOK_SECONDS, SEALING_URL, AgentSettings, read_settings
from edgewright.errors import Invalid, Stalled

PLAIN = {"username": "u", "password": "ewa_secret", "url": "https://c.example/", "uuid": "u", "generation": "2"}


def encoded(**changed: str) -> dict[str, str]:
    return {key: b64encode(value.encode()).decode() for key, value in {**PLAIN, **changed}.items()}


def test_the_secret_says_who_the_edge_is_and_where_its_centre() -> None:
    found = read_attachment(encoded())
    assert found == Attachment("u", "ewa_secret", "https://c.example", "u", 2, None)
    assert read_attachment(encoded(**{"ca.crt": "PEM"})).authority == "PEM"


def test_a_password_is_not_printed() -> None:
    assert "ewa_secret" not in repr(read_attachment(encoded()))


@pytest.mark.parametrize("key", [*PLAIN])
def test_what_is_missing_is_named(key: str) -> None:
    content = encoded()
    del content[key]
    with pytest.raises(Stalled) as refusal:
        read_attachment(content)
    assert (refusal.value.code, refusal.value.where) == ("attachment_malformed", key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", "ftp://x"),
        ("url", "https://"),
        ("url", "https://[::1"),
        ("url", "https://centre\n.example"),
        ("url", "https://centre.example:https"),
        ("url", "https://operator:password@centre.example"),
        ("generation", "two"),
        ("generation", "²"),
    ],
)
def test_what_cannot_be_used_is_named(key: str, value: str) -> None:
    with pytest.raises(Stalled) as refusal:
        read_attachment(encoded(**{key: value}))
    assert refusal.value.where == key


def test_base64_that_is_none_is_named() -> None:
    with pytest.raises(Stalled) as refusal:
        read_attachment({**encoded(), "password": "%%%"})
    assert refusal.value.where == "password"


def test_an_empty_environment_has_defaults() -> None:
    assert read_settings({}) == AgentSettings(None, SEALING_URL, LOOK_SECONDS, "INFO")
    assert read_settings({"EDGEWRIGHT_AGENT_NAMESPACE": "", "EDGEWRIGHT_LOG_LEVEL": ""}) == read_settings({})


def test_each_setting_has_its_variable() -> None:
    found = read_settings(
        {
            "EDGEWRIGHT_AGENT_NAMESPACE": "edge",
            "EDGEWRIGHT_AGENT_SEALING_URL": "http://s:8080/",
            "EDGEWRIGHT_AGENT_LOOK_SECONDS": "2.5",
            "EDGEWRIGHT_LOG_LEVEL": "DEBUG",
            "EDGEWRIGHT_AGENT_RUNS": "registry.example.com/edgewright:1",
        }
    )
    assert found == AgentSettings("edge", "http://s:8080", 2.5, "DEBUG", "registry.example.com/edgewright:1")


def test_an_image_that_no_registry_would_name_so_is_not_reported() -> None:
    assert read_settings({"EDGEWRIGHT_AGENT_RUNS": "a" * 601}).image is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EDGEWRIGHT_LOG_LEVEL", "LOUD"),
        ("EDGEWRIGHT_AGENT_SEALING_URL", "sealed-secrets"),
        ("EDGEWRIGHT_AGENT_SEALING_URL", "http://sealed-secrets:port"),
        ("EDGEWRIGHT_AGENT_LOOK_SECONDS", "0"),
        ("EDGEWRIGHT_AGENT_LOOK_SECONDS", "nan"),
        ("EDGEWRIGHT_AGENT_LOOK_SECONDS", "often"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read_settings({name: value})
    assert refusal.value.where == name
