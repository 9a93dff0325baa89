"""The database's clock of several processes: this machine's, and ahead of it by what a file says."""

from datetime import UTC, datetime, timedelta
from pathlib import Path


class SharedClock:
    """Everybody who opens the same file tells the same time. It is moved forward, never back."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self) -> datetime:
        now = datetime.now(UTC) + timedelta(seconds=self._ahead())
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def move_on(self, seconds: float) -> None:
        """Lets so many seconds pass at once, for everybody."""
        written = self._file.with_suffix(".new")
        written.write_text(str(self._ahead() + seconds))
        written.replace(self._file)

    def _ahead(self) -> float:
        try:
            return float(self._file.read_text())
        except FileNotFoundError:
            return 0.0
