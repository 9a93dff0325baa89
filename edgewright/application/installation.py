"""The ID of a centre, by which `doctor` recognises it in what `/ping` says."""

from uuid import UUID, uuid4

from edgewright.application.configurations import despite_races
from edgewright.domain.names import spelled_uuid
from edgewright.domain.wellknown import APP_INSTALLATION, SERVICE_CLUSTER_MANAGER
from edgewright.ports.config_store import ConfigStore, Entry, Precondition

_PLACE = (APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
_ID = "id"


async def installation_id(config: ConfigStore) -> UUID | None:
    """The ID; None before the first `admin init` of a version that makes one."""
    entry = await config.get(*_PLACE)
    return None if entry is None else _id_in(entry)


async def ensure_installation_id(config: ConfigStore) -> None:
    """Makes an ID for an installation that has none."""

    async def ensure() -> None:
        entry = await config.get(*_PLACE)
        if entry is not None and _id_in(entry) is None:
            await _renew(config, entry)

    await despite_races(ensure)


async def renew_installation_id(config: ConfigStore) -> None:
    """Replaces the ID after a restore: the centre that the backup is of may still run."""

    async def renew() -> None:
        entry = await config.get(*_PLACE)
        if entry is not None:
            await _renew(config, entry)

    await despite_races(renew)


def _id_in(entry: Entry) -> UUID | None:
    text = entry.body.get(_ID) if isinstance(entry.body, dict) else None
    return spelled_uuid(text) if isinstance(text, str) else None


async def _renew(config: ConfigStore, entry: Entry) -> None:
    body = {**(entry.body if isinstance(entry.body, dict) else {}), _ID: str(uuid4())}
    await config.put(*_PLACE, body, actor="centre", precondition=Precondition(match=frozenset({entry.etag})))
