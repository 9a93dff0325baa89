"""`edgewright agent-image`: the image of the agent that this machine's gateway serves to edges."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from edgewright import __version__
from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import prepare_home
from edgewright.cli.invocation import typed
from edgewright.cli.local import local_settings
from edgewright.settings import Settings

if TYPE_CHECKING:
    from edgewright.adapters.agent_image.layout import ImageLayout
    from edgewright.ports.agent_images import PublishedImage

app = typer.Typer(no_args_is_help=True)

_ENTRY = "from edgewright.cli.entry import main; main()"

Archive = Annotated[Path, typer.Argument(metavar="FILE", help="An OCI archive (tar).", dir_okay=False)]


@app.command("build", epilog="Example: edgewright agent-image build")
def build(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write an archive instead of changing what is served.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Build the image for machines like this one, without a container engine; `up` does so by itself."""
    from edgewright.adapters.agent_image.build import build_image  # noqa: PLC0415 - slow, and help needs none of it
    from edgewright.adapters.agent_image.layout import ImageLayout  # noqa: PLC0415 - the same

    settings = local_settings()
    if output is None:
        prepare_home(settings.home)
        _show(settings, build_image(ImageLayout(settings.agent_image_folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        layout = ImageLayout(Path(folder) / "layout")
        image = build_image(layout)
        layout.save(output, image.reference(_registry(settings)))
    typer.echo(f"{output}: agent {image.version} for {', '.join(image.platforms)}", err=not output.is_file())


@app.command("show", epilog="Example: edgewright agent-image show")
def show() -> None:
    """Show the image that edges pull: its name, its platforms, its digest."""
    settings = local_settings()
    _show(settings, _published(_layout(settings)))


@app.command("save", epilog="Example: edgewright agent-image save agent.tar")
def save(file: Archive) -> None:
    """Write the image to a file, for nodes that cannot pull: `k3s ctr images import`, `kind load image-archive`."""
    settings = local_settings()
    layout = _layout(settings)
    image = layout.save(file, _published(layout).reference(_registry(settings)))
    is_pipe = not file.is_file()  # which gets the image alone
    typer.echo(f"{file}: {image.reference(_registry(settings))}", err=is_pipe)


@app.command("add", epilog="Example: edgewright agent-image add agent-arm64.tar")
def add(file: Archive) -> None:
    """Serve an image from a file, too: one that `build --output` has made on another kind of machine."""
    if not file.is_file():
        hint = "Name what `edgewright agent-image build --output FILE` has written."
        raise CliError(f"There is no file {file}.", hint, ExitCode.USAGE)
    settings = local_settings()
    prepare_home(settings.home)
    _show(settings, _layout(settings).load(file, version=__version__))


class BackgroundBuild:
    """Builds the image in a process of its own while everything else runs, and tells what came of it.

    Args:
        tell: called once, from another thread, with a sentence.
    """

    def __init__(self, settings: Settings, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def start(self) -> None:
        """Begins. What is there already is found in a second."""
        own = {"EDGEWRIGHT_EXTERNAL_URL": self._settings.effective_external_url}
        variables = {**os.environ, **own, "EDGEWRIGHT_HOME": str(self._settings.home)}
        nice = [shutil.which("nice") or "nice"]
        self._process = subprocess.Popen(
            [*nice, sys.executable, "-P", "-c", _ENTRY, "agent-image", "build"],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for `up`, which ends this in its turn
        )
        Thread(target=self._wait, name="agent-image", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        """Whether its process is gone."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Ends it if it has not ended; the next start begins anew."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def _wait(self) -> None:
        if self._process is None:
            return
        said, complained = self._process.communicate()
        if self._stopped:
            return
        if self._process.returncode == 0:
            self._tell(said.splitlines()[0].removeprefix("image").strip())
        else:
            reason = " ".join(complained.split()).removeprefix("edgewright: ")
            self._tell(f"could not be built: {reason} Without it, edges get no agent.")


def _layout(settings: Settings) -> "ImageLayout":
    from edgewright.adapters.agent_image.layout import ImageLayout  # noqa: PLC0415 - slow, and help needs none of it

    return ImageLayout(settings.agent_image_folder)


def _published(layout: "ImageLayout") -> "PublishedImage":
    image = layout.published()
    if image is None:
        hint = f"`{typed('agent-image build')}` builds it; `{typed('up')}` does so by itself."
        raise CliError(
            "No image of the agent has been built here.", hint, ExitCode.NOT_FOUND, code="agent_image_unset"
        )
    return image


def _registry(settings: Settings) -> str:
    """``host:port`` from which nodes pull: of the external URL, or of the gateway that runs here."""
    running = read_endpoints(settings.home)
    shared = running.external_url or running.gateway if running else None
    url = settings.external_url or shared or settings.effective_external_url
    return urlsplit(url).netloc


def _show(settings: Settings, image: "PublishedImage") -> None:
    typer.echo(f"image      {image.reference(_registry(settings))}")
    typer.echo(f"platforms  {', '.join(image.platforms)}")
    typer.echo(f"digest     {image.digest}")
    if settings.agent_image:
        typer.echo(f"Not used: EDGEWRIGHT_AGENT_IMAGE names {settings.agent_image}.", err=True)
