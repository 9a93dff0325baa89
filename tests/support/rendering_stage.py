"""A cluster to render, made of the default entries."""

from typing import Any
from uuid import UUID

from edgewright.domain import wellknown as wk
from edgewright.domain.default_entries import default_entries
from edgewright.domain.rendering import RenderInput


def render_input(**changes: Any) -> RenderInput:
    """The input of a cluster called press-shop; keyword arguments replace its fields."""
    bodies = {(entry.app, entry.object): entry.body for entry in default_entries("ACME")}
    fields: dict[str, Any] = {
        "uuid": UUID("f59cc279-9125-4d36-a37f-d9fcc13ba0c4"),
        "name": "press-shop",
        "namespace": "edgewright",
        "bare": False,
        "values": {"broker": {"replicas": 2, "password": "08"}, "cluster": {"site": "Leeds"}},
        "chart_template": bodies[wk.APP_HELM_CHART_TEMPLATE, wk.OBJECT_DEFAULT_CHART],
        "helm_release_template": bodies[wk.APP_KUBERNETES_TEMPLATE, wk.OBJECT_HELM_RELEASE_TEMPLATE],
        "flux_template": bodies[wk.APP_FLUX_TEMPLATE, wk.OBJECT_FLUX_TEMPLATE],
        "url_self": "https://centre.example/uuid/f59cc279-9125-4d36-a37f-d9fcc13ba0c4",
        "url_helm": f"https://centre.example/uuid/{wk.REPOSITORY_HELM_CHARTS}",
    }
    return RenderInput(**{**fields, **changes})
