"""Clusters are created, deleted and recreated from the command line."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from command_line import CommandLine, ServedCentre, Terminal
from gateway_centre import STATUS_APP, fence_of

from edgewright.domain.cluster import Acceptance, AcceptancePolicy, Desired, Phase, StepName, Workloads
from edgewright.domain.projection import Residue
from edgewright.domain.wellknown import OBJECT_DEFAULT_CHART
from edgewright.ports.operators import Permission


def test_created_cluster_is_there_and_its_uuid_is_told(edgewright: CommandLine, centre: ServedCentre) -> None:
    shown = edgewright.ok("cluster", "create", "press-shop")
    assert shown.out == f"Created press-shop, {centre.uuid('press-shop')}.\n"


def test_creation_that_waits_ends_with_how_long_it_took(edgewright: CommandLine) -> None:
    shown = edgewright.ok("cluster", "create", "press-shop", "--wait")
    assert re.fullmatch(r"press-shop is ready after [\d.]+ s\.", shown.out.splitlines()[-1])
    assert "cluster bootstrap press-shop" in shown.err


def test_json_of_a_creation_is_the_documents_alone(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = json.loads(edgewright.ok("cluster", "create", "one", "--json").out)
    waited = json.loads(edgewright.ok("cluster", "create", "two", "--wait", "--json").out)
    assert (made["uuid"], made["name"]) == (str(centre.uuid("one")), "one")
    assert (waited["ready"], waited["phase"]) == (True, "AwaitingBootstrap")


def test_all_that_is_wished_reaches_the_cluster(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("replicas: 2\nimage: {tag: v1}\n")
    wish = ["--namespace", "factory", "--values", str(file), "--accept", "manual"]
    edgewright.ok("cluster", "create", "full", *wish, "--label", "site=sheffield", "--label", "line=4")
    edgewright.ok("cluster", "create", "bare", "--bare")
    row = centre.row(centre.uuid("full"))
    assert (row.spec.namespace, row.spec.values) == ("factory", {"replicas": 2, "image": {"tag": "v1"}})
    assert (row.settings.labels, row.settings.accept) == (
        {"site": "sheffield", "line": "4"},
        AcceptancePolicy.MANUAL,
    )
    assert centre.row(centre.uuid("bare")).spec.bare is True


def test_a_bare_cluster_gets_its_chart(edgewright: CommandLine, centre: ServedCentre) -> None:
    edgewright.ok("cluster", "create", "bare", "--bare", "--chart", str(OBJECT_DEFAULT_CHART))
    row = centre.row(centre.uuid("bare"))
    assert (row.spec.bare, row.spec.chart) == (True, OBJECT_DEFAULT_CHART)
    shown = edgewright.ok("cluster", "show", "bare").out
    assert re.search(rf"^chart +{OBJECT_DEFAULT_CHART}$", shown, re.MULTILINE)
    assert re.search(r"^bare +yes: the edge has its own Flux$", shown, re.MULTILINE)


def test_what_is_not_wished_is_left_to_the_gateway(edgewright: CommandLine, centre: ServedCentre) -> None:
    edgewright.ok("cluster", "create", "plain")
    row = centre.row(centre.uuid("plain"))
    assert (row.spec.namespace, row.spec.bare, row.settings.accept) == ("edgewright", False, AcceptancePolicy.AUTO)


@pytest.mark.parametrize(
    ("content", "suffix", "complaint"),
    [
        ("- a\n- list\n", ".yaml", "mapping"),
        ("a: [1\n", ".yaml", "line 2, column 1, is not YAML"),
        ('{"a": 1,}', ".json", "line 1, column"),
        ("when: 2031-02-03\n", ".yaml", "JSON cannot express"),
        ("a: &x [*x]\n", ".yaml", "JSON cannot express"),
        ("a: .nan\n", ".yaml", "JSON cannot express"),
        ("a: \x07\n", ".yaml", "JSON cannot express"),
    ],
)
def test_values_that_cannot_be_sent_are_wrong_usage(
    environment: dict[str, str | None], tmp_path: Path, content: str, suffix: str, complaint: str
) -> None:
    file = tmp_path / f"values{suffix}"
    file.write_text(content)
    shown = CommandLine(environment)("cluster", "create", "x", "--values", str(file))
    assert (shown.code, complaint in shown.err) == (2, True), shown


MISTAKES = (
    (["-Bad Name/../x"], 2, "no option -B"),
    (["Bad Name/../x @"], 2, "1 to 63 letters"),
    (["späti"], 2, "1 to 63 letters"),
    (["PRESS-shop"], 4, "Another cluster is called"),
    (["x", "--label", "site"], 2, "key=value"),
    (["x", "--label", "a=1", "--label", "a=2"], 2, "twice"),
    (["x", "--chart", "no-such-chart"], 2, "No Helm chart template"),
    (["x", "--values", "/nonexistent.yaml"], 2, "cannot be read"),
    (["x", "--accept", "maybe"], 2, "maybe"),
    (["x", "--wait", "--timeout", "soon"], 2, "duration"),
)


def test_mistake_at_creation_is_one_sentence(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    for arguments, code, sentence in MISTAKES:
        shown = edgewright("cluster", "create", *arguments)
        assert (shown.code, shown.out) == (code, ""), arguments
        assert sentence in shown.err, arguments
        assert "Traceback" not in shown.err
    assert centre.do(centre.centre.gateway.directory.find("x")) is None


# --- deletion ------------------------------------------------------------------------------------------------


def test_without_a_terminal_deletion_wants_yes(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = edgewright("cluster", "delete", "press-shop", typed="press-shop\n")
    assert (shown.code, shown.out) == (2, "")
    assert "--yes" in shown.err
    assert centre.row(made).desired is Desired.PRESENT


def test_deletion_shows_what_goes_with_the_cluster(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    centre.do(_put_status(centre, made, {"hosts": [{"hostname": "node-1"}, {"hostname": "node-2"}]}))
    shown = edgewright("cluster", "delete", "press-shop")
    assert "press-shop" in shown.err
    assert str(made) in shown.err
    assert "AwaitingBootstrap" in shown.err
    assert "2 (node-1, node-2)" in shown.err
    assert "secrets     none" in shown.err


@pytest.mark.parametrize("name", ["press-shop", "PRESS-SHOP "])
def test_typed_name_deletes(terminal: Terminal, centre: ServedCentre, name: str) -> None:
    made = centre.create("press-shop")
    shown = terminal("cluster", "delete", str(made), typed=f"{name}\n")
    assert shown.code == 0, shown
    assert centre.row(made).desired is Desired.DELETED


@pytest.mark.parametrize("name", ["press", "", "yes"])
def test_another_name_deletes_nothing(terminal: Terminal, centre: ServedCentre, name: str) -> None:
    made = centre.create("press-shop")
    shown = terminal("cluster", "delete", "press-shop", typed=f"{name}\n")
    assert (shown.code, "Nothing was changed" in shown.err) == (1, True)
    assert centre.row(made).desired is Desired.PRESENT


def test_question_leaves_no_letter_on_stdout(terminal: Terminal, centre: ServedCentre, tmp_path: Path) -> None:
    made = centre.create("press-shop")
    file = tmp_path / "out.json"
    shown = terminal("cluster", "delete", "press-shop", "--json", typed="press-shop\n", out=file)
    assert shown.out.startswith("{\n")
    document = json.loads(shown.out)
    assert (document["uuid"], document["desired"], document["deletion"]["force"]) == (str(made), "deleted", False)


def test_wishes_of_a_deletion_reach_the_centre(edgewright: CommandLine, centre: ServedCentre) -> None:
    kept, forced = centre.create("kept"), centre.create("forced")
    edgewright.ok("cluster", "delete", "kept", "--yes", "--keep-workloads", "--deadline", "12h")
    edgewright.ok("cluster", "delete", "forced", "--yes", "--force")
    row = centre.row(kept)
    assert (row.workloads, row.force) == (Workloads.KEEP, False)
    assert row.deadline is not None
    asked = centre.do(centre.centre.ports.audit.timeline(kept))[-1].at
    assert abs((row.deadline - asked).total_seconds() - 12 * 3600) < 5
    assert centre.row(forced).force is True


def test_a_purge_is_warned_of_and_asked_for(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("alone")
    refused = edgewright("cluster", "delete", "alone", "--yes", "--purge")
    assert refused.code != 0 and "No edge of alone can answer, so nothing can be purged." in refused.err
    assert "can then be opened by nobody ever again" in refused.err
    impossible = edgewright("cluster", "delete", "alone", "--yes", "--purge", "--force")
    assert "A forced deletion does not wait for the edge" in impossible.err
    edgewright.ok("cluster", "delete", "alone", "--yes")


def test_a_deletion_without_a_purge_says_that_kind_and_keys_stay_and_what_takes_them(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    centre.create("alone")
    said = " ".join(edgewright("cluster", "delete", "alone", "--yes", "--purge").err.split())
    assert "the kind SealedSecret and the sealing keys go, unless somebody else uses them" in said
    assert "keys stay" not in said
    said = " ".join(edgewright.ok("cluster", "delete", "alone", "--yes").err.split())
    assert "On the edge, the kind SealedSecret and the sealing keys stay; --purge takes them" in said
    assert "cluster uninstall-script` prints, with --purge" in said


@pytest.mark.parametrize("deadline", ["31d", "tomorrow", "-1h"])
def test_deadline_that_makes_no_sense_deletes_nothing(
    edgewright: CommandLine, centre: ServedCentre, deadline: str
) -> None:
    made = centre.create("press-shop")
    assert edgewright("cluster", "delete", "press-shop", "--yes", f"--deadline={deadline}").code == 2
    assert centre.row(made).desired is Desired.PRESENT


def test_deletion_that_waits_ends_when_the_cluster_is_gone_and_names_the_residue(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    made = centre.create("press-shop")

    async def workflow(cluster: UUID) -> None:
        row = await centre.centre.row(cluster)
        if row.desired is Desired.DELETED and not row.closed:
            residue = Residue(step=StepName.AWAIT_GOODBYE, reason="the deadline has passed", since=row.created_at)
            await centre.centre.project(cluster, phase=Phase.DELETED, ready=False, residue=(residue,))
            await centre.centre.steps.remove_central_entries(fence_of(row), StepName.REMOVE_SETUP_STATUS)

    centre.centre.fleet.on_nudge = workflow
    shown = edgewright.ok("cluster", "delete", "press-shop", "--yes", "--wait")
    assert shown.out.splitlines()[-1].startswith("press-shop is deleted after ")
    assert "Left behind at await_goodbye: the deadline has passed" in shown.err
    assert centre.row(made).closed


def test_deletion_that_is_waited_for_in_vain_goes_on(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = edgewright("cluster", "delete", "press-shop", "--yes", "--wait", "--timeout", "0s")
    assert shown.code == 5
    assert "goes on at the centre" in shown.err
    assert centre.row(made).desired is Desired.DELETED


def test_deletion_is_taken_back(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    edgewright.ok("cluster", "delete", "press-shop", "--yes")
    assert edgewright.ok("cluster", "undelete", "press-shop").out == "The deletion of press-shop was cancelled.\n"
    assert centre.row(made).desired is Desired.PRESENT
    assert edgewright("cluster", "undelete", "press-shop").code == 4


# --- recreation ----------------------------------------------------------------------------------------------


def test_removed_cluster_is_found_by_name_and_recreated(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    centre.do(_remove(centre, made))
    assert centre.row(made).desired is Desired.REMOVED
    shown = edgewright.ok("cluster", "recreate", "Press-Shop", "--yes", "--wait")
    assert "press-shop is ready after " in shown.out
    assert centre.row(made).desired is Desired.PRESENT


@pytest.mark.parametrize(("answer", "generation", "code"), [("y", 2, 0), ("n", 1, 1), ("", 1, 1)])
def test_recreation_asks_first(
    terminal: Terminal, centre: ServedCentre, answer: str, generation: int, code: int
) -> None:
    made = centre.create("press-shop")
    shown = terminal("cluster", "recreate", "press-shop", "--new-hardware", typed=f"{answer}\n")
    assert shown.code == code, shown
    assert "secrets must be entered again" in shown.err
    assert centre.row(made).generation == generation


def test_recreation_without_a_terminal_wants_yes(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    assert edgewright("cluster", "recreate", "press-shop", typed="y\n").code == 2
    before = centre.row(made).commissioning
    edgewright.ok("cluster", "recreate", "press-shop", "--yes", "--namespace", "other", "--no-bare")
    row = centre.row(made)
    assert (row.commissioning, row.spec.namespace, row.acceptance) == (before + 1, "other", Acceptance.NONE)


async def _put_status(centre: ServedCentre, cluster: UUID, status: dict[str, object]) -> None:
    admin = await centre.centre.operator(Permission.ADMIN)
    answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=status)
    assert answer.is_success, answer.text


async def _remove(centre: ServedCentre, cluster: UUID) -> None:
    await centre.centre.gateway.wishes.request_removal(cluster, actor="test")
    await centre.centre.fleet.nudge(cluster)
