"""What an edge says of itself: the *Edge cluster status*, read once, and what its JSON Schemas are generated from.

Nothing that an edge sends is trusted to have any shape. A member that is not known is ignored, one of another type
counts as absent, and of a long list only the first items count. A status that fits, as that of every agent does, is
read in one go.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import NullableSchema, WithDefaultSchema

from edgewright.domain.cluster import MOST_NAMES

MOST_REPORTED = 250
"""Namespaces of an edge that names all of them."""
MOST_REFUSED = 20
"""Refused Secrets that are read of a status; it counts the others."""
_MOST_ITEMS = 1000
"""Items of any other list. A status has room for less."""
_MOST: Mapping[str | int, int] = {
    "missing": MOST_NAMES,
    "unknown": MOST_NAMES,
    "silent": MOST_NAMES,
    "unopened": MOST_NAMES,
    "refused": MOST_REFUSED,
}
"""Items of a list that are looked at, whatever they are."""
_CHECKED: Final = ("hosts", "namespaces", "kubeseal_cert")
"""Members that a status is refused for if they have another type."""
_DESCRIBED: Final = ("flux", "observed_revision", "versions")
"""Members that are named to whoever reads the schema, and never a reason to refuse a status."""


def _first(items: object, info: ValidationInfo) -> object:
    return items[: _MOST.get(info.field_name or "", _MOST_ITEMS)] if isinstance(items, list) else items


def _none_if_many(names: object) -> object:
    """None for a list so long that nobody knows which names are left out."""
    return None if isinstance(names, list) and len(names) > MOST_REPORTED else names


def _none_if_empty(value: object) -> object:
    return value or None


class Said(BaseModel):
    """Base of what an edge says."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class EdgeHost(Said):
    """One node of the edge's cluster."""

    model_config = ConfigDict(json_schema_extra={"required": ["hostname"]})

    hostname: StrictStr | None = None
    arch: StrictStr | None = None
    k8s_version: StrictStr | None = None
    control_plane: StrictBool | None = None
    os_version: StrictStr | None = None
    ready: StrictBool | None = None
    specialised: Any = None


class SaidCondition(Said):
    """A condition of an object of Flux's."""

    type: StrictStr | None = None
    status: StrictStr | None = None
    reason: StrictStr | None = None
    message: StrictStr | None = None


class FluxObject(Said):
    """What Flux says of one of its objects."""

    name: StrictStr | None = None
    kind: Annotated[StrictStr | None, Field(description="Of `others`: `Kustomization` or `HelmRelease`.")] = None
    source: Annotated[StrictStr | None, Field(description="Of a Kustomization: the source that it applies.")] = None
    chart: Annotated[StrictStr | None, Field(description="Of a release: its chart.")] = None
    attempted: Annotated[
        StrictStr | None, Field(description="The revision, or version of the chart, that was tried last.")
    ] = None
    suspended: StrictBool = False
    conditions: Annotated[tuple[SaidCondition, ...], BeforeValidator(_first)] = ()


FluxObjects = Annotated[tuple[FluxObject, ...], BeforeValidator(_first)]


class FluxReport(Said):
    """What Flux says of its work."""

    sources: FluxObjects = ()
    kustomizations: FluxObjects = ()
    releases: Annotated[
        FluxObjects,
        Field(description="HelmReleases. Absent: the agent may not see them, or is of a version that does not."),
    ] = ()
    others: Annotated[
        FluxObjects,
        Field(description="What an operator has beside them and fails: Kustomizations and HelmReleases."),
    ] = ()


class SealingCounts(Said):
    """How many sealings the edge's controller has opened, not come to, and refused; -1: it does not say."""

    opened: StrictInt = -1
    pending: StrictInt = -1
    refused: StrictInt = -1


class RefusedSealing(Said):
    """A Secret that the edge's controller does not open."""

    namespace: StrictStr | None = None
    name: StrictStr | None = None
    digest: StrictStr | None = None
    template: Annotated[StrictStr | None, Field(description="Name of its template: four characters.")] = None
    message: StrictStr | None = None


class SealingTemplates(Said):
    """Names of templates, of four characters each, in the order in which the sealings are named."""

    opened: StrictStr = ""
    pending: StrictStr = ""
    refused_too: StrictStr = ""


class SealingsReport(Said):
    """What the edge's controller has made of what the centre has sealed; each name has eight characters."""

    counts: SealingCounts = SealingCounts()
    opened: Annotated[StrictStr, Field(description="Names of sealings that are opened, one after the other.")] = ""
    pending: Annotated[
        StrictStr, Field(description="Names of sealings that the controller has not come to, one after the other.")
    ] = ""
    refused_too: Annotated[
        StrictStr,
        Field(description="Names of sealings that are refused, beside those in `refused`, one after the other."),
    ] = ""
    refused: Annotated[tuple[RefusedSealing, ...], BeforeValidator(_first)] = ()
    templates: Annotated[
        SealingTemplates,
        Field(
            description=(
                "Names of the templates of `opened`, `pending` and `refused_too`, one after the other, in the same "
                "order: of each, the first three bytes of the SHA-256 of the JSON `[type, [[label, value], …], "
                "[[annotation, value], …]]`, without spaces and sorted by name, in base64url; the annotation "
                "`sealedsecrets.bitnami.com/managed` is left out. Absent: the agent does not say."
            )
        ),
    ] = SealingTemplates()


class MissingRight(Said):
    """What the agent may not see, or not change."""

    what: Annotated[
        StrictStr | None,
        Field(description="Resource, such as `kustomizations`, `secrets/NAME` or `configmaps in line-1`."),
    ] = None
    right: Annotated[StrictStr | None, Field(description="What the agent lacks, in words.")] = None


class ClosedValue(Said):
    """A value that no key of the edge opens."""

    secret: Annotated[StrictStr | None, Field(description="`NAMESPACE/NAME`.")] = None
    key: StrictStr | None = None
    sha256: Annotated[
        StrictStr | None, Field(description="Of the ciphertext, base64 as in the file; hexadecimal.")
    ] = None


class EdgeStatus(Said):
    """What the edge says of itself. More members than these are welcome."""

    hosts: Annotated[tuple[EdgeHost, ...], BeforeValidator(_first)] = ()
    namespaces: Annotated[
        tuple[StrictStr, ...] | None,
        BeforeValidator(_none_if_many),
        Field(description="Names of all namespaces, at most 250. Absent: not known."),
    ] = None
    kubeseal_cert: Annotated[StrictStr | None, Field(description="Sealing certificate, PEM.")] = None
    observed_revision: Annotated[
        StrictStr | None, Field(description="What Flux has applied, as it says it: `main@sha1:…`.")
    ] = None
    flux: Annotated[
        FluxReport | None,
        BeforeValidator(_none_if_empty),
        Field(
            description="What Flux says of its work; the conditions `Synced` and `Healthy` are read of it.",
        ),
    ] = None
    secrets: Annotated[
        SealingsReport | None,
        Field(
            description=(
                "What the edge's controller has made of what the centre has sealed. A sealing is named by eight "
                "characters: the first six bytes of the SHA-256 of the JSON `[namespace, name, [[key, ciphertext], "
                "…]]`, without spaces and sorted by key, in base64url. Absent: the agent does not say."
            )
        ),
    ] = None
    missing: Annotated[
        tuple[StrictStr, ...],
        BeforeValidator(_first),
        Field(
            description=(
                "What drives the edge and is not there, such as `GitRepository self-link`, `Secret flux-secrets` or "
                "`ConfigMap settings in line-1`. "
                "Absent: nothing, or the agent does not look for it. The first 20 count, as of the next three."
            )
        ),
    ] = ()
    unknown: Annotated[
        tuple[MissingRight, ...],
        BeforeValidator(_first),
        Field(description="What the agent may not see, or not change. Of that the rest of the status says nothing."),
    ] = ()
    silent: Annotated[
        tuple[StrictStr, ...],
        BeforeValidator(_first),
        Field(
            description=(
                "Controllers of Flux that have left undone for minutes what is due: `source-controller` a request to "
                "fetch, `kustomize-controller` what was fetched. Absent: none, or the agent does not look for it."
            )
        ),
    ] = ()
    unopened: Annotated[
        tuple[ClosedValue, ...],
        BeforeValidator(_first),
        Field(description="Values that no key of the edge opens. Absent: not tried yet."),
    ] = ()
    unopened_count: Annotated[StrictInt, Field(description="How many there are, if more than `unopened` names.")] = 0
    versions: Annotated[
        dict[str, StrictStr] | None,
        Field(
            description=(
                "Programs on the edge and their versions: `agent`, `agent-image` (the image that the agent runs "
                "from), `kubernetes`, `flux`."
            )
        ),
    ] = None
    flux_is_ours: Annotated[
        StrictBool | None,
        Field(
            description=(
                "Whether bootstrap has installed Flux on this edge, for this cluster. Absent: there is no Flux, or "
                "the agent cannot tell."
            )
        ),
    ] = None
    anchor: Annotated[
        StrictStr | None,
        Field(
            description=(
                "UID of the anchor: the ClusterRole that owns what bootstrap has installed. Absent: there is none, "
                "or the agent does not say."
            )
        ),
    ] = None
    omitted: Annotated[
        dict[str, StrictInt],
        Field(
            description=(
                "How much the agent has left out to stay below 64 KiB: `flux_messages` that it shortened, "
                "`host_details` (hosts of which it says no more than name, role and readiness), `secrets` of which "
                "it says no state, `secret_templates` that it does not name, `namespaces`, `flux_objects` that are "
                "ready, `hosts`, `hosts_not_ready` among those. Absent: nothing."
            )
        ),
    ] = Field(default_factory=dict)

    _document: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def document(self) -> Mapping[str, Any]:
        """As the edge sent it, with members that nobody here knows."""
        return self._document


def read_edge_status(document: Mapping[str, Any]) -> EdgeStatus:
    """Reads a status; whatever does not fit is left out."""
    try:
        status = EdgeStatus.model_validate(document)
    except ValidationError as error:
        wrong = {each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False)}
        status = EdgeStatus.model_validate(_without(wrong, document))
    status._document = document
    return status


def _without(wrong: AbstractSet[tuple[int | str, ...]], value: Any, at: tuple[int | str, ...] = ()) -> Any:
    """A copy that lacks the members and items at these places."""
    if isinstance(value, Mapping):
        return {name: _without(wrong, each, (*at, name)) for name, each in value.items() if (*at, name) not in wrong}
    if isinstance(value, list):
        first = value[: _MOST.get(at[-1], _MOST_ITEMS)]  # none moves up to the place of one that is left out
        return [_without(wrong, each, (*at, n)) for n, each in enumerate(first) if (*at, n) not in wrong]
    return value


class _Plain(GenerateJsonSchema):
    """Absent is the default of everything, so neither null nor defaults nor titles are told."""

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: CoreSchema) -> bool:
        return False


def status_schema() -> dict[str, Any]:
    """The JSON Schema of a status, with everything that is read of it."""
    schema = EdgeStatus.model_json_schema(schema_generator=_Plain)
    definitions = schema.pop("$defs", {})
    resolved: dict[str, Any] = _resolved(schema, definitions)
    return resolved


def checked_schema() -> dict[str, Any]:
    """The JSON Schema by which the Config Store checks a status: it refuses as little as it can."""
    whole = status_schema()
    properties: dict[str, Any] = {name: whole["properties"][name] for name in _CHECKED}
    properties |= {name: {"description": whole["properties"][name]["description"]} for name in _DESCRIBED}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Edge cluster status"}
    return {**head, "type": "object", "description": whole["description"], "properties": properties}


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Without references, and without what the models say of themselves to whoever reads the code."""
    if isinstance(schema, list):
        return [_resolved(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = {**definitions[schema["$ref"].rpartition("/")[2]]}
        named.pop("description", None)
        named.pop("title", None)
        schema = named | {name: each for name, each in schema.items() if name != "$ref"}
    return {name: _resolved(each, definitions) for name, each in schema.items()}
