"""The bootstrap line: what is pasted where kubectl reaches the Kubernetes cluster."""

import re
from shlex import quote

_CERTIFICATE = re.compile(r"(-----BEGIN CERTIFICATE-----)([A-Za-z0-9+/=\s]+)(-----END CERTIFICATE-----)")


def bootstrap_line(url: str, *, ca_bundle: str | None = None) -> str:
    """One line of POSIX shell that fetches the bootstrap script and runs it.

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
