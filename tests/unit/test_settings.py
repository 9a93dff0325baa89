"""Settings that somebody mistyped, or that were made to do more than they say."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from edgewright.settings import Settings

URLS = ("external_url", "next_external_url", "temporal_ui_url")


@pytest.mark.parametrize("name", URLS)
@pytest.mark.parametrize(
    "url",
    [
        "https://x.example.com/'; reboot; '",
        "https://x.example.com/$(reboot)",
        "https://x.example.com/`reboot`",
        'https://x.example.com/"',
        "https://x.example.com/a\\b",
        "https://x.example.com/a b",
        "https://x.example.com/\nb",
        "https://x.example.com/a#b",
        "https://x.example.com/<script>",
        "https://x'.example.com",
        "https://somebody@x.example.com",
        "https://x.example.com?a=b",
        "https://x.example.com:99999",
        "https://",
        "ftp://x.example.com",
    ],
)
def test_url_that_a_shell_would_read_as_more_is_refused(name: str, url: str) -> None:
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: url})


@pytest.mark.parametrize(
    "url",
    [
        "https://edge.example.com",
        "HTTPS://Edge.example.com:8443/some/path-1_2~3",
        "https://192.0.2.7:8484",
        "https://[2001:db8::1]:8484",
        "http://127.0.0.1:8484",
        "https://centre_1.example.com./%7Ex",
    ],
)
def test_url_of_every_usual_form_is_taken(url: str) -> None:
    assert Settings.model_validate({"external_url": f"{url}/"}).external_url == url


@pytest.mark.parametrize("given", ["proxy.example.com", "10.0.0.0/99", "10.0.0.5/8", "*"])
def test_trusted_proxies_are_addresses_and_networks(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("EDGEWRIGHT_TRUSTED_PROXIES", f"10.0.0.5, {given}")
    with pytest.raises(ValidationError, match="IP addresses and networks"):
        Settings()


def test_trusted_proxies_are_named_with_commas_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_TRUSTED_PROXIES", "10.0.0.5, 192.168.7.0/24,::1")
    assert Settings().trusted_proxies == ("10.0.0.5/32", "192.168.7.0/24", "::1/128")


def test_credentials_are_old_at_90_days_and_never_at_none() -> None:
    assert Settings().credential_age == timedelta(days=90)
    assert Settings(credential_days=0).credential_age is None
