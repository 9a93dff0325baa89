"""Secrets of a cluster: written, deleted and listed; never read back."""

import asyncio
import base64
import binascii
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from api import secret_listing
from api.auth import Reader, SecretOperator, actor_of, asker
from api.bodies import KIB, JsonBody, bounded_body
from api.idempotency import as_json, idempotency_key
from api.json_text import JsonLimits
from api.known_names import KnownCluster
from api.query import is_on
from api.schemas.secrets import Committed, SecretChange, SecretChanges, SecretList, SecretPatch
from api.secret_room import TheSecretRoom
from api.secret_templates import template_of_patch, template_of_query, templates_of_wishes
from api.secret_writes import ChangedKeys, change_keys, request_id
from edgewright.application.lookup import open_cluster
from edgewright.application.secret_sealing import KeyChange, TemplateChanges
from edgewright.application.secret_wishes import SecretWish
from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, SecretReference
from edgewright.domain.secret_template import MOST_ANNOTATIONS, MOST_LABELS
from edgewright.errors import Invalid, TooLarge
from edgewright.ports.operators import OperatorToken
from edgewright.sealing import SECRET_LIMIT, Plaintext

TEMPLATE_JSON = JsonLimits(1024 * KIB, levels=10, nodes=2000)
BULK_JSON = JsonLimits(8 * 1024 * KIB, levels=10, nodes=20_000)
COMMIT_HEADER = "Edgewright-Commit"
WARNING_HEADER = "Edgewright-Warning"
NO_STORE = {"Cache-Control": "no-store"}
WHOLE_PATH = "/v1/cluster/{uuid}/secret/{namespace}/{name}"
PATH = WHOLE_PATH + "/{key}"

router = APIRouter(tags=["secrets"])

DryRun = Annotated[
    str | None, Query(description="Present, `true` or `1`: checks and seals everything, but stores nothing.")
]
SecretTypeQuery = Annotated[
    str | None,
    Query(alias="type", description="Type of a new Secret, such as `kubernetes.io/tls`. It cannot change: 409."),
]
LabelQuery = Annotated[
    list[str],
    Query(
        alias="label",
        max_length=MOST_LABELS,
        description="A label of the Secret, `name=value`; `name-` removes one. Other labels stay.",
    ),
]
AnnotationQuery = Annotated[
    list[str], Query(alias="annotation", max_length=MOST_ANNOTATIONS, description="An annotation, in the same form.")
]
CreateNamespace = Annotated[
    str | None,
    Query(description="Present, `true` or `1`: the same commit creates the namespace on the edge, too."),
]
AllowEmpty = Annotated[
    str | None, Query(description="Present, `true` or `1`: a value may be empty. Otherwise 422 `secret_empty`.")
]
NO_CONTENT: dict[int | str, dict[str, Any]] = {
    204: {"description": "Committed.", "headers": {COMMIT_HEADER: {"schema": {"type": "string"}}}}
}


@router.put(
    PATH,
    status_code=204,
    summary="Set one key of a Secret",
    responses=NO_CONTENT,
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The raw bytes of the value, whatever the content type.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def put_secret(
    *,
    operator: SecretOperator,
    uuid: KnownCluster,
    namespace: str,
    name: str,
    key: str,
    request: Request,
    room: TheSecretRoom,
    dryrun: DryRun = None,
    secret_type: SecretTypeQuery = None,
    labels: LabelQuery = [],  # noqa: B006 - FastAPI copies it
    annotations: AnnotationQuery = [],  # noqa: B006 - FastAPI copies it
    create_namespace: CreateNamespace = None,
    allow_empty: AllowEmpty = None,
) -> Response:
    """Seals the value for this cluster only; 204 means that the commit is on disk. Honours `Idempotency-Key`.

    Type, labels and annotations belong to the whole Secret, are not encrypted, and stay when you set another value.
    For a type that needs several keys, such as `kubernetes.io/tls`, use `POST …/secret` to set all keys at once.

    422 `namespace_reserved`: nothing is sealed into `kube-system`, Flux's namespace or `edgewright`. 422
    `too_many_namespaces`: a cluster can have secrets in 250 namespaces. `Edgewright-Warning`: the edge does not have
    the namespace yet.
    """
    place = SecretKey(namespace, name, key).check()
    creates, takes_empty = is_on(create_namespace, "create_namespace"), is_on(allow_empty, "allow_empty")
    expected = set() if creates else {namespace}
    template = template_of_query(secret_type, labels, annotations)
    templates = {} if template is None else {place.secret: template}
    wish = _wish(request, uuid, operator, [place], dryrun=dryrun, templates=templates, expected=expected)

    async def change() -> Sequence[KeyChange]:
        return [KeyChange(place, await _plaintext(request, takes_empty=takes_empty), creates)]

    return _committed(await change_keys(room, wish, change))


@router.patch(WHOLE_PATH, status_code=204, summary="Change labels and annotations of a Secret", responses=NO_CONTENT)
async def patch_secret(
    *,
    operator: SecretOperator,
    uuid: KnownCluster,
    namespace: str,
    name: str,
    patch: Annotated[SecretPatch, Depends(JsonBody(SecretPatch, limits=TEMPLATE_JSON))],
    request: Request,
    room: TheSecretRoom,
    dryrun: DryRun = None,
) -> Response:
    """Takes a JSON merge patch; all values stay sealed as they are. 204: committed. Honours `Idempotency-Key`.

    404 `secret_unknown`: there is no such Secret. 409 `secret_type_immutable`: Kubernetes does not allow changing the
    type of an existing Secret; delete it and set it again. 422 `namespace_reserved`, `secret_metadata_reserved`: the
    namespace or the name of a label or annotation is reserved.
    """
    secret = SecretReference(namespace, name).check()
    templates = {secret: template_of_patch(patch)}
    wish = _wish(request, uuid, operator, [secret], dryrun=dryrun, templates=templates)

    async def change() -> Sequence[KeyChange]:
        return [KeyChange(secret, None)]

    return _committed(await change_keys(room, wish, change))


@router.delete(PATH, status_code=204, summary="Delete one key of a Secret", responses=NO_CONTENT)
async def delete_secret(
    *,
    operator: SecretOperator,
    uuid: KnownCluster,
    namespace: str,
    name: str,
    key: str,
    request: Request,
    room: TheSecretRoom,
    dryrun: DryRun = None,
) -> Response:
    """Removes the Secret's file with its last key. Allowed in reserved namespaces, too. Honours `Idempotency-Key`."""
    place = SecretKey(namespace, name, key).check()
    wish = _wish(request, uuid, operator, [place], dryrun=dryrun)

    async def change() -> Sequence[KeyChange]:
        return [KeyChange(place, None)]

    return _committed(await change_keys(room, wish, change))


@router.post("/v1/cluster/{uuid}/secret", summary="Change many keys at once", response_model=Committed)
async def change_secrets(
    *,
    operator: SecretOperator,
    uuid: KnownCluster,
    wish: Annotated[SecretChanges, Depends(JsonBody(SecretChanges, limits=BULK_JSON))],
    request: Request,
    room: TheSecretRoom,
    dryrun: DryRun = None,
    allow_empty: AllowEmpty = None,
) -> Response:
    """Makes one commit, all or nothing; at most 8 MiB. `Edgewright-Commit` names it. Honours `Idempotency-Key`.

    `secrets` sets type, labels and annotations of Secrets; `changes` must have a key of each of them.

    422 `namespace_reserved`: nothing is sealed into `kube-system`, Flux's namespace or `edgewright`. 422
    `too_many_namespaces`: a cluster can have secrets in 250 namespaces. `warnings` and `Edgewright-Warning` name the
    namespaces that the edge does not have yet.
    """
    takes_empty = is_on(allow_empty, "allow_empty")
    changes = [_key_change(index, change, takes_empty=takes_empty) for index, change in enumerate(wish.changes)]
    places = [change.place for change in changes]
    twice = [place for place, count in Counter(places).items() if count > 1]
    if twice:
        raise Invalid(f"The key {twice[0]} is there twice.", code="request_invalid", where="/changes")
    templates = templates_of_wishes(wish.secrets, {change.place.secret for change in changes})

    async def these() -> Sequence[KeyChange]:
        return changes

    created = {change.place.namespace for change in changes if change.create_namespace}
    expected = {change.place.namespace for change in changes if change.value is not None} - created
    asked = _wish(request, uuid, operator, places, dryrun=dryrun, templates=templates, expected=expected)
    changed = await change_keys(room, asked, these)
    content = Committed(commit=changed.commit, warnings=list(changed.warnings))
    return JSONResponse(as_json(content), headers=_headers(changed))


@router.get("/v1/cluster/{uuid}/secret", summary="List secrets", response_model=SecretList)
async def list_secrets(
    *,
    _operator: Reader,
    uuid: KnownCluster,
    room: TheSecretRoom,
    namespace: Annotated[str | None, Query(description="Only of this namespace.")] = None,
    name: Annotated[str | None, Query(description="Only Secrets of this name.")] = None,
) -> Response:
    """Lists names and keys, when and with which certificate they were sealed, and their state on the edge. Never
    returns a value."""
    row = await open_cluster(room, uuid)
    listed = await asyncio.to_thread(secret_listing.list_secrets, room.git, row, namespace=namespace, name=name)
    return JSONResponse(as_json(listed), headers=NO_STORE)


def _wish(
    request: Request,
    uuid: UUID,
    operator: OperatorToken,
    places: Sequence[SecretPlace],
    *,
    dryrun: str | None,
    templates: TemplateChanges | None = None,
    expected: AbstractSet[str] = frozenset(),
) -> SecretWish:
    path, key = request.url.path, idempotency_key(request)
    if request.method not in {"POST", "PUT"}:
        path = f"{request.method} {path}"
    return SecretWish(
        cluster=uuid,
        request=request_id(uuid, asker(operator), path, key),
        repeatable=key is not None,
        actor=actor_of(operator),
        places=places,
        templates=templates or {},
        dry_run=is_on(dryrun, "dryrun"),
        expected=expected,
    )


async def _plaintext(request: Request, *, takes_empty: bool) -> Plaintext:
    try:
        value = await bounded_body(request, SECRET_LIMIT)
    except TooLarge:
        raise TooLarge(
            f"All keys of one Secret together may have {SECRET_LIMIT} bytes.",
            code="secret_too_large",
            hint="Kubernetes allows no more. Store large data elsewhere, and only seal the key to it.",
        ) from None
    if not value and not takes_empty:
        raise _empty("body")
    return Plaintext(value)


def _key_change(index: int, change: SecretChange, *, takes_empty: bool) -> KeyChange:
    where = f"/changes/{index}"
    place = SecretKey(change.namespace, change.name, change.key).check()
    if change.delete is (change.value_base64 is not None):
        raise Invalid(
            "A change has either value_base64 or delete.",
            code="request_invalid",
            hint="Leave one of them out.",
            where=where,
        )
    if change.value_base64 is None:
        return KeyChange(place, None)
    try:
        value = base64.b64decode(change.value_base64, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(
            "The value is not base64.",
            code="request_invalid",
            hint="Encode it with: base64 -w 0. The route for one key takes its bytes as they are.",
            where=f"{where}/value_base64",
        ) from None
    if not value and not takes_empty:
        raise _empty(f"{where}/value_base64")
    return KeyChange(place, Plaintext(value), change.create_namespace)


def _empty(where: str) -> Invalid:
    return Invalid(
        "The value of the secret is empty. Nothing was stored.",
        code="secret_empty",
        hint="Send the value as the body; for many keys at once, as value_base64. If it has to be empty, add "
        "?allow_empty=true to the URL.",
        where=where,
    )


def _committed(changed: ChangedKeys) -> Response:
    return Response(status_code=204, headers=_headers(changed))


def _headers(changed: ChangedKeys) -> dict[str, str]:
    """Without a commit after a dry run."""
    named = {COMMIT_HEADER: changed.commit} if changed.commit else {}
    warned = {WARNING_HEADER: " ".join(changed.warnings)} if changed.warnings else {}
    return {**NO_STORE, **named, **warned}
