"""Every error that crosses a boundary, and what its reader can do about it.

The tree has three branches, and the branch is the answer to "what now?":

- ``Refused``: the request is wrong. The caller changes it. Never retried.
- ``Stalled``: the request is right, the world is not. A human changes something. Never retried by the server.
- ``Waiting``: it will work later. Retried, at the earliest after ``retry_after`` seconds.

``code`` is stable and part of the API. ``detail`` is a sentence and ``hint`` says what to do next; neither
ever holds a secret. The branch is mapped once onto problem documents (``api/problems.py``) and once onto
Temporal (``activities/interceptors.py``).
"""


class EdgewrightError(Exception):
    """Base of all errors that Edgewright raises on purpose.

    Args:
        detail: one sentence for a person; free of secrets.
        code: stable identifier, ``snake_case``; defaults to the class's own.
        hint: what to do next, when that helps.
        where: the file, path or field that is meant, when there is one.
    """

    code = "error"
    status = 500

    def __init__(
        self, detail: str, *, code: str | None = None, hint: str | None = None, where: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.hint = hint
        self.where = where


class Refused(EdgewrightError):
    """The request is wrong; the caller has to change it."""

    code = "refused"
    status = 400


class Unauthenticated(Refused):
    """No credentials, or wrong ones."""

    code = "unauthenticated"
    status = 401


class Forbidden(Refused):
    """Known, but not allowed."""

    code = "forbidden"
    status = 403


class NotFound(Refused):
    """There is no such thing."""

    code = "not_found"
    status = 404


class Gone(NotFound):
    """There was such a thing, and it has ended for good.

    Args:
        ended_at: when, ISO 8601.
        timeline: path at the gateway of what happened to it.
    """

    code = "gone"
    status = 410

    def __init__(
        self, detail: str, *, ended_at: str, timeline: str, code: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(detail, code=code, hint=hint)
        self.ended_at = ended_at
        self.timeline = timeline


class Conflict(Refused):
    """The request makes no sense in the present state."""

    code = "conflict"
    status = 409


class PreconditionFailed(Refused):
    """``If-Match`` or ``If-None-Match`` did not hold."""

    code = "precondition_failed"
    status = 412


class TooLarge(Refused):
    """More bytes than the limit that ``detail`` names."""

    code = "too_large"
    status = 413


class Invalid(Refused):
    """Syntactically fine, but not a value that can be accepted; ``where`` names the field."""

    code = "invalid"
    status = 422


class Stalled(EdgewrightError):
    """Trying again cannot help until a person changes something; shown as the condition *Blocked*."""

    code = "stalled"
    status = 409


class Superseded(Stalled):
    """A fence refused the effect: the cluster has moved on, and this attempt must change nothing."""

    code = "superseded"


class Waiting(EdgewrightError):
    """It will work later.

    Args:
        retry_after: seconds after which another attempt makes sense.
    """

    code = "unavailable"
    status = 503

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float = 1.0,
        code: str | None = None,
        hint: str | None = None,
        where: str | None = None,
    ) -> None:
        super().__init__(detail, code=code, hint=hint, where=where)
        self.retry_after = retry_after


class Busy(Waiting):
    """All callers together ask for more than there is room for."""

    code = "busy"


class TooMany(Waiting):
    """One caller asks for more than its share; the others do not notice."""

    code = "too_many_requests"
    status = 429
