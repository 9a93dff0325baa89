"""The entries that specify a cluster, as types."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from edgewright.domain.cluster import ClusterSettings, ClusterSpec
from edgewright.domain.reasons import reason_of
from edgewright.domain.rendering import check_values
from edgewright.errors import Invalid


def spec_from(body: Mapping[str, Any]) -> ClusterSpec:
    """Reads the configuration entry.

    Raises:
        Invalid: ``schema_violation`` for errors that no schema catches; ``values_undeliverable`` for values that can
            never reach an edge.
    """
    try:
        spec = ClusterSpec.model_validate(body)
    except ValidationError as error:
        raise _misfit("configuration", error) from None
    check_values(spec.values)
    return spec


def settings_from(body: Mapping[str, Any]) -> ClusterSettings:
    """Reads the settings entry, with defaults for missing fields."""
    try:
        return ClusterSettings.model_validate(body)
    except ValidationError as error:
        raise _misfit("settings", error) from None


def _misfit(what: str, error: ValidationError) -> Invalid:
    first = error.errors(include_input=False, include_url=False)[0]
    where = "".join(f"/{part}" for part in first["loc"])
    sentence = f"The {what} of a cluster cannot be used: {where or 'all of it'} {reason_of(first)}."
    return Invalid(sentence, code="schema_violation", where=where)
