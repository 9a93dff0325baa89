"""One line in the log when something becomes different, and none while it stays so."""

import structlog


class Transitions:
    """The state of one matter, as it was logged last.

    Args:
        matter: name of the log line, such as ``centre``.
    """

    def __init__(self, matter: str) -> None:
        self._log = structlog.get_logger("edgewright.agent")
        self._matter = matter
        self._logged: tuple[str, object] | None = None

    def well(self, state: str, **facts: object) -> None:
        """Things are as they should be, or wait for somebody at the centre."""
        self._tell("info", state, facts)

    def trouble(self, state: str, **facts: object) -> None:
        """Something is missing; it is tried again."""
        self._tell("warning", state, facts)

    def _tell(self, level: str, state: str, facts: dict[str, object]) -> None:
        known = (state, facts.get("code"))  # details come and go with the weather
        if known != self._logged:
            self._logged = known
            getattr(self._log, level)(self._matter, state=state, **facts)
