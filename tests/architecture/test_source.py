"""What the style demands of every source file, where no linter demands it."""

import ast
import importlib
import io
import pkgutil
import re
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import workflows

LONGEST_FILE = 400
TABLES = "edgewright/adapters/database/tables.py"
"""Declarations, one after the other: that file may be as long as there are columns."""
SHARED_FOLDERS = ("bench", "tools", "tests/support", "tests/real/edge_cluster")
"""What others import, beside the product."""
EMPTY_WORDS = {"helper", "helpers", "manager", "managers", "misc", "util", "utils", "stuff"}
EMPTY_NAMES = {"data", "info", "process"}
"""Fine as a part of a name, not as the whole of one."""
SUPPRESSION = re.compile(
    r"#\s*(?:ruff:\s*)?(?:noqa|type:\s*ignore)"
    r"(?P<codes>(?::\s*[A-Z]+\d*\b(?:[,\s]+[A-Z]+\d+)*|\[[a-z0-9, -]+\])?)"
    r"(?P<reason>.*)"
)
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
LEFT_OUT = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b|unittest\.skip")
AGAINST_REAL_COMPONENTS = re.compile(r"^pytestmark = .*\bpytest\.mark\.real\b", re.MULTILINE)
HOME_OF_SOMEBODY = re.compile(r"(?<![\w.$}~-])/(home|Users|root|work)/\w")


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()))


def _definitions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def _at(root: Path, path: Path, line: int, what: str) -> str:
    return f"{path.relative_to(root)}:{line}: {what}"


def _swallows_everything(handler: ast.ExceptHandler) -> bool:
    """Whether a clause takes every exception, and does more with it than tidy up and pass it on."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"" if kind is None else ast.unparse(kind) for kind in kinds}
    last = handler.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return bool(names & {"", "Exception", "BaseException"}) and not passes_on


def test_no_file_of_the_product_is_too_long(root: Path, product_modules: list[Path]) -> None:
    lengths = {
        path.relative_to(root).as_posix(): len(path.read_text("utf-8").splitlines()) for path in product_modules
    }
    del lengths[TABLES]
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_name_says_only_that_something_is_handled(root: Path, product_modules: list[Path]) -> None:
    found = []
    for path in product_modules:
        names = [(1, path.stem), *_definitions(ast.parse(path.read_text("utf-8")))]
        found += [
            _at(root, path, line, name)
            for line, name in names
            if _words(name) & EMPTY_WORDS or name.strip("_").lower() in EMPTY_NAMES
        ]
    assert found == []


def _repeated_classes(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Names that more than one class has, and the files they are in."""
    places = defaultdict[str, list[str]](list)
    for place, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_classes_share_a_name(root: Path, product_modules: list[Path]) -> None:
    """Classes of a test's own file are left out: nobody else imports them."""
    shared = [path for folder in SHARED_FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    files = {path.relative_to(root).as_posix(): path for path in (*product_modules, *shared)}
    assert all(any(name.startswith(f"{folder}/") for name in files) for folder in SHARED_FOLDERS)
    assert _repeated_classes({name: ast.parse(path.read_text("utf-8")) for name, path in files.items()}) == {}


def test_a_class_name_that_occurs_twice_would_be_found() -> None:
    trees = {"one.py": ast.parse("class Lane: ...\nclass Door: ..."), "two.py": ast.parse("class Lane: ...")}
    assert _repeated_classes(trees) == {"Lane": ["one.py", "two.py"]}


def test_every_suppressed_rule_has_its_code_and_its_reason(root: Path, all_modules: list[Path]) -> None:
    found = []
    for path in all_modules:
        for line, comment in _comments(path):
            for match in SUPPRESSION.finditer(comment):
                reason = match["reason"].strip(" #-:—")
                if not match["codes"] or len(reason) < len("a reason"):
                    found.append(_at(root, path, line, comment))
    assert found == []


def test_every_rule_that_is_off_for_a_whole_folder_has_its_reason(root: Path) -> None:
    text = (root / "pyproject.toml").read_text("utf-8")
    lists = re.findall(r"^(?:ignore|ignore_imports) = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    lists += re.findall(r"^\[tool\.ruff\.lint\.per-file-ignores\]\n(.*?)(?:^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    lines = [line for part in lists for line in part.splitlines() if line.strip()]
    assert len(lists) >= 2
    assert [line for line in lines if "#" not in line] == []


def test_the_type_checker_is_as_strict_everywhere(root: Path, all_modules: list[Path]) -> None:
    told = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    seen = tuple(name if name.endswith(".py") else f"{name}/" for name in told["files"])
    left_out = re.compile("|".join(told["exclude"]))
    names = [path.relative_to(root).as_posix() for path in all_modules]
    unseen = [name for name in names if not name.startswith(seen) or left_out.search(name)]
    assert unseen == ["tests/wire/openapi/python_client.py"], "its own test checks it"
    assert told["strict"] is True
    assert not {"overrides", "ignore_errors", "ignore_missing_imports", "follow_imports"} & told.keys()


def test_swallowing_everything_has_its_reason_on_the_line(root: Path, all_modules: list[Path]) -> None:
    found = []
    for path in all_modules:
        reasons = {line for line, comment in _comments(path) if len(comment) > len("# a reason")}
        found += [
            _at(root, path, node.lineno, "catches everything")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ExceptHandler) and _swallows_everything(node) and node.lineno not in reasons
        ]
    assert found == []


def test_nothing_unfinished_is_left_and_no_test_is_left_out(root: Path, authored_files: list[Path]) -> None:
    found = []
    for path in authored_files:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if UNFINISHED.search(line) or (path.suffix == ".py" and path != Path(__file__) and LEFT_OUT.search(line)):
                found.append(_at(root, path, number, line.strip()))
    assert found == []


def test_every_file_in_the_folder_of_real_components_bears_their_mark(root: Path) -> None:
    """`make test-real` runs what is marked there, and `make test` nothing: a file without the mark never runs."""
    files = [*(root / "tests" / "real").rglob("test_*.py")]
    assert len(files) > 30
    unmarked = [path for path in files if not AGAINST_REAL_COMPONENTS.search(path.read_text("utf-8"))]
    assert [str(path.relative_to(root)) for path in unmarked] == []


def test_no_path_of_somebodys_machine_is_in_the_project(root: Path, authored_files: list[Path]) -> None:
    found = [
        _at(root, path, number, line.strip())
        for path in authored_files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if path != Path(__file__) and HOME_OF_SOMEBODY.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: S603",
        "# type: ignore",
        "# type: ignore[arg-type]",
        "# type: ignore  # because of something",
        "# noqa because of something",
    ],
)
def test_a_bare_suppression_would_be_found(comment: str) -> None:
    match = SUPPRESSION.search(comment)
    assert match is not None
    assert not match["codes"] or len(match["reason"].strip(" #-:—")) < len("a reason")


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("except:\n    pass", True),
        ("except Exception:\n    pass", True),
        ("except (OSError, BaseException) as error:\n    raise ValueError from error", True),
        ("except BaseException:\n    tidy_up()\n    raise", False),
        ("except OSError:\n    pass", False),
    ],
)
def test_a_clause_that_swallows_everything_would_be_found(clause: str, found: bool) -> None:
    tree = ast.parse(f"try:\n    1\n{clause}")
    handler = next(node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    assert _swallows_everything(handler) is found


LOGGED = re.compile(r"\b_?log\.(debug|info|warning|error|exception|critical)$")


def _events(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names of log lines, with the lines that log them; a name that is made up while it runs is empty."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and LOGGED.search(ast.unparse(node.func)):
            first = node.args[0]
            yield node.lineno, first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _is_headline(event: str) -> bool:
    """Whether an operator can search a log for it: short, the same each time, no sentence."""
    return bool(re.fullmatch(r"(?!(?:a|an|the|this) )[a-z][A-Za-z0-9_,: ]{1,59}", event))


def test_log_lines_have_names_that_an_operator_can_search_for(root: Path, product_modules: list[Path]) -> None:
    logged = [(path, *found) for path in product_modules for found in _events(ast.parse(path.read_text("utf-8")))]
    assert len(logged) > 30
    assert [_at(root, path, line, event) for path, line, event in logged if not _is_headline(event)] == []


@pytest.mark.parametrize(
    ("call", "fine"),
    [
        ("_log.error('cannot write to the database', reason=reason)", True),
        ("log.warning('upkeep_failed', cluster=cluster)", True),
        ("_log.error('the database takes nothing')", False),
        ("_log.error('a lane of secrets broke off')", False),
        ("self._log.info(f'{cluster} is detached')", False),
    ],
)
def test_a_log_line_that_is_hard_to_search_for_would_be_found(call: str, fine: bool) -> None:
    [(_, event)] = _events(ast.parse(call))
    assert _is_headline(event) is fine


def _begins_with_of(tree: ast.Module) -> list[int]:
    """Lines of docstrings that say whose a thing is, and leave open what it is."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and node.value.value.startswith("Of ")
    ]


def test_no_docstring_says_only_whose_a_thing_is(root: Path, all_modules: list[Path]) -> None:
    found = [
        _at(root, path, line, "begins with Of")
        for path in all_modules
        for line in _begins_with_of(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


def test_a_docstring_that_says_only_whose_a_thing_is_would_be_found() -> None:
    code = 'PORT = 1\n"""Of the gateway."""\nclass Watch:\n    """Of one edge."""\nclass Door:\n    """Leads in."""\n'
    assert _begins_with_of(ast.parse(code)) == [2, 4]


def test_workflows_share_nothing_that_changes() -> None:
    """Without the sandbox one workflow would see what another left in a module (ADR 8); classes and functions too."""
    changeable = (list, dict, set, bytearray)
    found = [
        f"{name}.{where}"
        for _, name, _ in pkgutil.iter_modules(workflows.__path__, "workflows.")
        for holder in _holders(importlib.import_module(name))
        for where, value in vars(holder).items()
        if isinstance(value, changeable) and not (where.startswith("__") or where.isupper())
    ]
    assert found == []


def _holders(module: ModuleType) -> list[object]:
    """The module, and its own classes."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    return [module, *(value for value in own if isinstance(value, type))]


def test_every_timer_of_a_workflow_says_what_it_is_for(root: Path) -> None:
    found, timers = [], 0
    for path in sorted((root / "workflows").glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            given = {keyword.arg for keyword in node.keywords}
            wanted = {"workflow.sleep": "summary", "workflow.wait_condition": "timeout_summary"}
            called = ast.unparse(node.func)
            if called == "workflow.sleep" or (called == "workflow.wait_condition" and "timeout" in given):
                timers += 1
                if wanted[called] not in given:
                    found.append(_at(root, path, node.lineno, f"{called} without {wanted[called]}"))
            if called == "asyncio.sleep":
                found.append(_at(root, path, node.lineno, "a timer that cannot say what it is for"))
    assert found == []
    assert timers >= 9
