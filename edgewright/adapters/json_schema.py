"""JSON Schema in bounded time: whoever writes a schema must not stop the centre.

Patterns are those of RE2, which never tries a text twice: look-around and back references do not exist. All else that
takes time is counted in steps, and there is a limit to them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import re2  # type: ignore[import-untyped] # has no type information
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.exceptions import ValidationError as Violation
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped] # has no type information
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from edgewright.domain.reasons import form_of

MOST_STEPS = 100_000
"""In one validation: keywords looked at, and what else takes some microseconds."""
MOST_VIOLATIONS = 20
"""Violations of one value that are looked at; the plainest of them is told."""
PATTERN_MEMORY = 1024 * 1024
"""Bytes that RE2 may use for one pattern."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
REFERENCE_STEPS = 5
LONGEST_PATTERN = 2000
LONGEST_FORMATTED = 4000
"""Characters of a text that has a format."""
INSTRUCTIONS_PER_STEP = 1000
CHARACTERS_PER_STEP = 100
UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
PARTS_PER_STEP = 4
"""Members or items that a keyword goes through, whatever it does with each."""
COMPARED_PER_STEP = 50
"""Characters, as JSON, of an object or array that is compared as a whole."""
LOOKED_UP_PER_STEP = 200
"""Names among which another one is looked for."""
ADDITIONAL = "additionalProperties"
GO_THROUGH = frozenset({ADDITIONAL, "additionalItems", "contains", "items", "propertyNames", *UNEVALUATED})
"""Keywords that look at each member or item of a value, even if only to find that anything may stand there."""
PATTERN, PATTERNS, PROPERTIES = "pattern", "patternProperties", "properties"

Keyword = Callable[[Any, Any, Any, Any], Iterable[Violation] | None]
Draft = type[Validator]
OURS: Draft = Draft202012Validator
"""The draft of every schema that Edgewright itself goes by."""


class PatternRefused(Exception):
    """A pattern that RE2 does not take, or a keyword whose patterns RE2 would not see."""


class TooCostly(Exception):
    """The validation takes more than ``MOST_STEPS``."""


UNUSABLE = (Unresolvable, SchemaError, RecursionError, PatternRefused)
"""What a schema raises whose references lead nowhere, or in a circle, or whose patterns are none here."""


Counts = Callable[[Violation], bool]


def _any_violation(_violation: Violation) -> bool:
    return True


class Steps:
    """What may still be spent on one validation, or on several together."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooCostly


class _Effort:
    """What one validation costs; ``violation``: what telling of one costs, which repeats the value."""

    def __init__(self, size: int, steps: Steps) -> None:
        self.spend = steps.spend
        self.violation = 1 + size // CHARACTERS_PER_STEP


_effort: ContextVar[_Effort] = ContextVar("effort")


def violation_of(
    schema: Any,
    value: Any,
    *,
    size: int | None = None,
    draft: Draft = OURS,
    formats: bool = True,
    counts: Counts = _any_violation,
    steps: Steps | None = None,
) -> Violation | None:
    """The plainest of the reasons why a value does not fit a schema; None: it fits.

    Args:
        size: of the value as JSON, in characters; None: to be found out.
        formats: whether a text that has not the form that its ``format`` says is a reason.
        counts: whether one of the reasons is one; of those inside another, only that one is asked about.
        steps: what this validation shares with others; None: nothing.

    Raises:
        TooCostly, PatternRefused, and what ``jsonschema`` raises for references that lead nowhere.
    """
    # The registry holds the specifications only: a schema that refers elsewhere must not make us fetch it.
    checker = draft.FORMAT_CHECKER if formats else None
    validator = _bounded(draft)(schema, registry=REGISTRY, format_checker=checker)
    return _violation(validator, value, len(json.dumps(value)) if size is None else size, counts, steps)


def schema_violation_of(schema: Any, *, draft: Draft = OURS) -> Violation | None:
    """The plainest of the reasons why a value is no schema; None: it is one.

    Raises:
        TooCostly: it is too large.
        PatternRefused: it holds a pattern that is none here.
    """
    found = _violation(_bounded(draft)(draft.META_SCHEMA, registry=REGISTRY), schema, len(json.dumps(schema)))
    if found is None:
        _check_patterns(schema, draft)
    return found


def unexpected_names(violation: Violation) -> list[str]:
    """The members of an object that ``additionalProperties: false`` refuses; of another violation, none."""
    schema, instance = violation.schema, violation.instance
    if violation.validator != ADDITIONAL or not isinstance(schema, Mapping) or not isinstance(instance, Mapping):
        return []
    patterns, named = list(schema.get(PATTERNS, ())), schema.get(PROPERTIES, {})
    found = (each for each in instance if each not in named)
    return [each for each in found if not any(_compiled(pattern).search(each) for pattern in patterns)]


def _violation(
    validator: Validator, value: Any, size: int, counts: Counts = _any_violation, steps: Steps | None = None
) -> Violation | None:
    found: list[Violation] = []
    with _counted(size, steps or Steps()):
        try:
            found.extend(islice(filter(counts, validator.iter_errors(value)), MOST_VIOLATIONS))
        except TooCostly:
            if not found:
                raise
    plainest: Violation | None = best_match(found)
    return plainest


@contextmanager
def _counted(size: int, steps: Steps) -> Iterator[None]:
    token = _effort.set(_Effort(size, steps))
    try:
        yield
    finally:
        _effort.reset(token)


@cache
def _bounded(draft: Draft) -> type[Validator]:
    """The validator of a draft, with keywords that count and patterns of RE2."""
    ours: dict[str, Keyword] = {
        PATTERN: _pattern,
        PATTERNS: _pattern_properties,
        PROPERTIES: _properties,
        ADDITIONAL: _additional_properties,
        "required": _required,
        "uniqueItems": _unique_items,
        "enum": _enum,
        "const": _const,
        "not": _not,
        **{name: _one_of(draft.VALIDATORS[name]) for name in ("oneOf",) if name in draft.VALIDATORS},
        "format": _format,
        **{name: _unevaluated(draft.VALIDATORS[name]) for name in UNEVALUATED if name in draft.VALIDATORS},
    }
    keywords = {**draft.VALIDATORS, **{name: ours[name] for name in ours if name in draft.VALIDATORS}}
    counting = {name: _counting(name, keyword) for name, keyword in keywords.items()}
    validator: type[Validator] = extend(draft, counting)  # type: ignore[no-untyped-call] # as the library
    return validator


def _counting(name: str, keyword: Keyword) -> Keyword:
    steps = REFERENCE_STEPS if name in REFERENCES else 1

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Violation]:
        effort = _effort.get()
        parts = _parts(value) + (_parts(instance) if name in GO_THROUGH else 0)
        effort.spend(steps + parts // PARTS_PER_STEP)
        for violation in keyword(validator, value, instance, schema) or ():
            effort.spend(effort.violation)
            yield violation

    return check


def _parts(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _comparison(instance: Any) -> int:
    """Steps of comparing a value with another one, of which the smaller decides."""
    return 1 + (len(json.dumps(instance)) // COMPARED_PER_STEP if isinstance(instance, dict | list) else 0)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Violation]:
    if validator.is_type(instance, "string") and not _found(pattern, instance):
        yield Violation(f"{instance!r} {form_of(pattern)}")


def _properties(validator: Any, properties: Any, instance: Any, _schema: Any) -> Iterator[Violation]:
    """As the library, which does not say where a value stands that may not be there at all."""
    if not validator.is_type(instance, "object"):
        return
    for name, subschema in properties.items():
        if name in instance and subschema is False:
            yield Violation(f"{name!r} is not allowed", path=[name])
        elif name in instance:
            yield from validator.descend(instance[name], subschema, path=name, schema_path=name)


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Violation]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Violation]:
    if not validator.is_type(instance, "object"):
        return
    patterns = list(schema.get(PATTERNS, ()))
    named = schema.get("properties", {})
    extras = [name for name in instance if name not in named and not any(_found(each, name) for each in patterns)]
    if validator.is_type(wanted, "object"):
        for name in extras:
            yield from validator.descend(instance[name], wanted, path=name)
    elif not wanted and extras:
        names = ", ".join(repr(name) for name in extras)
        are = "is not a field that is" if len(extras) == 1 else "are not fields that are"
        yield Violation(f"{names} {are} known here")


def _required(validator: Any, names: Any, instance: Any, _schema: Any) -> Iterator[Violation]:
    if validator.is_type(instance, "object"):
        yield from (Violation(f"{name!r} is required") for name in names if name not in instance)


def _unique_items(validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[Violation]:
    if wanted and validator.is_type(instance, "array"):
        effort, seen = _effort.get(), set[str]()
        for item in instance:
            text = json.dumps(_comparable(item), sort_keys=True)
            effort.spend(1 + len(text) // COMPARED_PER_STEP)
            seen.add(text)
        if len(seen) < len(instance):
            yield Violation(f"{instance!r} has non-unique elements")


def _not(validator: Any, unwanted: Any, instance: Any, _schema: Any) -> Iterator[Violation]:
    """As the library, which would show the schema."""
    if validator.evolve(schema=unwanted).is_valid(instance):
        yield Violation(f"{instance!r} is not allowed here")


def _one_of(keyword: Keyword) -> Keyword:
    """As the library, which would show the schemas that fit."""

    def check(validator: Any, choices: Any, instance: Any, schema: Any) -> Iterator[Violation]:
        for violation in keyword(validator, choices, instance, schema) or ():
            if not violation.context:
                violation.message = f"{instance!r} fits several of the alternatives"
            yield violation

    return check


def _const(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Violation]:
    _effort.get().spend(_comparison(instance))
    yield from Draft202012Validator.VALIDATORS["const"](validator, wanted, instance, schema) or ()


def _enum(validator: Any, allowed: Sequence[Any], instance: Any, schema: Any) -> Iterator[Violation]:
    _effort.get().spend(len(allowed) * _comparison(instance))
    yield from Draft202012Validator.VALIDATORS["enum"](validator, allowed, instance, schema) or ()


def _format(validator: Any, name: str, instance: Any, schema: Any) -> Iterator[Violation]:
    if validator.format_checker is None:
        return
    if validator.is_type(instance, "string") and len(instance) > LONGEST_FORMATTED:
        yield Violation(f"A text of {len(instance)} characters is no {name!r}")
        return
    yield from Draft202012Validator.VALIDATORS["format"](validator, name, instance, schema) or ()


def _unevaluated(keyword: Keyword) -> Keyword:
    """Looks for each name in a list of those that another keyword has looked at, which all of the schema makes."""

    def check(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Violation]:
        effort = _effort.get()
        effort.spend(len(json.dumps(schema)) // COMPARED_PER_STEP)
        effort.spend(_parts(instance) ** 2 // LOOKED_UP_PER_STEP)
        yield from keyword(validator, wanted, instance, schema) or ()

    return check


def _comparable(value: Any) -> Any:
    """The value with 1 for 1.0, which JSON Schema takes for the same."""
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _found(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    _effort.get().spend(1 + len(text) * compiled.programsize // INSTRUCTIONS_PER_STEP)
    return compiled.search(text) is not None


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        if len(pattern) > LONGEST_PATTERN:
            raise PatternRefused(f"a pattern has more than {LONGEST_PATTERN} characters")
        return re2.compile(pattern, options)
    except re2.error as error:
        raise PatternRefused(f"the pattern {pattern!r} is not one of RE2: {_words(error)}") from None


def _words(error: Exception) -> str:
    [said, *_] = error.args or ("",)
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _check_patterns(schema: Any, draft: Draft) -> None:
    """Raises ``PatternRefused`` for the first pattern that could not be used."""
    specification = specification_with(draft.META_SCHEMA["$schema"])
    here, keywords = [schema], set[str]()
    while here:
        part = here.pop()
        if not isinstance(part, Mapping):
            continue
        keywords |= part.keys()
        patterns = [*part.get(PATTERNS, ()), *([part[PATTERN]] if PATTERN in part else ())]
        for pattern in patterns:
            _compiled(pattern)
        here += [inner.contents for inner in specification.create_resource(part).subresources()]
    for keyword in UNEVALUATED:
        beside = {PATTERNS, "dependentSchemas"} & keywords
        if keyword in keywords and beside:
            raise PatternRefused(f"{keyword} cannot stand in one schema with {' or '.join(sorted(beside))}")
