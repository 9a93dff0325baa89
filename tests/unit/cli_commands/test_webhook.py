"""The webhook is set, shown without its secret, and removed."""

import json
from collections.abc import Callable

from command_line import CommandLine, ServedCentre

from edgewright.ports.notifications import Outcome
from edgewright.ports.operators import Permission

URL = "https://alerts.example.com/edgewright"


def test_stdout_has_the_secret_alone_and_nothing_shows_it_again(edgewright: CommandLine) -> None:
    made = edgewright.ok("webhook", "set", URL)
    secret = made.out.removesuffix("\n")
    assert secret.startswith("whsec_") and "\n" not in secret
    assert secret not in made.err
    shown = edgewright.ok("webhook", "show")
    assert URL in shown.out
    assert "Nothing was delivered yet." in shown.out
    assert secret not in shown.out + edgewright.ok("webhook", "show", "--json").out
    assert json.loads(edgewright.ok("webhook", "show", "--json").out)["url"] == URL


def test_what_waits_for_a_receiver_that_is_gone_is_shown_with_what_to_do(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    edgewright.ok("webhook", "set", URL)
    cluster = centre.create("press-shop")
    reports, notifications = centre.centre.ports.edge_reports, centre.centre.ports.notifications
    centre.do(
        reports.write_status(
            cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
        )
    )
    centre.do(notifications.collect())
    batch = centre.do(notifications.due(1))
    assert batch is not None
    gone = Outcome(batch.due[0].position, 410, "The receiver answered 410.")
    centre.do(notifications.settle(batch.webhook, [gone]))
    shown = edgewright.ok("webhook", "show").out
    assert "wants no more" in shown and "set the webhook again" in shown
    assert "1 notification waits. The receiver answered 410." in shown
    assert json.loads(edgewright.ok("webhook", "show", "--json").out)["stopped_at"]
    assert json.loads(edgewright.ok("webhook", "set", URL, "--json").out)["stopped_at"] is None


def test_removed_webhook_is_not_found(edgewright: CommandLine) -> None:
    edgewright.ok("webhook", "set", URL)
    assert edgewright.ok("webhook", "remove").out == "The webhook is removed.\n"
    for arguments in (["show"], ["remove"]):
        assert edgewright("webhook", *arguments).code == 3


def test_url_that_cannot_be_used_is_refused(edgewright: CommandLine) -> None:
    shown = edgewright("webhook", "set", "http://alerts.example.com/")
    assert (shown.code, shown.out) == (2, "")
    assert "https" in shown.err


def test_webhook_is_an_administrators_business(edgewright: CommandLine, token_file: Callable[..., str]) -> None:
    file = token_file(Permission.READ, Permission.CLUSTERS, Permission.SECRETS, Permission.PUSH)
    for arguments in (["show"], ["set", URL], ["remove"]):
        assert edgewright("webhook", *arguments, EDGEWRIGHT_TOKEN_FILE=file).code == 6
