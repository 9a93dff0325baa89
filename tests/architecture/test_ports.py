"""A port has one name in the whole product: that of its field in ``StoredPorts``."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from edgewright.ports.fleet import Fleet
from edgewright.ports.stored import StoredPorts
from edgewright.ports.webhook_delivery import WebhookSender

NAMES = {each.type.__name__: each.name for each in fields(StoredPorts) if isinstance(each.type, type)} | {
    Fleet.__name__: "fleet",
    WebhookSender.__name__: "sender",
}
"""By the type of the port; the last two are of no storage."""


def _other_names(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Parameters and fields that call a port otherwise."""
    for place, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.arg(arg=name, annotation=ast.Name(id=port)):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=port)):
                    pass
                case _:
                    continue
            if name != NAMES.get(port, name):
                yield f"{place}:{node.lineno}: {name} is a {port}, which is called {NAMES[port]}"


def test_every_stored_port_is_known_here() -> None:
    assert {"fleet", "sender"} | {each.name for each in fields(StoredPorts)} == set(NAMES.values())


def test_a_port_has_the_same_name_everywhere(root: Path, product_modules: list[Path]) -> None:
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_text("utf-8")) for path in product_modules}
    assert list(_other_names(trees)) == []


def test_another_name_would_be_found() -> None:
    tree = ast.parse(
        "def read(entries: ConfigStore, config: ConfigStore): ...\nclass Room:\n    access: EdgeAccess\n"
    )
    found = sorted(_other_names({"room.py": tree}))
    assert [line.partition(" ")[0] for line in found] == ["room.py:1:", "room.py:3:"]
