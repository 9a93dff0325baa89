"""Work that takes long, run beside the thread that watches over the children."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> "Future[T]":
    """Starts work in a thread that does not outlive the program; its result or error arrives in the future."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, not swallowed
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
