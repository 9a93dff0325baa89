"""`edgewright cluster`: everything that an operator does with clusters, over HTTP."""

import typer

from edgewright.cli.commands import (
    cluster_check_in,
    cluster_creation,
    cluster_edge,
    cluster_ending,
    cluster_verbs,
    cluster_views,
)
from edgewright.cli.commands.options import example

app = typer.Typer(no_args_is_help=True)

_LIFE, _SIGHT, _EDGE, _STEERING = "Life", "Sight", "Edge", "Steering"

for _name, _command, _panel, _example in (
    ("create", cluster_creation.create, _LIFE, "cluster create press-shop --label site=sheffield --wait"),
    ("wait", cluster_creation.wait, _LIFE, "cluster wait press-shop --for available --timeout 10m"),
    ("recreate", cluster_creation.recreate, _LIFE, "cluster recreate press-shop --new-hardware --wait"),
    ("delete", cluster_ending.delete, _LIFE, "cluster delete press-shop --deadline 12h"),
    ("undelete", cluster_ending.undelete, _LIFE, "cluster undelete press-shop"),
    ("list", cluster_views.list_clusters, _SIGHT, "cluster list --label site=sheffield --sort -last_heard"),
    ("show", cluster_views.show, _SIGHT, "cluster show press-shop"),
    ("timeline", cluster_views.timeline, _SIGHT, "cluster timeline press-shop --follow"),
    ("bootstrap", cluster_edge.bootstrap, _EDGE, "cluster bootstrap press-shop --expires-in 2h"),
    ("uninstall-script", cluster_edge.uninstall_script, _EDGE, "cluster uninstall-script"),
    ("accept", cluster_edge.accept, _EDGE, "cluster accept press-shop"),
    ("reject", cluster_edge.reject, _EDGE, "cluster reject press-shop"),
    ("rotate", cluster_edge.rotate, _EDGE, "cluster rotate press-shop --role flux"),
    (
        "check-in",
        cluster_check_in.check_in,
        _EDGE,
        "cluster check-in press-shop 'Mon-Fri 22:00-06:00' --time-zone Europe/London",
    ),
    ("certificate", cluster_verbs.certificate, _STEERING, f"cluster certificate press-shop {'9f' * 32}"),
    ("pause", cluster_verbs.pause, _STEERING, "cluster pause press-shop --reason 'change freeze until Monday'"),
    ("resume", cluster_verbs.resume, _STEERING, "cluster resume press-shop"),
    ("retry", cluster_verbs.retry, _STEERING, "cluster retry press-shop create_repository"),
    ("skip", cluster_verbs.skip, _STEERING, "cluster skip press-shop await_goodbye --reason 'scrapped hardware'"),
):
    app.command(_name, rich_help_panel=_panel, epilog=example(_example))(_command)
