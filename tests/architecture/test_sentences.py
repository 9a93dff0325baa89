"""What an error tells a person is a sentence."""

import ast
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

OURS = frozenset({"EdgewrightError"})
OF_TEMPORAL = "ApplicationError"
"""What Temporal makes of one; workflows raise it themselves."""
COMMAND = "edgewright "
"""A hint may begin with what to type."""
ENDS = ("", ".", "!", "?")


def _annotation(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in function.args.args if each.arg != "self"]


def _errors(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Every class of errors, with the parameters that it takes by place."""
    classes = {
        node.name: node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    bases = {name: {_annotation(base) for base in node.bases} for name, node in classes.items()}
    errors = OURS
    while more := {name for name in bases if bases[name] & errors} - errors:
        errors |= more
    found = {name: ["detail"] for name in (OF_TEMPORAL, *errors)}
    for name in errors & classes.keys():
        for node in classes[name].body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                found[name] = _parameters(node)
    return found


def _makers(tree: ast.Module, errors: Container[str]) -> dict[str, list[str]]:
    """Functions of a file that make an error of a detail, with their parameters."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    made = {node.name: _parameters(node) for node in functions if _annotation(node.returns) in errors}
    return {name: parameters for name, parameters in made.items() if "detail" in parameters}


def _literals(value: ast.expr) -> Iterator[tuple[str, str]]:
    """Beginnings and ends of what a text may be; empty where only a run can tell."""
    match value:
        case ast.IfExp(body=one, orelse=other):
            yield from _literals(one)
            yield from _literals(other)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = [last for _, last in _literals(right)]
            yield from ((first, last) for first, _ in _literals(left) for last in ends)
        case ast.Constant(value=str(text)):
            yield text, text
        case ast.JoinedStr(values=[first, *_] as parts):
            begin, end = (str(each.value) if isinstance(each, ast.Constant) else "" for each in (first, parts[-1]))
            yield begin, end
        case _:
            yield "", ""


def _fragments(trees: Mapping[str, ast.Module]) -> list[str]:
    """Details and hints that do not begin with a capital, or do not end with a full stop."""
    errors = _errors(trees)
    makers = {path: _makers(tree, errors) for path, tree in trees.items()}
    public = {name: made[name] for made in makers.values() for name in made if not name.startswith("_")}
    found = []
    for path, tree in trees.items():
        speakers = errors | public | makers[path]
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            names = speakers.get(_annotation(call.func).rpartition(".")[2], [])
            said: dict[str | None, ast.expr] = {**dict(zip(names, call.args, strict=False))}
            said |= {each.arg: each.value for each in call.keywords if names}
            for argument in ("detail", "hint"):
                for first, last in _literals(said.get(argument, ast.Constant(""))):
                    begins = not first[:1].islower() or (argument == "hint" and first.startswith(COMMAND))
                    if not begins or last[-1:] not in ENDS:
                        found.append(f"{path}:{call.lineno}: {argument}: {first}...{last}")
    return sorted(found)


def test_what_an_error_tells_a_person_is_a_sentence(root: Path, product_modules: list[Path]) -> None:
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_text("utf-8")) for path in product_modules}
    assert _fragments(trees) == []


def test_a_fragment_would_be_found() -> None:
    tree = ast.parse(
        "class Refused(EdgewrightError): ...\n"
        "class Narrow(Refused):\n    def __init__(self, reason): super().__init__(f'{reason}.')\n"
        "def too_large(detail) -> Refused: return Refused(detail)\n"
        "Refused('no capital.')\n"
        "Refused('No full stop')\n"
        "errors.Refused(f'{name} is {what} here')\n"
        "Refused('Good.' if well else 'not good.')\n"
        "Refused('Good.', hint='do it')\n"
        "too_large('too large')\n"
        "ApplicationError('busy', type='busy')\n"
        "Refused(f'Good: {reason}', hint='edgewright up starts it.')\n"
        "Narrow('a reason')\n"
        "print('not an error')\n"
    )
    assert [line.split(":")[1] for line in _fragments({"room.py": tree})] == ["10", "11", "5", "6", "7", "8", "9"]
