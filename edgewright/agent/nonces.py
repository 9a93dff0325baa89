"""The chain of nonces that ties each heartbeat to the one before: two agents with one identity break it."""

import secrets


class Nonces:
    """Of one agent, from its start on."""

    def __init__(self) -> None:
        self.current = secrets.token_hex(16)
        """To send; the same until it is answered, for the centre may have it already."""
        self.previous: str | None = None
        """The last one that was answered."""

    def answered(self) -> None:
        """The current one was; the next heartbeat has another."""
        self.previous, self.current = self.current, secrets.token_hex(16)
