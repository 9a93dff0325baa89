"""The one shape in which a secret may travel inside the gateway."""

from typing import NoReturn, final

_SHOWN = "<plaintext>"


@final
class Plaintext:
    """A secret value, from the request's body to ``seal``, and nowhere else.

    A plain class on purpose: pickle, copy, JSON, pydantic and so Temporal's converter fail on it loudly, where
    ``pydantic.SecretStr`` would silently be stored as asterisks. Text made of it is always ``<plaintext>``.
    An empty value is a value: it is true, and its length is 0.

    Args:
        octets: the value, any bytes.
    """

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets = bytes(octets)

    def reveal(self) -> bytes:
        """The bytes themselves; call it where they are encrypted."""
        return self._octets

    def __len__(self) -> int:
        return len(self._octets)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return _SHOWN

    def __format__(self, format_spec: str) -> str:
        return _SHOWN

    def __getstate__(self) -> NoReturn:
        # every protocol of pickle and copy ask here for what is inside
        raise TypeError("a plaintext cannot be serialised or copied")
