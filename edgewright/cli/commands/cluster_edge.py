"""How the edge of a cluster gets in: the bootstrap line, and the answer to who has registered."""

from collections.abc import Iterator
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import seconds_of, until
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel, Yes
from edgewright.cli.commands.screen import Document, clean, demand_more_than_a_name, moment, result, say, show_json
from edgewright.cli.failures import CliError
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import Role

_SHORTEST_TOKEN, _LONGEST_TOKEN = 60, 7 * 86400
_LONGEST_TYPED = 4095
"""Characters of a line that Linux' terminals hand to a shell that reads whole lines, as dash does."""


def bootstrap(
    cluster: ClusterName,
    expires_in: Annotated[
        str, typer.Option("--expires-in", metavar="DURATION", help="How long the line works; 7d at most.")
    ] = "1h",
    as_json: AsJson = False,
) -> None:
    """Print the line that attaches a Kubernetes cluster; it replaces earlier unused lines."""
    demand_more_than_a_name("the line")
    seconds = seconds_of(expires_in, "--expires-in", shortest=_SHORTEST_TOKEN, longest=_LONGEST_TOKEN)
    with connect() as gateway:
        try:
            line = gateway.post(f"{named(gateway, cluster).path}/registration-token", {"expires_in": seconds})
        except CliError as error:
            if error.code not in {"cluster_unknown", "cluster_deleted"}:
                raise
            leave = f"To take Edgewright off an edge: `{typed('cluster uninstall-script')}`."
            hint = f"{error.hint}\n{leave}" if error.hint else leave
            raise CliError(error.sentence, hint, error.exit_code, code=error.code) from None
    say(
        f"Run this where kubectl reaches the cluster, before {moment(line['expires_at'])}"
        f" (in {until(line['expires_at'])}). Treat it like a password."
    )
    if line.get("warning"):
        say(f"Warning: {clean(line['warning'])}")
    if line.get("ca_bundle"):
        say("It carries the centre's CA bundle: curl trusts that and nothing else, whatever the machine knows.")
    for advice in (*_of_a_long_line(line), *_without_flux(line), *_about_the_agent(line)):
        say(advice)
    if as_json:
        show_json(line)
    else:
        result(line["command"])


def _of_a_long_line(line: Document) -> Iterator[str]:
    if (length := len(line["command"])) > _LONGEST_TYPED:
        yield (
            f"It has {length:,} characters, and a shell that does not edit its lines takes no more than"
            f" {_LONGEST_TYPED:,} when they are pasted. Let EDGEWRIGHT_CA_BUNDLE hold only the authority that signs."
        )


def _without_flux(line: Document) -> Iterator[str]:
    if not line.get("flux"):
        yield f"No Flux: edges bring their own. `{typed('flux import VERSION')}` gives the centre one to install."


def _about_the_agent(line: Document) -> Iterator[str]:
    image = line.get("agent_image")
    if not image:
        yield "No agent: this centre has no image of it, so nothing will report this cluster."
        yield f"`{typed('up --share')}` builds one and lets edges in; `{typed('agent-image build')}` only builds it."
    elif line.get("agent_image_served") and line.get("ca_bundle"):
        registry = str(image).partition("/")[0]
        yield f"Nodes pull the agent from {clean(registry)} and must trust its CA, too: docs/first-edge.md says how."


def uninstall_script() -> None:
    """Print a script that removes Edgewright from an edge; it holds no secret and needs no centre."""
    from edgewright.bootstrap import render_uninstall  # noqa: PLC0415 - it loads much, and help needs none of it

    result(render_uninstall().rstrip("\n"))


def accept(cluster: ClusterName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Accept a cluster that has registered, once you have compared its short code."""
    with connect() as gateway:
        meant = named(gateway, cluster)
        document = gateway.get(meant.path)
        if document["acceptance"] == "pending":
            say(f"A cluster has registered as {document['name']} with the code {clean(document['short_code'])}.")
            require_yes("Does the bootstrap script show the same code?", yes=yes)
        # Whoever is not pending gets the gateway's own sentence.
        document = gateway.post(f"{meant.path}/accept")
    if as_json:
        show_json(document)
    else:
        result(f"{document['name']} is {document['acceptance']}.")


def reject(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Reject a cluster that has registered: revoke its credentials and free its token."""
    with connect() as gateway:
        document = gateway.post(f"{named(gateway, cluster).path}/reject")
    if as_json:
        show_json(document)
    else:
        result(f"{document['name']} is {document['acceptance']}.")


def rotate(
    cluster: ClusterName,
    role: Annotated[
        list[Role] | None,
        typer.Option("--role", help="Only this credential; repeat it for several.", show_default="both"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask the edge to replace its credentials; each old one works until the new one is used."""
    with connect() as gateway:
        meant = named(gateway, cluster)
        document = gateway.post(f"{meant.path}/credential/rotate", {"roles": role} if role else None)
    if as_json:
        show_json(document, names=[meant.text])
    else:
        result(f"The edge is asked to replace: {', '.join(document['roles'])}. The timeline tells when it has.")


def revoke(cluster: ClusterName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Revoke the credentials of an edge at once; it gets in again with a fresh bootstrap line only."""
    with connect() as gateway:
        document = gateway.get(named(gateway, cluster).path)
        name = clean(document["name"])
        if not yes:
            say(f"The edge of {name} can then neither fetch its repository nor report; what runs there goes on.")
            say("Bootstrap lines that were not used die, too.")
        require_yes(f"Revoke the credentials of {name}?", yes=yes)
        revoked = gateway.delete(f"/v1/cluster/{document['uuid']}/credential")
    if as_json:
        show_json(revoked, names=[name])
        return
    count = revoked["revoked"]
    if count == 0:
        result(f"{name} had no credentials; bootstrap lines that were not used are dead.")
    else:
        result(f"Revoked {count} credential{'' if count == 1 else 's'} of {name}.")
        say(f"To let the edge in again, run there what `{typed(f'cluster bootstrap {name}')}` prints.")


COMMANDS = (
    Command("bootstrap", bootstrap, Panel.EDGE, "cluster bootstrap press-shop --expires-in 2h"),
    Command("uninstall-script", uninstall_script, Panel.EDGE, "cluster uninstall-script"),
    Command("accept", accept, Panel.EDGE, "cluster accept press-shop"),
    Command("reject", reject, Panel.EDGE, "cluster reject press-shop"),
    Command("rotate", rotate, Panel.EDGE, "cluster rotate press-shop --role flux"),
    Command("revoke", revoke, Panel.EDGE, "cluster revoke press-shop"),
)
