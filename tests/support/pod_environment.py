"""The variables and arguments that a container's specification gives it, as a kubelet works them out."""

import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import getitem
from typing import Any

Secrets = Callable[[str], Mapping[str, str] | None]
"""The data of a Secret in the pod's namespace, in base64, by the Secret's name; None if there is none."""
PROXY_KEYS: list[dict[str, Any]] = [
    {"name": name, "valueFrom": {"secretKeyRef": {"name": "edgewright-proxy", "key": name, "optional": True}}}
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
]
"""All that the Secret with the proxies may give to a container."""
_UNITS = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T"))},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), start=1)},
}
"""Suffixes of Kubernetes' quantities."""
_REFERENCE = re.compile(r"\$\$|\$\((\w+)\)")
"""To a variable, in an argument; or a dollar that is meant as one."""


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
            case {"resourceFieldRef": {"resource": resource, **more}}:
                yield each["name"], _amount(container, resource, str(more.get("divisor", "1")))
            case {"secretKeyRef": {"name": name, "key": key, **more}}:
                data = secrets(name) or {}
                if key in data:
                    yield each["name"], b64decode(data[key]).decode()
                elif not more.get("optional"):
                    raise NotYet(f"there is no key {key} in a Secret {name}")
            case other:
                raise ValueError(f"this kubelet does not know {other}")


def arguments_of(container: Mapping[str, Any], variables: Mapping[str, str]) -> Sequence[str]:
    """Its arguments, with the variables that they name; what names none stays as it is."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return [_REFERENCE.sub(value, each) for each in container.get("args", ())]


def _amount(container: Mapping[str, Any], resource: str, divisor: str) -> str:
    """Such as ``limits.memory``, in multiples of the divisor, rounded up; a divisor of 0 is none."""
    kind, _, name = resource.partition(".")
    return str(math.ceil(_quantity(container["resources"][kind][name]) / (_quantity(divisor) or 1)))


def _quantity(text: str) -> Decimal:
    number = text.rstrip("mkMGTi")
    return Decimal(number) * _UNITS[text.removeprefix(number)]
