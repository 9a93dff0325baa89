"""Refuses entries that Edgewright would store and never act on, and says what to do instead."""

from typing import Any, NoReturn
from uuid import UUID

from edgewright.domain.json import same_json
from edgewright.domain.wellknown import (
    APP_BOOTSTRAP_SCRIPT,
    APP_EDGE_DEPLOYMENTS,
    APP_FLUX_TEMPLATE,
    APP_GIT_REPOSITORY,
    APP_KUBERNETES_TEMPLATE,
    APPLICATIONS,
    OBJECT_BOOTSTRAP_SCRIPT,
    OBJECT_FLUX_TEMPLATE,
    OBJECT_HELM_RELEASE_TEMPLATE,
)
from edgewright.errors import Invalid
from edgewright.ports.config_store import ConfigStore

_ONLY_OBJECTS = {
    APP_FLUX_TEMPLATE: OBJECT_FLUX_TEMPLATE,
    APP_BOOTSTRAP_SCRIPT: OBJECT_BOOTSTRAP_SCRIPT,
    APP_KUBERNETES_TEMPLATE: OBJECT_HELM_RELEASE_TEMPLATE,
}
"""Applications of which Edgewright reads the entry of one object."""


async def refuse_without_effect(config: ConfigStore, app: UUID, object_: UUID, body: Any) -> None:
    """Lets every entry pass that Edgewright acts on, and those of Applications that it does not know.

    Raises:
        Invalid: code ``entry_without_effect``.
    """
    if app == APP_EDGE_DEPLOYMENTS:
        _refuse(
            "Edgewright deploys nothing from an Edge deployments entry.",
            hint="Push manifests to by-hand/ of the cluster's driving repository, or set values of its chart.",
        )
    if app == APP_GIT_REPOSITORY and not await _is_there(config, app, object_, body):
        _refuse(
            "Edgewright makes, moves and mirrors no repository because of an entry.",
            hint="Each cluster has its driving repository; push charts of yours with: edgewright chart push FOLDER.",
        )
    only = _ONLY_OBJECTS.get(app)
    if only is not None and object_ != only:
        _refuse(
            f"Of {APPLICATIONS[app].name}, Edgewright reads the entry of the object {only} alone.",
            hint="Write that entry.",
        )
    if app == APP_BOOTSTRAP_SCRIPT and isinstance(body, dict) and "wrapper" in body:
        _refuse(
            "Edgewright's own script unpacks the files and attaches the cluster; no wrapper replaces it.",
            hint="Leave wrapper out; hooks.before and hooks.after run fragments of yours.",
            where="/wrapper",
        )


async def _is_there(config: ConfigStore, app: UUID, object_: UUID, body: Any) -> bool:
    entry = await config.get(app, object_)
    return entry is not None and same_json(entry.body, body)


def _refuse(sentence: str, *, hint: str, where: str | None = None) -> NoReturn:
    raise Invalid(sentence, code="entry_without_effect", hint=hint, where=where)
