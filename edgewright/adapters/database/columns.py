"""Column types that mean the same on every database, and how what belongs to a table is named."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, MetaData, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from edgewright.domain.bounds import OtherWord
from edgewright.domain.kubernetes_names import StoredPlace, secret_place
from edgewright.ports.git_server import CommitId

POSITION = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite makes only a column of type INTEGER the key of the table itself."""

DOCUMENT = JSON()
"""Any JSON value, null included. Not PostgreSQL's ``jsonb``, which loses the order of keys."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: aware in Python, UTC in the database; microseconds on PostgreSQL and in SQLite's text."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone means nothing to a database")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


MOMENT = UtcDateTime()

E = TypeVar("E", bound=StrEnum)


class Choice(TypeDecorator[E]):
    """A member of an enumeration: its text in the database. Nothing else is written, for nobody could read it."""

    impl = String
    cache_ok = True

    def __init__(self, members: type[E], length: int) -> None:
        super().__init__(length)
        self.members = members
        self._by_text: dict[str, E] = {member.value: member for member in members}

    def process_bind_param(self, value: E | str | None, dialect: Dialect) -> str | None:
        return None if value is None else self.members(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> E | None:
        # Asking the enumeration takes four times as long as finding the member here.
        return None if value is None else self._by_text.get(value) or self.members(value)


class OpenChoice(TypeDecorator[E | OtherWord]):
    """The same for a list that grows, in rows that are kept for ever.

    A word that only a newer program knows is read as it is, as ``WordOf`` does in a message.
    """

    impl = Text
    cache_ok = True

    def __init__(self, members: type[E]) -> None:
        super().__init__()
        self.members = members
        self._by_text: dict[str, E] = {member.value: member for member in members}

    def process_bind_param(self, value: E | str | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> E | OtherWord | None:
        return None if value is None else self._by_text.get(value) or OtherWord(value)


class PlaceText(TypeDecorator[StoredPlace]):
    """A Secret or one value of it: its text in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: StoredPlace | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StoredPlace | None:
        return None if value is None else secret_place(value)


class PlaceTexts(TypeDecorator[list[StoredPlace]]):
    """The same for several: an array of texts."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Sequence[StoredPlace] | None, dialect: Dialect) -> list[str] | None:
        return None if value is None else [str(place) for place in value]

    def process_result_value(self, value: Sequence[str] | None, dialect: Dialect) -> list[StoredPlace] | None:
        return None if value is None else [secret_place(text) for text in value]


class CommitsByPlace(TypeDecorator[dict[StoredPlace, CommitId]]):
    """The same, each with a commit: an object with texts as its names."""

    impl = JSON
    cache_ok = True

    def process_bind_param(
        self, value: Mapping[StoredPlace, CommitId] | None, dialect: Dialect
    ) -> dict[str, CommitId] | None:
        return None if value is None else {str(place): commit for place, commit in value.items()}

    def process_result_value(
        self, value: Mapping[str, CommitId] | None, dialect: Dialect
    ) -> dict[StoredPlace, CommitId] | None:
        return None if value is None else {secret_place(text): commit for text, commit in value.items()}


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
