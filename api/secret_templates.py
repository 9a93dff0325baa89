"""Type, labels and annotations of Secrets, as requests name them."""

from collections.abc import Sequence

from api.schemas.secrets import SecretPatch, SecretTemplateWish
from edgewright.application.secret_sealing import TemplateChanges
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.secret_template import TemplateChange, check_template_change
from edgewright.errors import Invalid


def template_of_query(
    secret_type: str | None, labels: Sequence[str], annotations: Sequence[str]
) -> TemplateChange | None:
    """What a query wants to change of a Secret; None: nothing.

    Args:
        labels: each ``name=value``, or ``name-`` for one that goes.
        annotations: the same.

    Raises:
        Invalid: code ``request_invalid``, or as ``check_template_change``.
    """
    change = TemplateChange(secret_type, _pairs(labels, "label"), _pairs(annotations, "annotation"))
    return check_template_change(change) if change else None


def templates_of_wishes(wishes: Sequence[SecretTemplateWish], changed: set[SecretReference]) -> TemplateChanges:
    """What the body of a request wants to change.

    Args:
        changed: the Secrets that it has keys of.

    Raises:
        Invalid: code ``request_invalid``, or as ``check_template_change``.
    """
    templates: dict[SecretReference, TemplateChange] = {}
    for index, wish in enumerate(wishes):
        where, secret = f"/secrets/{index}", SecretReference(wish.namespace, wish.name)
        if secret not in changed:
            raise Invalid(
                "Type, labels and annotations go with a key of their Secret, and changes has none of this one.",
                code="request_invalid",
                hint="Set one of its keys in the same request, or change the Secret alone with PATCH.",
                where=where,
            )
        if secret in templates:
            raise Invalid("This Secret is there twice.", code="request_invalid", where=where)
        change = check_template_change(TemplateChange(wish.type, wish.labels, wish.annotations))
        if change:
            templates[secret] = change
    return templates


def template_of_patch(patch: SecretPatch) -> TemplateChange:
    """What a patch wants to change.

    Raises:
        Invalid: code ``request_invalid``: nothing; or as ``check_template_change``.
    """
    change = TemplateChange(patch.type, patch.labels, patch.annotations)
    if not change:
        raise Invalid(
            "This changes nothing: it names no label and no annotation.",
            code="request_invalid",
            hint='For example {"labels": {"app": "press", "old": null}}.',
        )
    return check_template_change(change)


def _pairs(texts: Sequence[str], what: str) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and not name.endswith("-"):
            raise Invalid(
                f"A query has each {what} as name=value, or as name- to remove it.",
                code="request_invalid",
                where=f"query {what}",
            )
        name = name if equals else name.removesuffix("-")
        if name in pairs:
            raise Invalid(f"The query has a {what} twice.", code="request_invalid", where=f"query {what}")
        pairs[name] = value if equals else None
    return pairs
