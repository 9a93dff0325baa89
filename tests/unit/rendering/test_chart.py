"""The chart that a managed cluster gets, as far as it can be checked without Helm."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

from edgewright.domain.rendering import render_repository

CHARTS = Path(__file__).parents[3] / "charts"
CHART = CHARTS / "edge-cluster"


def schema() -> Any:
    return json.loads((CHART / "values.schema.json").read_text())


def rendered_values(spec: Any) -> Any:
    return yaml.safe_load(render_repository(spec)["edo/cluster/edge-cluster.yaml"])["spec"]["values"]


def test_the_default_template_names_a_chart_that_is_published(render_input: Any) -> None:
    chart = render_input().chart_template["chart"]
    assert yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())["name"] == chart


def test_what_a_cluster_gets_by_default_satisfies_the_charts_own_schema(render_input: Any) -> None:
    Draft7Validator.check_schema(schema())
    for name in ("press-shop", "08"):
        assert list(Draft7Validator(schema()).iter_errors(rendered_values(render_input(name=name, values={})))) == []


def test_the_chart_refuses_to_be_installed_for_nobody() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert not Draft7Validator(schema()).is_valid(defaults)


def test_the_chart_asks_for_no_value_that_it_does_not_declare() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    for template in (CHART / "templates").iterdir():
        for path in re.findall(r"\.Values\.([A-Za-z.]+)", template.read_text()):
            value = defaults
            for name in path.split("."):
                value = value[name]


def test_the_folder_of_flux_itself_exists(render_input: Any) -> None:
    flux = yaml.safe_load(render_repository(render_input())["edo/cluster/flux-system.yaml"])
    folder = CHARTS / flux["spec"]["path"]
    assert folder.is_dir()
    assert any(folder.iterdir())
    assert flux["spec"]["prune"] is False
