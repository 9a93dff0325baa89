"""Entries against the JSON Schema of their Application (draft 2020-12, formats included)."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from jsonschema.exceptions import ValidationError as Violation
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import read_entry
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.json_schema import UNUSABLE, TooCostly, schema_violation_of, violation_of
from edgewright.domain.wellknown import APP_CONFIG_SCHEMA, APPLICATIONS
from edgewright.errors import Invalid, Stalled

Check = Callable[[Any], None]
"""Raises ``Invalid`` for a body that the schema refuses. Does no I/O, so that it may run in a transaction."""
LONGEST_REASON = 300
SAMPLES: tuple[Any, ...] = (None, False, 0, "", [], {})
"""One value of each type."""


class EntrySchemas:
    """Compiled schemas, remembered by the revision that they came from."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._compiled: dict[UUID, tuple[str, Check]] = {}

    async def check_until_the_end(self, connection: AsyncConnection, app: UUID) -> Check:
        """The check of an Application whose schema nobody changes before this transaction ends."""
        return await self._check_of(connection, app, lock=True)

    async def _check_of(self, connection: AsyncConnection, app: UUID, *, lock: bool = False) -> Check:
        """One without a schema takes anything."""
        schema = await read_entry(connection, APP_CONFIG_SCHEMA, app, lock=lock)
        if schema is None:
            return _check_schema if app == APP_CONFIG_SCHEMA else _anything
        known = self._compiled.get(app)
        if known is None or known[0] != schema.etag:
            known = (schema.etag, _compile(app, schema.body))
            self._compiled[app] = known
        return known[1]

    async def check(self, app: UUID, body: Any) -> None:
        """Raises ``Invalid`` (``schema_violation``, ``where`` a JSON pointer) unless the body fits.

        In a thread: a body may be large, and a schema of somebody's own demanding.
        """
        await self.check_all({app: body})

    async def check_all(self, bodies: Mapping[UUID, Any]) -> None:
        """``check`` for one body of each of several Applications, in one reading."""
        async with self._database.read() as connection:
            checks = [(await self._check_of(connection, app), body) for app, body in bodies.items()]
        for check, body in checks:
            await asyncio.to_thread(check, body)


def _anything(body: Any) -> None:
    """Any JSON value."""
    _size_of(body)


def _size_of(body: Any) -> int:
    """The characters of a JSON value; Python's own reader lets NaN through, which is none."""
    try:
        return len(json.dumps(body, allow_nan=False))
    except ValueError as error:
        raise Invalid("The entry holds a number that JSON does not have.", code="schema_violation") from error


def _compile(app: UUID, schema: Any) -> Check:
    application = APPLICATIONS.get(app)
    name = application.name if application else str(app)

    def check(body: Any) -> None:
        size = _size_of(body)
        try:
            violation = violation_of(schema, body, size=size)
        except OverflowError as error:
            raise Invalid("The entry holds a number that is too large.", code="schema_violation") from error
        except TooCostly:
            raise Invalid(
                f"To check this entry against the schema of {name} takes too many steps.",
                code="schema_too_costly",
                hint="Make the entry smaller, or the schema simpler.",
            ) from None
        except UNUSABLE as error:
            raise Stalled(
                f"The schema of {name} cannot be used: {_short(str(error))}",
                code="schema_broken",
                hint="Correct the Config schema entry of the Application.",
            ) from error
        if violation is not None:
            raise _invalid(f"The entry does not fit the schema of {name}", violation)
        if app == APP_CONFIG_SCHEMA:
            _check_schema(body)

    return check


def _check_schema(body: Any) -> None:
    try:
        violation = schema_violation_of(body)
        if violation is not None:
            raise _invalid("This is no JSON Schema", violation)
        # One that nothing can be checked against would stand in the way of every entry of its Application.
        for sample in SAMPLES:
            violation_of(body, sample)
    except TooCostly:
        raise Invalid(
            "This JSON Schema takes too many steps.",
            code="schema_too_costly",
            hint="Make it smaller, or have it refer to itself less often.",
        ) from None
    except UNUSABLE as error:
        raise Invalid(
            f"This JSON Schema cannot be used: {_short(str(error))}.",
            code="schema_violation",
            hint="What it refers to has to stand in it, and it must not refer to itself in a circle. Its patterns "
            "have to be those of RE2: no look-around, no back references.",
        ) from error


def _invalid(what: str, violation: Violation) -> Invalid:
    return Invalid(
        f"{what}: {_short(violation.message)}.",
        code="schema_violation",
        where="".join(f"/{_escaped(str(part))}" for part in violation.absolute_path),
    )


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + "…"


def _escaped(part: str) -> str:
    """One step of a JSON pointer, RFC 6901."""
    return part.replace("~", "~0").replace("/", "~1")
