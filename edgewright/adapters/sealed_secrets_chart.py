"""Where edges get upstream's chart of sealed-secrets from, which the chart of every cluster depends on."""

import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import yaml

from edgewright.adapters.charts.coalescing import GLOBAL
from edgewright.adapters.charts.files import SCHEMA_FILE, VALUES_FILE, yaml_object
from edgewright.adapters.charts.folders import ArchivedFolder, Unusable, unpacked
from edgewright.adapters.charts.value_names import properties_of
from edgewright.adapters.json_schema import ADDITIONAL
from edgewright.errors import Stalled

CHART = "edge-cluster"
DEPENDENCY = "sealed-secrets"
UPSTREAM = "https://bitnami.github.io/sealed-secrets"
UPSTREAM_REGISTRY = "docker.io"
LARGEST_ARCHIVE = 1_000_000
"""Bytes; upstream's has about 25,000."""
OURS = ("enabled", "namespace", "fullnameOverride")
"""Values of it whose schema is the same whatever its version."""
_LARGEST_METADATA = 64 * 1024
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")


@dataclass(frozen=True)
class SealedSecretsChart:
    """What the published chart says of its dependency.

    Args:
        source: ``https://…`` or ``oci://…``: a chart repository that edges reach; ``file:///…``: an archive on this
            machine, which is published with the chart, so that edges need nothing but the centre.
        registry_mirror: ``host[:port][/folder]`` from which edges pull its image; None: as upstream names it.
    """

    source: str = UPSTREAM
    registry_mirror: str | None = None

    def applied(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The charts as they are published: path -> content, and the archive with them if there is one.

        Raises:
            Stalled: ``sealing_chart_unusable``: the archive is not there, or is something else.
        """
        changed = dict(files)
        metadata, values, schema = (f"{CHART}/{file}" for file in ("Chart.yaml", VALUES_FILE, SCHEMA_FILE))
        if self.registry_mirror is not None:
            changed[values] = _put(
                changed[values], f"registry: {UPSTREAM_REGISTRY}", f"registry: {self.registry_mirror}"
            )
        if self.source.startswith("file:"):
            archive = _read(Path(url2pathname(urlsplit(self.source).path)))
            version = _version(archive, self.source)
            changed[f"{CHART}/charts/{DEPENDENCY}-{version}.tgz"] = archive
            pinned = re.compile(rb"(- name: sealed-secrets\n +version: )\S+")
            changed[metadata] = pinned.sub(rb"\g<1>" + version.encode(), changed[metadata], count=1)
            changed[metadata] = _put(changed[metadata], f"repository: {UPSTREAM}", 'repository: ""')
            changed[schema] = _with_names(changed[schema], _unpacked(archive, self.source))
        elif self.source != UPSTREAM:
            changed[metadata] = _put(changed[metadata], f"repository: {UPSTREAM}", f"repository: {self.source}")
        return changed


def with_names_of(folder: ArchivedFolder, stated: Mapping[str, Any]) -> dict[str, Any]:
    """What our schema says of upstream's values: the names that this version of its chart has.

    Of a chart with a schema of its own, that one decides, and ours takes every name.

    Args:
        stated: what ours says for another version.

    Raises:
        Unusable: its values cannot be read.
    """
    said = {key: value for key, value in stated.items() if key != ADDITIONAL}
    ours = {name: stated["properties"][name] for name in OURS}
    values = folder.read(VALUES_FILE)
    if values is None or folder.read(SCHEMA_FILE) is not None:
        return {**said, "properties": ours}
    templates = (folder.read(f"templates/{name}") or b"" for name in folder.names("templates"))
    named = properties_of(yaml_object(values, VALUES_FILE), (each.decode(errors="replace") for each in templates))
    return {**said, ADDITIONAL: False, "properties": {**named, GLOBAL: {}, **ours}}


def _with_names(schema: bytes, folder: ArchivedFolder) -> bytes:
    whole = json.loads(schema)
    try:
        said = with_names_of(folder, whole["properties"][DEPENDENCY])
    except Unusable as error:
        raise _unusable(f"The chart of sealed-secrets cannot be used: its {error}.") from None
    if said == whole["properties"][DEPENDENCY]:
        return schema
    whole["properties"][DEPENDENCY] = said
    return json.dumps(whole, indent=2).encode() + b"\n"


def _unpacked(archive: bytes, source: str) -> ArchivedFolder:
    try:
        return unpacked(archive, source)
    except Unusable as error:
        raise _unusable(f"{error}.") from None


def _put(content: bytes, old: str, new: str) -> bytes:
    """Text in the place of text that is there exactly once; all else, the comments too, stays."""
    if content.count(old.encode()) != 1:
        raise ValueError(f"the chart does not hold {old!r} exactly once")
    return content.replace(old.encode(), new.encode())


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            archive = opened.read(LARGEST_ARCHIVE + 1)
    except OSError as error:
        raise _unusable(f"The chart of sealed-secrets, {file}, cannot be read ({error.strerror}).") from None
    if len(archive) > LARGEST_ARCHIVE:
        raise _unusable(f"{file} has more than {LARGEST_ARCHIVE} bytes; the chart of sealed-secrets is smaller.")
    return archive


def _version(archive: bytes, source: str) -> str:
    """The version of the chart in the archive; nothing is unpacked."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            member = opened.extractfile(f"{DEPENDENCY}/Chart.yaml")
            metadata = yaml.safe_load(member.read(_LARGEST_METADATA)) if member else None
    except (tarfile.TarError, OSError, EOFError, KeyError, ValueError, yaml.YAMLError):
        metadata = None
    version = metadata.get("version") if isinstance(metadata, dict) and metadata.get("name") == DEPENDENCY else None
    if not isinstance(version, str) or _VERSION.fullmatch(version) is None:
        raise _unusable(f"{source} is not the packed chart of sealed-secrets.")
    return version


def _unusable(sentence: str) -> Stalled:
    return Stalled(
        sentence,
        code="sealing_chart_unusable",
        hint="EDGEWRIGHT_SEALING_CHART names a chart repository (https://…, oci://…) or a file "
        "(file:///…/sealed-secrets-VERSION.tgz), as `helm pull` leaves it.",
    )
