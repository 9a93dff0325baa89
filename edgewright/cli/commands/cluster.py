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

app = typer.Typer(no_args_is_help=True)

for _command in (
    *cluster_creation.COMMANDS,
    *cluster_ending.COMMANDS,
    *cluster_views.COMMANDS,
    *cluster_edge.COMMANDS,
    *cluster_check_in.COMMANDS,
    *cluster_verbs.COMMANDS,
):
    _command.join(app)
