"""The forms in which commands show what there is, chosen with ``--output``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from edgewright.cli.commands.options import Form, contradiction
from edgewright.cli.commands.screen import (
    Column,
    Document,
    clean,
    result,
    room_on_terminal,
    show_json,
    show_lines,
    show_yaml,
    table_lines,
)

PEOPLES_FORMS = frozenset({Form.TABLE, Form.WIDE})


@dataclass(frozen=True)
class Listing:
    """How things of one kind are listed.

    Args:
        columns: what fits 80 columns of a terminal, where long cells are cut.
        wide: everything, never cut.
        name: by what a command takes one of them.
    """

    columns: tuple[Column, ...]
    wide: tuple[Column, ...]
    name: Callable[[Document], str]


def form_of(output: Form, *, as_json: bool) -> Form:
    """The form that ``--output`` and ``--json`` ask for together.

    Raises:
        CliError: they contradict each other.
    """
    if as_json and output not in {Form.TABLE, Form.JSON}:
        raise contradiction(output)
    return Form.JSON if as_json else output


def show_document(document: object, names: Sequence[str], form: Form, *, one_of_many: bool = False) -> bool:
    """Shows a document of the API in a form for machines; false, and nothing is shown, if people are to read it.

    Args:
        names: for ``--output name``, which shows each once.
        one_of_many: others come before or after it: one line of JSON, or one document of a YAML stream.
    """
    if form is Form.JSON:
        show_json(document, indent=None if one_of_many else 2, names=names)
    elif form is Form.YAML:
        show_yaml(document, one_of_many=one_of_many)
    elif form is Form.NAME:
        for name in dict.fromkeys(names):
            result(clean(name))
    else:
        return False
    return True


def show_listing(
    listing: Listing, document: object, items: Sequence[Document], form: Form, *, fold: bool = False
) -> bool:
    """Shows a list; false if people are to read it, who may be told more.

    Args:
        document: of the API; what machines get.
        items: of it, one for each line. A list without any shows no titles.
        fold: the last column is folded on a terminal, and not cut.
    """
    if show_document(document, [listing.name(item) for item in items], form):
        return True
    if items:
        show_lines(listing_lines(listing, items, form, room=room_on_terminal(), fold=fold))
    return False


def listing_lines(
    listing: Listing, items: Sequence[Document], form: Form, *, room: int | None, fold: bool = False
) -> list[Text]:
    """The lines of a list for people."""
    if form is Form.WIDE:
        return table_lines(listing.wide, items)
    return table_lines(listing.columns, items, room=room, fold=fold)
