"""Which charts of the centre's own a cluster gets, and with which values: as its manifests say."""

from copy import deepcopy
from typing import Any

import pytest

from edgewright.domain.rendering import ChartRelease, RenderInput, releases_of_shared_charts


def changed(spec: RenderInput, template: str, **at: Any) -> Any:
    """A template with parts replaced: path with ``__`` between -> value."""
    body = deepcopy(getattr(spec, template))
    for path, value in at.items():
        *before, last = path.split("__")
        inner: Any = body["template"] if template == "helm_release_template" else body["helm-charts.yaml"][0]
        for name in before:
            inner = inner[name]
        inner[last] = value
    return body


def test_values_are_those_that_are_delivered(render_input: Any) -> None:
    spec = render_input(values={"cluster": {"organisation": "Own"}, "global": {"a": 1}})
    identity = {"name": "press-shop", "uuid": str(spec.uuid), "organisation": "Own"}
    values: dict[str, Any] = {"cluster": identity, "sealed-secrets": {"enabled": True}, "global": {"a": 1}}
    assert releases_of_shared_charts(spec) == [ChartRelease("edge-cluster", values)]


def test_a_chart_may_be_spelled_as_a_path(render_input: Any) -> None:
    template = {**render_input().chart_template, "chart": "./charts/broker", "prefix": "broker"}
    [release] = releases_of_shared_charts(render_input(chart_template=template))
    assert release.chart == "charts/broker"


@pytest.mark.parametrize(
    ("template", "change"),
    [
        ("helm_release_template", {"spec__valuesFrom": [{"kind": "ConfigMap", "name": "edge"}]}),
        ("helm_release_template", {"spec__chart__spec__valuesFiles": ["own.yaml"]}),
        ("helm_release_template", {"spec__chart__spec__sourceRef__kind": "HelmRepository"}),
        ("helm_release_template", {"spec__chart__spec__sourceRef__name": "site-charts"}),
        ("helm_release_template", {"spec__chart__spec__sourceRef__namespace": "elsewhere"}),
        ("helm_release_template", {"kind": "Other"}),
        ("flux_template", {"spec__url": "https://charts.example/own"}),
        ("flux_template", {"spec__ref": {"branch": "main", "commit": "0" * 40}}),
        ("flux_template", {"spec__ref": {"branch": "own"}}),
    ],
)
def test_what_the_centre_does_not_hold_or_know_is_left_out(render_input: Any, template: str, change: Any) -> None:
    spec = render_input(**{template: changed(render_input(), template, **change)})
    assert releases_of_shared_charts(spec) == []
