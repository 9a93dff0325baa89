"""An advisory lock that the kernel drops with its process, however that dies."""

import fcntl
import time

_PAUSE_SECONDS = 0.05


def take(descriptor: int, *, patience: float) -> bool:
    """Locks an open file for this process alone; False if somebody else has it for that many seconds.

    Patience is needed even where one refusal is an answer: who only asks for the holder has the lock for a moment,
    and a process that was just killed a little longer.
    """
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE_SECONDS)  # nothing tells when another process lets go
        else:
            return True
