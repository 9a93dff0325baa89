"""Secrets of types that have a form of their own: a certificate with its key, and the password of a registry."""

import json
import sys
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.commands.options import DEFAULT_TIMEOUT, AsJson, ClusterName, Timeout
from edgewright.cli.commands.screen import say
from edgewright.cli.commands.secret_sending import (
    Annotations,
    CreateNamespace,
    DryRun,
    Labels,
    SecretName,
    Wait,
    how_of,
    place_of,
    seal_secret,
    template_of,
)
from edgewright.cli.commands.secret_sources import read_file
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.secret_template import (
    REGISTRY,
    REGISTRY_KEY,
    TLS,
    TLS_CERTIFICATE_KEY,
    TLS_PRIVATE_KEY_KEY,
)

PASSWORD_LIMIT = 64 * 1024


def tls(
    *,
    cluster: ClusterName,
    secret: SecretName,
    certificate: Annotated[
        Path,
        typer.Option(
            "--cert", metavar="FILE", help="PEM file with the certificate, followed by its chain.", show_default=False
        ),
    ],
    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help="PEM file with its private key, unencrypted.", show_default=False),
    ],
    labels: Labels = None,
    annotations: Annotations = None,
    create_namespace: CreateNamespace = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Set a certificate and its private key, as a Secret of type kubernetes.io/tls."""
    how = how_of(dry_run=dry_run, create_namespace=create_namespace, wait=wait, timeout=timeout, as_json=as_json)
    place_of(secret)
    template = template_of(TLS, labels, annotations)
    certificate_pem, key_pem = read_file(certificate), read_file(key)
    _check_pair(certificate, certificate_pem, key, key_pem)
    values = {TLS_CERTIFICATE_KEY: certificate_pem, TLS_PRIVATE_KEY_KEY: key_pem}
    seal_secret(cluster, secret, values, template, how)


def registry(
    *,
    cluster: ClusterName,
    secret: SecretName,
    server: Annotated[
        str, typer.Option("--server", help="Host of the registry, with its port if it needs one.", show_default=False)
    ],
    username: Annotated[str, typer.Option("--username", help="User name at the registry.", show_default=False)],
    labels: Labels = None,
    annotations: Annotations = None,
    create_namespace: CreateNamespace = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Set the credentials for pulling images; type the password when asked, or pipe it in."""
    how = how_of(dry_run=dry_run, create_namespace=create_namespace, wait=wait, timeout=timeout, as_json=as_json)
    place_of(secret)
    template = template_of(REGISTRY, labels, annotations)
    if not server or not username or ":" in username:
        raise CliError(
            "--server and --username must not be empty, and a user name has no ':'.",
            "For example --server registry.example.com --username press.",
            ExitCode.USAGE,
        )
    value = _docker_config(server, username, _password())
    seal_secret(cluster, secret, {REGISTRY_KEY: value}, template, how)


def _check_pair(certificate: Path, certificate_pem: bytes, key: Path, key_pem: bytes) -> None:
    """Says what an edge's web server would only say when it starts.

    Raises:
        CliError: one is not PEM, the key is encrypted, or it is another certificate's.
    """
    from cryptography import x509  # noqa: PLC0415 - slow, and few commands read certificates
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - the same
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - the same

    try:
        first = x509.load_pem_x509_certificates(certificate_pem)[0]
        public = first.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise CliError(
            f"{certificate} holds no certificate in PEM.",
            "Its first line says BEGIN CERTIFICATE. Did you mix up certificate and key?",
            ExitCode.USAGE,
        ) from None
    try:
        private = serialization.load_pem_private_key(key_pem, None)
    except TypeError:
        raise CliError(
            f"The private key in {key} is encrypted, and nothing on the edge could open it.",
            "Write it unencrypted into another file: openssl pkey -in FILE -out FILE.",
            ExitCode.USAGE,
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise CliError(
            f"{key} holds no private key in PEM.",
            "Its first line says BEGIN PRIVATE KEY. Did you mix up certificate and key?",
            ExitCode.USAGE,
        ) from None
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        raise CliError(
            f"The private key in {key} is not that of the first certificate in {certificate}.",
            "The server's own certificate comes first, those that signed it behind it.",
            ExitCode.USAGE,
        )
    if first.not_valid_after_utc < datetime.now(UTC):
        say(f"The certificate in {certificate} has ended at {first.not_valid_after_utc.isoformat()}.")


def _password() -> str:
    if sys.stdin.isatty():
        typed: str = typer.prompt("Password", hide_input=True)
    else:
        line = sys.stdin.buffer.readline(PASSWORD_LIMIT + 1)
        if len(line) > PASSWORD_LIMIT:
            raise CliError(
                f"A password has at most {PASSWORD_LIMIT} bytes.",
                "Is it the right file? Nothing was sent.",
                ExitCode.USAGE,
            )
        try:
            typed = line.decode().rstrip("\r\n")
        except ValueError:
            raise CliError("The password is not UTF-8.", "Type it, or pipe in UTF-8 text.", ExitCode.USAGE) from None
    if not typed:
        raise CliError("There is no password.", "Pipe it in, or type it at the prompt.", ExitCode.USAGE)
    return typed


def _docker_config(server: str, username: str, password: str) -> bytes:
    auth = b64encode(f"{username}:{password}".encode()).decode()
    entry = {"username": username, "password": password, "auth": auth}
    return json.dumps({"auths": {server: entry}}, separators=(",", ":")).encode()
