"""The default entries of the Config Store: schemas, templates, and the names of well-known objects.

An installation may change all of them; a start only writes missing ones.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any
from uuid import UUID

from edgewright.domain import wellknown as wk
from edgewright.domain.edge_status import checked_schema

DEFAULT_CHART_NAME = "edge-cluster"
"""The name of the default Helm chart template, as ``chart`` of a new cluster may give it."""

HELM_CHARTS_REPOSITORY_PATH = "shared/helm-charts"
"""The path of the repository of Helm charts below ``/git/``."""

SCHEMA_FILES = {
    wk.APP_CLUSTER_CONFIGURATION: "cluster_configuration",
    wk.APP_CLUSTER_SETTINGS: "cluster_settings",
    wk.APP_CLUSTER_SETUP_STATUS: "cluster_setup_status",
    wk.APP_FLUX_TEMPLATE: "flux_template",
    wk.APP_HELM_CHART_TEMPLATE: "helm_chart_template",
    wk.APP_KUBERNETES_TEMPLATE: "kubernetes_template",
    wk.APP_BOOTSTRAP_SCRIPT: "bootstrap_script",
    wk.APP_FLUX_BUNDLE: "flux_bundle",
    wk.APP_SPARKPLUG_ADDRESS: "sparkplug_address",
    wk.APP_OBJECT_INFO: "object_info",
    wk.APP_CONFIG_SCHEMA: "config_schema",
    wk.APP_EDGE_DEPLOYMENTS: "edge_deployments",
    wk.APP_GIT_REPOSITORY: "git_repository",
}
"""Application -> file of its JSON Schema (draft 2020-12)."""
WITH_SCHEMA = (*SCHEMA_FILES, wk.APP_CLUSTER_STATUS)
"""Those that have a schema from the first start. That of a status follows from the model by which it is read."""


@dataclass(frozen=True)
class DefaultEntry:
    """One entry of a first start.

    Args:
        klass: class of the object, which is registered with the entry.
        body: a fresh copy that the caller may change.
    """

    app: UUID
    object: UUID
    klass: UUID
    body: Any


def default_entries(organisation: str) -> Sequence[DefaultEntry]:
    """Returns all default entries; schemas come first, so that the others can be checked against them.

    Args:
        organisation: used in the values of the default chart.
    """
    return (*_schemas(), *_names(), *_templates(organisation))


def application_schema(app: UUID) -> Any:
    """Returns a fresh copy of the JSON Schema that Edgewright ships for a well-known Application.

    Raises:
        KeyError: the Application is not a well-known one.
    """
    return checked_schema() if app == wk.APP_CLUSTER_STATUS else _read("schemas", SCHEMA_FILES[app])


def _schemas() -> Sequence[DefaultEntry]:
    return [
        DefaultEntry(wk.APP_CONFIG_SCHEMA, app, wk.CLASS_APPLICATION, application_schema(app)) for app in WITH_SCHEMA
    ]


def _names() -> Sequence[DefaultEntry]:
    named = [
        *((app.uuid, wk.CLASS_APPLICATION, app.name) for app in wk.APPLICATIONS.values()),
        *((uuid, wk.CLASS_CLASS, name) for uuid, name in wk.CLASS_NAMES.items()),
        *((uuid, wk.CLASS_SERVICE, name) for uuid, name in wk.SERVICE_NAMES.items()),
        *((uuid, wk.CLASS_PERMISSION, name) for uuid, name in wk.PERMISSION_NAMES.items()),
        (wk.OBJECT_DEFAULT_CHART, wk.CLASS_HELM_CHART, DEFAULT_CHART_NAME),
        (wk.OBJECT_HELM_RELEASE_TEMPLATE, wk.CLASS_KUBERNETES_TEMPLATE, "HelmRelease"),
        (wk.REPOSITORY_HELM_CHARTS, wk.CLASS_GIT_REPOSITORY, HELM_CHARTS_REPOSITORY_PATH),
    ]
    return [DefaultEntry(wk.APP_OBJECT_INFO, uuid, klass, {"name": name}) for uuid, klass, name in named]


def _templates(organisation: str) -> Sequence[DefaultEntry]:
    chart = _read("templates", "edge_cluster_chart")
    chart["values"]["cluster"]["organisation"] = organisation
    return [
        DefaultEntry(wk.APP_FLUX_TEMPLATE, wk.OBJECT_FLUX_TEMPLATE, wk.CLASS_APPLICATION, _read("templates", "flux")),
        DefaultEntry(
            wk.APP_KUBERNETES_TEMPLATE,
            wk.OBJECT_HELM_RELEASE_TEMPLATE,
            wk.CLASS_KUBERNETES_TEMPLATE,
            _read("templates", "helm_release"),
        ),
        DefaultEntry(wk.APP_HELM_CHART_TEMPLATE, wk.OBJECT_DEFAULT_CHART, wk.CLASS_HELM_CHART, chart),
        DefaultEntry(
            wk.APP_BOOTSTRAP_SCRIPT,
            wk.OBJECT_BOOTSTRAP_SCRIPT,
            wk.CLASS_APPLICATION,
            _read("templates", "bootstrap_script"),
        ),
        DefaultEntry(
            wk.APP_GIT_REPOSITORY,
            wk.REPOSITORY_HELM_CHARTS,
            wk.CLASS_GIT_REPOSITORY,
            {"path": HELM_CHARTS_REPOSITORY_PATH},
        ),
    ]


def _read(folder: str, name: str) -> Any:
    file = resources.files("edgewright.domain.defaults").joinpath(folder, f"{name}.json")
    return json.loads(file.read_text(encoding="utf-8"))
