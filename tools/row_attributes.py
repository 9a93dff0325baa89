"""A plugin for mypy that refuses to read a column by an attribute of a ``Row`` of SQLAlchemy.

A ``Row`` has whatever attribute it is asked for, so that mypy takes the name of a column that does not exist. In the
adapter of the database, each read makes a named tuple of the row, or takes its values apart in their order.
"""

from collections.abc import Callable

from mypy.plugin import AttributeContext, MethodContext, Plugin
from mypy.types import AnyType, Instance, Type, TypeOfAny, UnpackType, get_proper_type

ROW = "sqlalchemy.engine._row_cy.BaseRow."
"""The class that answers for any attribute of a ``Row``."""
EXECUTE = {
    f"sqlalchemy.{place}.execute" for place in ("ext.asyncio.engine.AsyncConnection", "engine.base.Connection")
}
PLACE = "edgewright/adapters/database/"


class RowAttributes(Plugin):
    """Refuses attributes of rows in the adapter of the database."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return _refuse if fullname.startswith(ROW) and not fullname.removeprefix(ROW).startswith("_") else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _rows if fullname in EXECUTE else None


def _refuse(context: AttributeContext) -> Type:
    if PLACE in context.api.path:
        context.api.fail("Make a record of the row: a Row has no columns with types", context.context)
    return context.default_attr_type


def _rows(context: MethodContext) -> Type:
    """The same rows, whatever is selected: mypy knows no type of an answer that two overloads may give."""
    answer = get_proper_type(context.default_return_type)
    if PLACE not in context.api.path or not isinstance(answer, Instance):
        return answer
    values = UnpackType(context.api.named_generic_type("builtins.tuple", [AnyType(TypeOfAny.explicit)]))
    if answer.type.name != "Coroutine":
        return answer.copy_modified(args=[values])
    result = get_proper_type(answer.args[-1])
    if not isinstance(result, Instance):
        return answer
    return answer.copy_modified(args=[*answer.args[:-1], result.copy_modified(args=[values])])


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    return RowAttributes
