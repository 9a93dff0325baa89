"""Applications and classes that requests name: one that nobody has registered is unknown, not empty."""

from uuid import UUID

from edgewright.domain.wellknown import (
    APP_INSTALLATION,
    APP_OBJECT_REGISTRATION,
    APPLICATIONS,
    CLASS_APPLICATION,
    SAME_CLASSES,
)
from edgewright.errors import NotFound
from edgewright.ports.config_store import ConfigStore

_OURS = APPLICATIONS.keys() | {APP_INSTALLATION}


async def known_application(config: ConfigStore, app: UUID) -> UUID:
    """The Application itself.

    Raises:
        NotFound: code ``app_unknown``: no object of the class of Applications, and no entry is of it.
    """
    if app in _OURS or await config.class_of(app) == CLASS_APPLICATION:
        return app
    if await config.bodies(app, after=None, limit=1):
        return app
    hint = (
        "Objects stay registered here; delete their entries instead."
        if app == APP_OBJECT_REGISTRATION
        else "Register it with POST /v1/object, as an object of the class Application."
    )
    raise NotFound(f"There is no Application {app}.", code="app_unknown", hint=hint)


async def known_class(config: ConfigStore, klass: UUID) -> UUID:
    """The class by the UUID that it has here.

    Raises:
        NotFound: code ``class_unknown``: no object, and no object is of it.
    """
    canonical = SAME_CLASSES.get(klass, klass)
    known = await config.class_of(canonical) is not None or await config.members(canonical)
    if not known:
        raise NotFound(
            f"There is no class {klass}.",
            code="class_unknown",
            hint="Register it with POST /v1/object, as an object of the class Class.",
        )
    return canonical
