"""The variables that a container's specification gives it, as a kubelet works them out."""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

Secrets = Callable[[str], Mapping[str, str] | None]
"""The data of a Secret in the pod's namespace, in base64, by the Secret's name; None if there is none."""
PROXY_KEYS = [
    {"name": name, "valueFrom": {"secretKeyRef": {"name": "edgewright-proxy", "key": name, "optional": True}}}
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
]
"""All that the Secret with the proxies may give to a container."""


class NotYet(RuntimeError):
    """Something that a container cannot start without is not there."""


def variables_of(pod: Mapping[str, Any], container: Mapping[str, Any], secrets: Secrets) -> Iterator[tuple[str, str]]:
    """Whole Secrets first, then single variables: later ones replace earlier ones.

    Args:
        pod: where ``fieldRef`` looks.

    Raises:
        NotYet: there is no such Secret or key, and the specification does not call it optional.
        ValueError: the specification has a source that no pod here uses.
    """
    for source in container.get("envFrom", ()):
        whole = source["secretRef"]
        data = secrets(whole["name"])
        if data is None and not whole.get("optional"):
            raise NotYet(f"there is no Secret {whole['name']}")
        yield from ((key, b64decode(value).decode()) for key, value in (data or {}).items())
    for each in container.get("env", ()):
        match each.get("valueFrom"):
            case None:
                yield each["name"], each.get("value", "")
            case {"fieldRef": {"fieldPath": path}}:
                yield each["name"], str(reduce(getitem, path.split("."), pod))
            case {"secretKeyRef": {"name": name, "key": key, **more}}:
                data = secrets(name) or {}
                if key in data:
                    yield each["name"], b64decode(data[key]).decode()
                elif not more.get("optional"):
                    raise NotYet(f"there is no key {key} in a Secret {name}")
            case other:
                raise ValueError(f"this kubelet does not know {other}")
