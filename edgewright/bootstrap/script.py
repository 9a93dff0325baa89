"""Renders the bootstrap script of one cluster, the line that fetches it, and the script that says why there is none.

``frame.sh`` is the script, ``uninstall.sh`` the one that takes away what it has installed; the lines ``#@values``,
``#@unpack`` and ``#@common`` in them are replaced, the last one by ``common.sh``. What follows ``#-`` on a line is
for whoever maintains them, and is left out. Whatever comes from outside goes in as a single-quoted word or as a
here-document whose quoted delimiter is absent from it, so that no content is ever read as shell.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files as resources
from shlex import quote
from uuid import UUID

from edgewright import __version__
from edgewright.bootstrap.agent_manifests import AgentPod
from edgewright.domain.container_images import is_pinned
from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.errors import Invalid, Stalled

MAX_SCRIPT_BYTES = 32_000
"""Bytes, UTF-8: a person must be able to read the script, and an edge on a poor line to fetch it."""

_ANY_GENERATION = 999_999_999

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{1,512}")
_URL = re.compile(r"https?://[A-Za-z0-9._~:/@%+\[\]-]{1,512}")
_VERSION = re.compile(r"[A-Za-z0-9.+_-]{1,64}")
_CERTIFICATE = re.compile(r"(-----BEGIN CERTIFICATE-----)([A-Za-z0-9+/=\s]+)(-----END CERTIFICATE-----)")
_PEM = re.compile(r"[\x20-\x7e\r\n\t]+")
_FOR_MAINTAINERS = re.compile(r"[ \t]+#- .*$", re.MULTILINE)
_FLUX_OBJECT = re.compile(r"""apiVersion["']?\s*:\s*["']?[a-z]+\.toolkit\.fluxcd\.io/""")


@dataclass(frozen=True, slots=True)
class BootstrapInput:
    """All that the script of one cluster depends on: the same input renders the same bytes.

    Args:
        cluster: UUID of the managed cluster.
        name: its name, as people read it.
        namespace: Kubernetes namespace at the edge for Edgewright's own objects; a DNS label.
        external_url: base URL of the gateway, without a path that ends in ``/``.
        token: the registration token, as it stands in the bootstrap URL; ``[A-Za-z0-9._~-]``.
        expires_at: when the token dies; aware, any zone. Only shown: the centre's clock decides.
        generation: of the cluster, from 1.
        files: file name → Kubernetes manifests (YAML or JSON), already expanded: those of the Bootstrap
            entry and the cluster's own ``self-link.yaml`` and ``flux-system.yaml``.
        ca_bundle: PEM that signs the gateway's certificate; None means the edge's own trust store.
        before: shell fragment of the Bootstrap entry, run before the first change; empty means none.
        after: the same, run after the last file is applied.
        flux: what people call the Flux that the centre has for edges, such as ``v2.7.0``; None: it has none, or
            the cluster brings its own.
        flux_namespace: the one that its controllers live in.
        agent: what the edge runs the agent from; None: it gets no agent.
        version: of Edgewright.

    Raises:
        Invalid: a value that could not be carried safely; ``where`` names the field. Never holds the token.
    """

    cluster: UUID
    name: str
    namespace: str
    external_url: str
    token: str = field(repr=False)
    expires_at: datetime
    generation: int
    files: Mapping[str, str]
    ca_bundle: str | None = None
    before: str = ""
    after: str = ""
    flux: str | None = None
    flux_namespace: str = FLUX_NAMESPACE
    agent: AgentPod | None = None
    version: str = __version__

    def __post_init__(self) -> None:
        _demand(bool(self.name) and "\0" not in self.name, "name", "The name is empty or holds a NUL.")
        _demand(_NAMESPACE.fullmatch(self.namespace), "namespace", "The namespace is not a DNS label.")
        _demand(_URL.fullmatch(self.external_url), "external_url", "The external URL is not a plain http URL.")
        _demand(_TOKEN.fullmatch(self.token), "token", "The registration token has characters it never has.")
        _demand(_NAMESPACE.fullmatch(self.flux_namespace), "flux_namespace", "Flux's namespace is not a DNS label.")
        _demand(self.agent is None or is_pinned(self.agent.image), "agent", "The image has no tag.")
        _demand(_VERSION.fullmatch(self.version), "version", "The version has characters it never has.")
        _demand(self.generation >= 1, "generation", "Generations count from 1.")
        _demand(self.expires_at.tzinfo, "expires_at", "The expiry needs a time zone.")
        _demand(
            self.ca_bundle is None
            or ("-----BEGIN CERTIFICATE-----" in self.ca_bundle and _PEM.fullmatch(self.ca_bundle)),
            "ca_bundle",
            "The CA bundle is not PEM.",
        )


def bootstrap_line(url: str, *, ca_bundle: str | None = None) -> str:
    """One line of POSIX shell that fetches the bootstrap script and runs it; for where kubectl reaches the cluster.

    With a bundle the line carries the certificates and hands them to curl on standard input: the machine where it is
    pasted need not know them, no file is left there, and whoever trusts the line, which holds the token, trusts them.

    Args:
        url: of the script, with its token; quoted here, whatever it holds.
        ca_bundle: PEM that is all that curl is to verify ``url`` with; None: what the machine trusts. What is not
            a certificate in it is left out; without any, curl says that there is none, and fetches nothing.
    """
    if ca_bundle is None:
        return f"curl -sSL {quote(url)} | sh -"
    lines = [line for found in _CERTIFICATE.findall(ca_bundle) for part in found for line in part.split("\n")]
    certificates = "".join(f"{line.strip()}\\n" for line in lines if line.strip())
    return f"printf '%b' '{certificates}' | curl --cacert /dev/stdin -sSL {quote(url)} | sh -"


def render_script(wanted: BootstrapInput) -> str:
    """The POSIX script that attaches a Kubernetes cluster as this cluster.

    Returns:
        The text, at most ``MAX_SCRIPT_BYTES`` in UTF-8, ending in a newline. It holds the token.

    Raises:
        Stalled: ``bootstrap_too_large``; or ``bootstrap_file_invalid`` for a file or hook that cannot be
            carried, ``where`` naming it.
    """
    plain = {name: text for name, text in wanted.files.items() if not _FLUX_OBJECT.search(text)}
    flux = {name: text for name, text in wanted.files.items() if name not in plain}
    _refuse_colliding(wanted.files)
    unpack = [_document(f"plain/{name}", name, text) for name, text in sorted(plain.items())]
    unpack += [_document(f"flux/{name}", name, text) for name, text in sorted(flux.items())]
    hooks = {"before": wanted.before, "after": wanted.after}
    unpack += [_document(f"hooks/{name}", name, text) for name, text in hooks.items() if text.strip()]
    if wanted.ca_bundle is not None:
        unpack.append(_document("ca.pem", "ca_bundle", wanted.ca_bundle))

    values = {
        "cluster": str(wanted.cluster),
        "name": wanted.name,
        "namespace": wanted.namespace,
        "url": wanted.external_url.rstrip("/"),
        "generation": str(wanted.generation),
        "expires": wanted.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": wanted.version,
        "flux_files": "yes" if flux else "",
        "flux_offer": wanted.flux or "",
        "flux_namespace": wanted.flux_namespace,
        "agent_image": wanted.agent.image if wanted.agent else "",
        "token": wanted.token,
    }
    script = _script("frame", values, "".join(unpack))
    size = len(script.encode())
    if size > MAX_SCRIPT_BYTES:
        raise Stalled(
            f"The bootstrap script would be {size} bytes long; {MAX_SCRIPT_BYTES} is the limit.",
            code="bootstrap_too_large",
            hint="Shorten the files of the Bootstrap entry: large manifests belong in the repository.",
        )
    return script


def render_uninstall(wanted: BootstrapInput | None = None) -> str:
    """The POSIX script that takes away what a bootstrap line has installed.

    Args:
        wanted: of the cluster whose edge it is for; None: for any edge, as whatever cluster it is attached.

    Returns:
        The text; it holds no secret, and needs no centre.
    """
    values = {
        "cluster": str(wanted.cluster) if wanted else "",
        "name": wanted.name if wanted else "",
        "generation": str(wanted.generation if wanted else _ANY_GENERATION),
    }
    return _script("uninstall", values, "")


def render_refusal(sentence: str) -> str:
    """The POSIX script that prints one sentence to standard error and exits with 1.

    ``curl … | sh`` shows nothing of an error page and exits with 0; a script it runs.

    Args:
        sentence: for the person at the terminal; line ends and control characters become spaces.
    """
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", sentence).split())
    return (
        "#!/bin/sh\n"
        "# Edgewright: there is no bootstrap script to be had with this URL.\n"
        "main() {\n"
        f"  printf '%s\\n' {_word('edgewright: ' + line)} >&2\n"
        "  exit 1\n"
        "}\n"
        '{ main "$@"; }\n'
    )


def _script(name: str, values: Mapping[str, str], unpack: str) -> str:
    assignments = "".join(f"  {variable}={_word(value)}\n" for variable, value in values.items())
    parts = {"#@values\n": assignments, "#@unpack\n": unpack, "#@common\n": _source("common")}
    return _filled(_source(name), parts)


@cache
def _source(name: str) -> str:
    text = resources("edgewright.bootstrap").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    return _FOR_MAINTAINERS.sub("", text)


def _filled(frame: str, parts: Mapping[str, str]) -> str:
    """The frame with each marker line replaced; text that was filled in is not searched for markers."""
    marker = re.compile("^(?:" + "|".join(map(re.escape, parts)) + ")", re.MULTILINE)
    return marker.sub(lambda match: parts[match[0]], frame)


def _word(text: str) -> str:
    """One shell word that expands to exactly ``text``."""
    return "'" + text.replace("'", "'\\''") + "'"


def _document(path: str, name: str, text: str) -> str:
    """Commands that write ``text`` to ``path`` below the script's own folder."""
    if not _FILE_NAME.fullmatch(name):
        raise Stalled(
            f"The bootstrap file {name!r} has a name that cannot be used.",
            code="bootstrap_file_invalid",
            where=name,
            hint="Names are letters, digits, '.', '_' and '-', and begin with a letter or digit.",
        )
    if "\0" in text:
        raise Stalled(f"The bootstrap file {name!r} holds a NUL.", code="bootstrap_file_invalid", where=name)
    delimiter = "END_OF_FILE"
    while delimiter in text:
        delimiter += "_"
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"    cat >\"$work/{path}\" <<'{delimiter}'\n{body}{delimiter}\n"


def _refuse_colliding(files: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for name in files:
        if name.casefold() in seen:
            raise Stalled(
                f"The bootstrap file {name!r} is there twice, in different case.",
                code="bootstrap_file_invalid",
                where=name,
            )
        seen.add(name.casefold())


def _demand(holds: object, where: str, sentence: str) -> None:
    if not holds:
        raise Invalid(sentence, where=where)
