"""Whom another address concerns is said before it is in force."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.initialise import initialise_storage
from edgewright.cli.share import attached
from edgewright.cli.share.attached import Affected, affected_edges, warn_of_affected
from edgewright.cli.share.authority import ensure_certificates
from edgewright.cli.share.choice import Sharing
from edgewright.domain.reach import Reach, ca_digest
from edgewright.ports.edge_reports import Elsewhere
from edgewright.settings import Settings

OLD, NEW = "10.0.0.5", "centre.example.com"


def edge(name: str, url: str | None, ca: str | None = None) -> Elsewhere:
    return Elsewhere(uuid4(), name, None if url is None else Reach(url, ca), None)


def affected(monkeypatch: pytest.MonkeyPatch, home: Path, edges: Sequence[Elsewhere], sharing: Sharing) -> Affected:
    async def found(_settings: Settings) -> Sequence[Elsewhere]:
        return edges

    monkeypatch.setattr(attached, "_attached", found)
    return affected_edges(Settings(home=home), sharing)


def test_who_can_still_ask_moves_and_the_others_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ca_digest(ensure_certificates(tmp_path, [OLD], datetime.now(UTC)).authority.read_text())
    edges = [
        edge("there", f"https://{NEW}:8484", ours),
        edge("former", f"https://{OLD}:8484", ours),
        edge("plain", f"http://{OLD}:8484"),
        edge("elsewhere", "https://10.0.0.6:8484", ours),
        edge("other-authority", f"https://{OLD}:8484", "0" * 64),
        edge("silent", None),
    ]
    shared = affected(monkeypatch, tmp_path, edges, Sharing(NEW, (OLD,)))
    assert [each.name for each in shared.moving] == ["former"]
    assert [each.name for each in shared.cut_off] == ["plain", "elsewhere", "other-authority", "silent"]
    taken_back = affected(monkeypatch, tmp_path, edges, Sharing(None, (NEW, OLD)))
    assert ([*taken_back.moving], len(taken_back.cut_off)) == ([], len(edges))


def test_a_centre_that_was_never_shared_cuts_off_who_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = affected(monkeypatch, tmp_path, [edge("local", "http://127.0.0.1:8484")], Sharing(NEW))
    assert [each.name for each in found.cut_off] == ["local"]


def told(affected: Affected) -> tuple[list[str], list[str]]:
    said: list[str] = []
    asked: list[str] = []
    warn_of_affected(affected, said.append, asked.append)
    return said, asked


def test_only_edges_that_are_cut_off_need_a_yes() -> None:
    assert told(Affected((), ())) == ([], [])
    former = [edge("a", f"https://{OLD}:8484")]
    said, asked = told(Affected(former, ()))
    assert (len(said), asked) == (1, [])
    assert f"1 edge reaches this centre under the former address: a (https://{OLD}:8484)." in said[0]
    many = [edge(f"edge-{number}", None) for number in range(12)]
    said, asked = told(Affected((), many))
    assert asked == ["Cut them off?"]
    assert "12 edges reach this centre in a way that ends now: edge-0 (URL unknown)" in said[0]
    assert "edge-9 (URL unknown) and 2 more." in said[0]


def test_a_home_without_edges_has_nobody_to_warn(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    nobody = Affected((), ())
    fresh = affected_edges(settings, Sharing(NEW))
    assert ([*fresh.moving], [*fresh.cut_off]) == ([*nobody.moving], [*nobody.cut_off])
    (tmp_path / "edgewright.db").touch()  # a first start that was interrupted
    assert not affected_edges(settings, Sharing(NEW)).cut_off
    asyncio.run(initialise_storage(settings))
    assert not affected_edges(settings, Sharing(NEW)).cut_off


def test_a_database_of_another_version_is_not_guessed_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path)
    asyncio.run(initialise_storage(settings))
    monkeypatch.setattr(attached, "known_revisions", lambda: ("0001", "9999"))
    with pytest.raises(CliError, match="of another version") as refused:
        affected_edges(settings, Sharing(NEW))
    assert refused.value.exit_code == ExitCode.REFUSED
