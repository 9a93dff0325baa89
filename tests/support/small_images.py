"""Images of two files, for tests of whoever keeps and serves images."""

from pathlib import Path, PurePosixPath

from edgewright.adapters.agent_image.contents import FileInImage
from edgewright.adapters.agent_image.layers import write_layer
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


def publish_small(
    layout: ImageLayout, *, version: str = "1.0.0", architecture: str = "amd64", content: bytes = b"small\n"
) -> PublishedImage:
    """Publishes an image with one layer, which holds one file with this content."""
    platform = Platform(architecture=architecture)
    with layout.changing():
        with layout.work() as work:
            between = Path(work) / "between"
            between.mkdir()
            layer = write_layer(
                [FileInImage(PurePosixPath("/opt/file"), content)], Path(work) / "layer", work=between
            )
            layout.take_blob(Path(work) / "layer", layer.digest)
        manifest = ImageManifest(
            config=layout.add_document(platform, CONFIG_TYPE),
            layers=[Descriptor(media_type=LAYER_TYPE, digest=layer.digest, size=layer.size)],
        )
        image = layout.add_document(manifest, MANIFEST_TYPE).model_copy(update={"platform": platform})
        return layout.publish(version, [image], {architecture: content.hex()})
