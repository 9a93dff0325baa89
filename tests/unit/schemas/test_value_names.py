"""Which names of values a chart has that brings no schema: those of its values and of its templates."""

from typing import Any

import pytest

from edgewright.adapters.charts.value_names import properties_of
from edgewright.adapters.json_schema import violation_of

VALUES: dict[str, Any] = {
    "image": {"tag": "1", "pull": {"policy": "Always"}},
    "probe": {"enabled": True},
    "labels": {},
    "port": 1,
}
TEMPLATE = """
{{/* Usage: {{ include "render" .Values.path.to.it }} */}}
{{- if .Values.image -}}{{ .Values.image.digest }}{{ end }}
probe: {{ omit .Values.probe "enabled" | toYaml }}
also: {{ $.Values.service.labels | quote }}
"""


def takes(values: dict[str, Any]) -> bool:
    schema = {"additionalProperties": False, "properties": properties_of(VALUES, [TEMPLATE])}
    return violation_of(schema, values) is None


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"tag": 7, "digest": "sha256:…", "pull": {"policy": None}}},
        {"image": None, "port": "http"},
        {"labels": {"any": "thing"}},
        {"probe": {"enabled": False, "periodSeconds": 3}},
        {"service": {"labels": {"a": "b"}}},
    ],
)
def test_what_values_or_templates_name_is_taken(values: dict[str, Any]) -> None:
    assert takes(values)


@pytest.mark.parametrize(
    "values",
    [{"images": {}}, {"image": {"tags": 1}}, {"image": {"pull": {"polici": 1}}}, {"image": "x"}, {"path": {}}],
)
def test_what_nothing_in_the_chart_reads_is_refused(values: dict[str, Any]) -> None:
    assert not takes(values)
