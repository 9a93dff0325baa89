"""Routes and what they call are handed rooms. Only what wires a gateway knows the whole of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WHOLE = {"Gateway", "Live"}
IN_STATE = {"gateway", "live"}
WIRING = {f"api/{name}.py" for name in ("__main__", "app", "gateway", "lifespan", "live", "rooms")}


def _whole(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a module names the whole gateway, or looks for it in the state of the application."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in WHOLE:
                yield node.lineno, name
            case ast.Constant(value=str(name)) if name in WHOLE:
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.alias(name=name) if name in WHOLE:
                yield node.lineno, name
            case ast.Attribute(ast.Attribute(attr="state") | ast.Name("state"), name) if name in IN_STATE:
                yield node.lineno, f"state.{name}"


def test_no_route_and_nothing_that_routes_call_is_handed_the_whole_gateway(
    root: Path, product_modules: list[Path]
) -> None:
    found = []
    for path in product_modules:
        place = path.relative_to(root).as_posix()
        if place.startswith("api/") and place not in WIRING:
            found += [f"{place}:{line}: {what}" for line, what in _whole(ast.parse(path.read_text("utf-8")))]
    assert found == []


def test_what_may_know_the_whole_gateway_does(root: Path) -> None:
    assert {place for place in WIRING if not [*_whole(ast.parse((root / place).read_text("utf-8")))]} == set()


@pytest.mark.parametrize(
    "line",
    [
        "from api.gateway import Gateway",
        "from api.live import Live as State",
        "def shown(gateway: Gateway) -> None: ...",
        "def shown(live: 'Live') -> None: ...",
        "import api.live\nseen: api.live.Live",
        "closing = request.app.state.live.closing",
        "state = request.app.state\noffer = state.gateway.offer",
    ],
)
def test_a_module_that_reaches_for_the_whole_gateway_would_be_found(line: str) -> None:
    assert [*_whole(ast.parse(line))]
