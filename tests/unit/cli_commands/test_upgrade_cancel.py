"""Calling upgrades off: what is under way ends, what an edge has proven stays, and everybody is told."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from scripted_centre import ReceivedRequest, Reply
from upgrading_centre import NAMES, NEW, OLD, UpgradeDesk, UpgradingCentre, outcomes, problem, upgrade_desk, uuid_of

from edgewright.cli.failures import ExitCode

CALLED_OFF = f"agent no longer upgraded to {NEW}: Called off by token:ann; the edge goes back to {OLD}."


@pytest.fixture
def desk(environment: dict[str, str | None], tmp_path: Path, quick: None) -> Iterator[UpgradeDesk]:
    """Twenty edges; the upgrades of five agents are under way, and one of Flux."""
    with upgrade_desk(environment, tmp_path, UpgradingCentre(random.Random(7), holds=True)) as opened:
        assert opened("agent", "upgrade", *NAMES[:5], "--no-wait", "--yes").code == 0
        assert opened("flux", "upgrade", NAMES[5], "--no-wait", "--yes").code == 0
        yield opened


def asked_to_cancel(desk: UpgradeDesk) -> list[ReceivedRequest]:
    return [each for each in desk.centre.asked if each.method == "DELETE"]


def test_all_that_is_under_way_is_called_off_and_there_is_nothing_left(desk: UpgradeDesk) -> None:
    shown = desk("upgrade", "cancel", "--all", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.states() == dict.fromkeys(NAMES[:6], "cancelled")
    told = outcomes(shown.out)
    assert told.pop(NAMES[5]).startswith("flux no longer upgraded to v2.7.3: Called off by ")
    assert told == dict.fromkeys(NAMES[:5], CALLED_OFF)
    assert shown.out.splitlines()[-1] == "6 upgrades: 6 called off."
    again = desk("upgrade", "cancel", "--all", "--yes")
    assert (again.code, again.out) == (0, "")
    assert again.err == "No such upgrade is under way.\n"
    assert len(asked_to_cancel(desk)) == 6


def test_only_the_upgrades_of_one_component(desk: UpgradeDesk) -> None:
    shown = desk("upgrade", "cancel", "--all", "--component", "flux", "--yes")
    assert (shown.code, list(outcomes(shown.out))) == (0, [NAMES[5]])
    assert [urlsplit(each.path).query for each in asked_to_cancel(desk)] == ["component=flux"]
    assert [desk.centre.states()[name] for name in NAMES[:6]] == ["under_way"] * 5 + ["cancelled"]


def test_only_those_of_clusters_with_a_label(desk: UpgradeDesk) -> None:
    desk.centre.names[:] = NAMES[2:4]  # which the centre says have the label
    for name in ("--label", "-l"):
        shown = desk("upgrade", "cancel", name, "site=sheffield", "--yes")
        assert shown.code == 0, shown
    assert [name for name, state in desk.centre.states().items() if state == "cancelled"] == NAMES[2:4]
    assert any("label=site%3Dsheffield" in each.path for each in desk.centre.asked)


def test_named_clusters_are_not_asked_about(desk: UpgradeDesk) -> None:
    shown = desk("upgrade", "cancel", NAMES[0])
    assert (shown.code, shown.out, shown.err) == (0, f"{NAMES[0]}  {CALLED_OFF}\n", "")
    assert list(desk.centre.states().values()).count("cancelled") == 1


def test_what_is_proven_stays_and_says_so(desk: UpgradeDesk) -> None:
    desk.centre.upgrades[NAMES[1]] |= {"state": "done"}
    alone = desk("upgrade", "cancel", NAMES[1], "--json")
    assert (alone.code, alone.out) == (ExitCode.REFUSED, "")
    assert json.loads(alone.err.splitlines()[-1])["code"] == "upgrade_not_under_way"
    several = desk("upgrade", "cancel", *NAMES[:3])
    assert several.code == ExitCode.REFUSED
    assert f"{NAMES[1]}  left as it is: {NAMES[1]} has agent {NEW} already" in several.err
    assert f"1 of 3 upgrades was not called off: {NAMES[1]}." in several.err
    assert [desk.centre.states()[name] for name in NAMES[:3]] == ["cancelled", "done", "cancelled"]


class LiveCentre(UpgradingCentre):
    """One whose upgrades go on while somebody calls them off."""

    def _answer(self, request: ReceivedRequest) -> Reply:
        if request.method == "DELETE" and self.upgrades[NAMES[0]]["state"] == "under_way":
            self.upgrades[NAMES[1]] |= {"state": "done"}
            self.upgrades[NAMES[6]] = {**self.upgrades[NAMES[0]], "name": NAMES[6], "cluster": uuid_of(NAMES[6])}
        return super()._answer(request)


def test_what_begins_or_ends_meanwhile_is_dealt_with(
    environment: dict[str, str | None], tmp_path: Path, quick: None
) -> None:
    with upgrade_desk(environment, tmp_path, LiveCentre(random.Random(7), holds=True)) as desk:
        assert desk("agent", "upgrade", *NAMES[:2], "--no-wait", "--yes").code == 0
        shown = desk("upgrade", "cancel", "--all", "--yes")
        assert shown.code == 0, shown
        assert desk.centre.states() == {NAMES[0]: "cancelled", NAMES[1]: "done", NAMES[6]: "cancelled"}
        assert shown.out.splitlines()[-1] == "3 upgrades: 2 called off, 1 ended before."


def test_nothing_is_called_off_for_many_without_a_yes(desk: UpgradeDesk) -> None:
    piped = desk("upgrade", "cancel", "--all")
    assert (piped.code, "Use --yes in scripts." in piped.err) == (2, True)
    refused = desk.at_a_terminal("upgrade", "cancel", "--all", typed="n\n")
    assert (refused.code, "Nothing was changed." in refused.out) == (1, True)
    assert f"Call off 6 upgrades: {NAMES[0]}, " in refused.out
    assert asked_to_cancel(desk) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (NAMES[0], "--all"),
        ("--label", "site=x", "--all"),
        ("--label", "site"),
        ("--component", "kubelet", "--all"),
    ],
    ids=" ".join,
)
def test_what_names_no_upgrade_is_wrong_usage(desk: UpgradeDesk, arguments: tuple[str, ...]) -> None:
    shown = desk("upgrade", "cancel", *arguments, "--yes")
    assert (shown.code, shown.out) == (2, ""), shown
    assert asked_to_cancel(desk) == []


def test_a_centre_that_cannot_call_off_is_told_of_once(desk: UpgradeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_name: str, _component: str | None) -> Reply:
        return problem("method_not_allowed", "DELETE is not something that can be done at this path.", 405)

    monkeypatch.setattr(desk.centre, "_cancel", answer)
    shown = desk("upgrade", "cancel", "--all", "--yes")
    assert (shown.code, shown.out) == (ExitCode.REFUSED, "")
    assert "This centre is of a version that cannot call upgrades off." in shown.err
    assert len(asked_to_cancel(desk)) == 1


def test_machines_get_one_document_for_each_upgrade(desk: UpgradeDesk) -> None:
    shown = desk("upgrade", "cancel", *NAMES[:2], "--json")
    assert [json.loads(line)["state"] for line in shown.out.splitlines()] == ["cancelled"] * 2
    assert desk("upgrade", "cancel", NAMES[2], "-o", "name").out == f"{NAMES[2]}\n"
    assert json.loads(desk("upgrade", "cancel", NAMES[3], "-o", "json").out)["name"] == NAMES[3]
