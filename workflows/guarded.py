"""Keeps a bug in a message handler from wedging a cluster.

A plain exception in an update or signal handler makes Temporal retry the workflow task for ever, so that no message
gets through any more. Guarded updates fail for their caller only; guarded signals are logged and dropped, and their
workflow is told.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

P = ParamSpec("P")
R = TypeVar("R")


class SignalledWorkflow(Protocol):
    """What has handlers of signals."""

    def signal_failed(self) -> None:
        """A handler has raised an exception, and its signal is dropped."""


W = TypeVar("W", bound=SignalledWorkflow)

HANDLER_BUG = "HandlerBug"


def guarded_update(handler: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Turns an unexpected exception of an update handler into a failure of that update."""

    @wraps(handler)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await handler(*args, **kwargs)
        except BaseException as error:  # any bug of a handler, whatever it raises, would wedge the cluster
            if isinstance(error, FailureError) or is_cancelled_exception(error) or not isinstance(error, Exception):
                raise
            workflow.logger.exception("update handler %s has a bug", handler.__name__)
            raise ApplicationError(
                f"{type(error).__name__} in {handler.__name__}; the worker's log has the rest.",
                type=HANDLER_BUG,
                non_retryable=True,
            ) from None

    return wrapper


def guarded_signal(handler: Callable[Concatenate[W, P], None]) -> Callable[Concatenate[W, P], None]:
    """Logs an unexpected exception of a signal handler, drops that signal, and tells the workflow."""

    @wraps(handler)
    def wrapper(signalled: W, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            handler(signalled, *args, **kwargs)
        except BaseException as error:  # any bug of a handler, whatever it raises, would wedge the cluster
            if isinstance(error, FailureError) or is_cancelled_exception(error) or not isinstance(error, Exception):
                raise
            workflow.logger.exception("signal handler %s has a bug; the signal is dropped", handler.__name__)
            signalled.signal_failed()

    return wrapper
