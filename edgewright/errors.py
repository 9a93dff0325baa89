"""All errors that cross a boundary, grouped by what their reader can do.

The tree has three branches:

- ``Refused``: the request is wrong, and the caller has to change it. Never retried.
- ``Stalled``: the request is right, but something else is wrong, and a person has to change it. The server never
  retries.
- ``Waiting``: the request will work later. Retried after ``retry_after`` seconds at the earliest.

``code`` is stable and part of the API. ``detail`` is a sentence, and ``hint`` says what to do next; neither
ever contains a secret. The branches are mapped to problem documents in ``api/problems.py``, and to Temporal in
``activities/interceptors.py``.
"""


class EdgewrightError(Exception):
    """Base of all errors that Edgewright raises on purpose.

    Args:
        detail: one sentence for a person; free of secrets.
        code: stable identifier, ``snake_case``; defaults to the class's own.
        hint: what to do next, if that helps.
        where: the file, path or field concerned, if there is one.
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
    """The caller is known, but not allowed to do this."""

    code = "forbidden"
    status = 403


class NotFound(Refused):
    """Something that the request names does not exist."""

    code = "not_found"
    status = 404


class Gone(NotFound):
    """Something that the request names existed, but has ended for good.

    Args:
        ended_at: when it ended, ISO 8601.
        timeline: path of its timeline on the gateway.
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
    """The request does not fit the present state."""

    code = "conflict"
    status = 409


class PreconditionFailed(Refused):
    """``If-Match`` or ``If-None-Match`` did not hold."""

    code = "precondition_failed"
    status = 412


class TooLarge(Refused):
    """The request has more bytes than the limit in ``detail``."""

    code = "too_large"
    status = 413


class Invalid(Refused):
    """The syntax is correct, but a value is not acceptable; ``where`` names the field."""

    code = "invalid"
    status = 422


class Stalled(EdgewrightError):
    """Retrying cannot help until a person changes something; shown as the condition *Blocked*."""

    code = "stalled"
    status = 409


class Superseded(Stalled):
    """A fence refused the effect: a newer wish is in force, and this attempt must change nothing."""

    code = "superseded"


class Waiting(EdgewrightError):
    """The request will work later.

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
    """All callers together ask for more than the server can handle."""

    code = "busy"


class TooMany(Waiting):
    """One caller asks for more than its share; other callers are not affected."""

    code = "too_many_requests"
    status = 429
