"""Builds the agent's image without a container engine: the same files, the same digest."""

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgewright import __version__
from edgewright.adapters.agent_image.contents import (
    CERTIFICATES,
    LIBRARIES,
    PACKAGES,
    PYTHON,
    USER,
    Contents,
    FileInImage,
    contents_of_this_machine,
)
from edgewright.adapters.agent_image.layers import Layer, write_layer
from edgewright.adapters.agent_image.layout import (
    CONFIG_TYPE,
    LAYER_TYPE,
    MANIFEST_TYPE,
    Descriptor,
    ImageLayout,
    ImageManifest,
    Platform,
)
from edgewright.ports.agent_images import PublishedImage


class _Runs(BaseModel):
    """How a container of the image is started; fields as the specification names them."""

    model_config = ConfigDict(frozen=True)

    User: str
    Env: list[str]
    Cmd: list[str]
    WorkingDir: str
    Labels: dict[str, str]


class _RootFiles(BaseModel):
    type: str
    diff_ids: list[str]


class _Config(BaseModel):
    """The configuration of an image: https://github.com/opencontainers/image-spec/blob/main/config.md."""

    architecture: str
    os: str
    config: _Runs
    rootfs: _RootFiles


def build_image(layout: ImageLayout) -> PublishedImage:
    """Builds the image for machines like this one into a layout, unless just that is there already.

    Raises:
        Stalled: code ``image_unbuildable``: the sentence says what is missing.
    """
    contents = contents_of_this_machine()
    inputs, platform = _inputs(contents), Platform(architecture=contents.architecture)
    with layout.changing():
        if layout.has(__version__, platform, inputs) and (there := layout.published()):
            return there
        layers = [_layer(layout, files) for files in (contents.base, contents.agent)]
        manifest = ImageManifest(
            config=layout.add_document(_config(contents, layers), CONFIG_TYPE),
            layers=[Descriptor(media_type=LAYER_TYPE, digest=one.digest, size=one.size) for one in layers],
        )
        image = layout.add_document(manifest, MANIFEST_TYPE).model_copy(update={"platform": platform})
        return layout.publish(__version__, [image], {platform.architecture: inputs})


def _layer(layout: ImageLayout, files: tuple[FileInImage, ...]) -> Layer:
    with layout.work() as work:
        made, between = Path(work) / "layer", Path(work) / "compiled"
        between.mkdir()
        layer = write_layer(files, made, work=between)
        layout.take_blob(made, layer.digest)
    return layer


def _config(contents: Contents, layers: list[Layer]) -> _Config:
    return _Config(
        architecture=contents.architecture,
        os="linux",
        config=_Runs(
            User=f"{USER}:{USER}",
            Env=[
                f"PATH={PYTHON / 'bin'}",
                f"LD_LIBRARY_PATH={LIBRARIES}",
                f"PYTHONPATH={PACKAGES}",
                f"SSL_CERT_FILE={CERTIFICATES}",
                "PYTHONUNBUFFERED=1",
                "PYTHONDONTWRITEBYTECODE=1",
            ],
            Cmd=["python", "-P", "-m", "edgewright.agent"],
            WorkingDir="/",
            Labels={
                "org.opencontainers.image.title": "Edgewright agent",
                "org.opencontainers.image.version": __version__,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        ),
        rootfs=_RootFiles(type="layers", diff_ids=[one.diff_id for one in layers]),
    )


def _inputs(contents: Contents) -> str:
    """A digest that changes when a file is another one; of names, sizes and times, so that it costs no reading."""
    digest = hashlib.sha256()
    for file in (*contents.base, *contents.agent):
        state: object = file.source
        if isinstance(file.source, Path):
            told = file.source.stat()
            state = (told.st_size, told.st_mtime_ns)
        digest.update(repr((str(file.path), state)).encode())
    return digest.hexdigest()
