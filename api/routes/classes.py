"""Classes of objects, on `/v1` and `/v2`, as far as ACS clients need them.

There are no subclasses: the members of a class are its direct members, and a request to add a subclass is refused.
"""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from api.auth import ClusterOperator, Reader
from api.dependencies import TheConfig
from api.known_names import known_class
from edgewright.errors import Conflict, NotFound
from edgewright.ports.config_store import ConfigStore

CLASS = "/class/{klass}"
MEMBER = CLASS + "/direct/member/{object_uuid}"
SUBCLASS = CLASS + "/direct/subclass/{object_uuid}"

router = APIRouter(tags=["config store"])


@router.get("/v1" + CLASS + "/member", summary="Members of a class")
@router.get("/v2" + CLASS + "/member", summary="Members of a class")
async def list_members(klass: UUID, _operator: Reader, config: TheConfig) -> list[UUID]:
    """Returns the members, sorted. They are the direct members, as no class has subclasses. 404 `class_unknown`."""
    return list(await config.members(await known_class(config, klass)))


@router.get("/v1" + CLASS + "/direct/member", summary="Direct members of a class")
@router.get("/v2" + CLASS + "/direct/member", summary="Direct members of a class")
async def list_direct_members(klass: UUID, _operator: Reader, config: TheConfig) -> list[UUID]:
    """Returns the objects that were created in this class or added to it, sorted. 404 `class_unknown`."""
    return list(await config.members(await known_class(config, klass)))


@router.get("/v1" + CLASS + "/member/{object_uuid}", status_code=204, summary="Is it a member?")
@router.get("/v2" + CLASS + "/member/{object_uuid}", status_code=204, summary="Is it a member?")
async def is_member(klass: UUID, object_uuid: UUID, _operator: Reader, config: TheConfig) -> Response:
    """204 if it is, 404 if it is not."""
    return await _member(config, klass, object_uuid)


@router.get("/v1" + MEMBER, status_code=204, summary="Is it a direct member?")
@router.get("/v2" + MEMBER, status_code=204, summary="Is it a direct member?")
async def is_direct_member(klass: UUID, object_uuid: UUID, _operator: Reader, config: TheConfig) -> Response:
    """204 if it is, 404 if it is not."""
    return await _member(config, klass, object_uuid)


@router.put("/v1" + MEMBER, status_code=204, summary="Add a direct member")
@router.put("/v2" + MEMBER, status_code=204, summary="Add a direct member")
async def add_member(klass: UUID, object_uuid: UUID, _operator: ClusterOperator, config: TheConfig) -> Response:
    """Does nothing if the object is already a member."""
    await config.add_member(await known_class(config, klass), object_uuid)
    return Response(status_code=204)


@router.delete("/v1" + MEMBER, status_code=204, summary="Remove a direct member")
@router.delete("/v2" + MEMBER, status_code=204, summary="Remove a direct member")
async def remove_member(klass: UUID, object_uuid: UUID, _operator: ClusterOperator, config: TheConfig) -> Response:
    """Does nothing if the object is not a member. 409 `member_by_making`: it was created in this class, and stays."""
    canonical = await known_class(config, klass)
    if await config.class_of(object_uuid) == canonical:
        raise Conflict(
            f"The object {object_uuid} was made of the class {klass}, and stays of it.", code="member_by_making"
        )
    await config.remove_member(canonical, object_uuid)
    return Response(status_code=204)


@router.get("/v1" + CLASS + "/subclass", summary="Subclasses of a class")
@router.get("/v2" + CLASS + "/subclass", summary="Subclasses of a class")
@router.get("/v1" + CLASS + "/direct/subclass", name="list_direct_subclasses", summary="Direct subclasses of a class")
@router.get("/v2" + CLASS + "/direct/subclass", name="list_direct_subclasses", summary="Direct subclasses of a class")
async def list_subclasses(klass: UUID, _operator: Reader, config: TheConfig) -> list[UUID]:
    """Always empty. 404 `class_unknown`."""
    await known_class(config, klass)
    return []


@router.get(
    "/v1" + CLASS + "/subclass/{object_uuid}", status_code=204, summary="Is it a subclass?", include_in_schema=False
)
@router.get(
    "/v2" + CLASS + "/subclass/{object_uuid}", status_code=204, summary="Is it a subclass?", include_in_schema=False
)
@router.get("/v1" + SUBCLASS, status_code=204, summary="Is it a direct subclass?", include_in_schema=False)
@router.get("/v2" + SUBCLASS, status_code=204, summary="Is it a direct subclass?", include_in_schema=False)
async def is_subclass(klass: UUID, object_uuid: UUID, _operator: Reader, config: TheConfig) -> Response:
    """Always 404."""
    await known_class(config, klass)
    raise NotFound(f"The class {object_uuid} is no subclass of {klass}.", code="subclass_unknown")


@router.put("/v1" + SUBCLASS, status_code=204, summary="Refused: there are no subclasses", include_in_schema=False)
@router.put("/v2" + SUBCLASS, status_code=204, summary="Refused: there are no subclasses", include_in_schema=False)
@router.delete("/v1" + SUBCLASS, status_code=204, summary="Refused: there are no subclasses", include_in_schema=False)
@router.delete("/v2" + SUBCLASS, status_code=204, summary="Refused: there are no subclasses", include_in_schema=False)
async def refuse_subclass(klass: UUID, object_uuid: UUID, _operator: ClusterOperator, config: TheConfig) -> Response:
    """Always 409 `subclasses_unsupported`."""
    await known_class(config, klass)
    raise Conflict(
        f"The class {object_uuid} cannot be a subclass of {klass}: this Config Store knows no subclasses.",
        code="subclasses_unsupported",
        hint="Add the members of one class to the other.",
    )


async def _member(config: ConfigStore, klass: UUID, object_: UUID) -> Response:
    if object_ not in await config.members(await known_class(config, klass)):
        raise NotFound(f"The object {object_} is no member of the class {klass}.", code="member_unknown")
    return Response(status_code=204)
