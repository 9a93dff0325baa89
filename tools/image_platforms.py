"""Asks the registries whether each pinned image is one for all platforms that Edgewright runs on.

A digest can name an index, which has an image for each platform, or one of these images, which no other platform
runs. The two look alike, so only the registry knows. Needs docker with buildx, and the internet.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

FILES = ("Dockerfile", "docker-compose.yml")
PLATFORMS = frozenset({"linux/amd64", "linux/arm64"})
INDEXES = frozenset(
    {"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"}
)
_PINNED = re.compile(r"^(?:FROM|\s*image:)\s+(\S+@sha256:[0-9a-f]{64})", re.MULTILINE)


def pinned_images(root: Path) -> list[str]:
    """``NAME:TAG@DIGEST`` of each image from elsewhere."""
    return sorted({image for file in FILES for image in _PINNED.findall((root / file).read_text("utf-8"))})


def complaint(image: str, manifest: bytes) -> str | None:
    """What is wrong with what the registry has under a digest; None: nothing."""
    digest = image.rpartition("@")[2]
    if f"sha256:{hashlib.sha256(manifest).hexdigest()}" != digest:
        return f"{image}: what the registry answers has another digest"
    said = json.loads(manifest)
    if said.get("mediaType") not in INDEXES:
        return f"{image}: the digest is that of one platform's image; take the one of the index"
    platforms = {f"{each['platform']['os']}/{each['platform']['architecture']}" for each in said["manifests"]}
    missing = sorted(PLATFORMS - platforms)
    return f"{image}: there is no image for {', '.join(missing)}" if missing else None


def inspected(image: str) -> bytes:
    """The manifest as the registry has it.

    Raises:
        subprocess.CalledProcessError: docker says on standard error why there is none.
    """
    command = ["docker", "buildx", "imagetools", "inspect", "--raw", image]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout


def main() -> int:
    """Prints what is wrong; the exit code says whether anything is, or cannot be known."""
    wrong = 0
    for image in pinned_images(Path(__file__).parents[1]):
        try:
            said = complaint(image, inspected(image))
        except (OSError, subprocess.SubprocessError) as error:
            said = f"{image}: not checked: {error}"
        sys.stdout.write(said or f"{image}: {', '.join(sorted(PLATFORMS))}")
        sys.stdout.write("\n")
        sys.stdout.flush()
        wrong += said is not None
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
