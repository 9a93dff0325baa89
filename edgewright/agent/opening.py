"""What the sealed-secrets controller says of the SealedSecrets that the centre has sealed, and how that is reported.

A SealedSecret is named by a digest of its ciphertexts, and its template by another: the centre knows by them which
sealing the edge has, and with which labels, whatever Flux says of revisions. No Secret is read for that, and no
plaintext.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_TOLD = 3000
"""Secrets of which a status has digests: 36 kB."""
MOST_REFUSED = 20
"""Refused ones that are named; the others are counted."""
LONGEST_SENTENCE = 300
"""Characters of what the controller says."""
_DIGEST_BYTES = 6
"""Eight characters; that one of 3,000 is taken for another sealing happens once in 10^11 times."""
_TEMPLATE_BYTES = 3
"""Four characters: of one sealing, a template is taken for another once in 10^7 times."""
MANAGED_ANNOTATION = "sealedsecrets.bitnami.com/managed"
"""The centre's, in each template; not counted as one of the Secret's annotations."""
OPAQUE = "Opaque"


class Stage(StrEnum):
    """How far the controller is with what the edge holds now."""

    OPENED = "opened"
    PENDING = "pending"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Opening:
    """One SealedSecret.

    Args:
        digest: see ``sealing_digest``.
        sentence: the controller's, when it has refused.
        certificates: fingerprints of those that its values were sealed with, as the centre has noted; empty: of one
            that it has not noted.
        template: see ``template_digest``.
    """

    namespace: str
    name: str
    digest: str
    stage: Stage
    sentence: str = ""
    certificates: frozenset[str] = frozenset()
    template: str = ""

    @property
    def secret(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def is_in_doubt(self, fingerprint: str) -> bool:
        """Whether a controller with this certificate may not open all of it."""
        return self.stage is Stage.REFUSED or self.certificates != {fingerprint}


def sealing_digest(namespace: str, name: str, values: Mapping[str, str]) -> str:
    """Names one sealing of a Secret: eight characters. ``edgewright.domain.opened_secrets`` has the same.

    Args:
        values: key -> ciphertext, base64.
    """
    text = json.dumps([namespace, name, sorted(values.items())], separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]).decode()


def template_digest(template: Mapping[str, Any]) -> str:
    """Names type, labels and annotations: four characters. ``edgewright.domain.opened_secrets`` has the same.

    Args:
        template: ``spec.template`` of the SealedSecret, whatever it holds.
    """
    metadata = _texts(template.get("metadata"))
    labels, annotations = _texts(metadata.get("labels")), _texts(metadata.get("annotations"))
    annotations.pop(MANAGED_ANNOTATION, None)
    said = [template.get("type") or OPAQUE, sorted(labels.items()), sorted(annotations.items())]
    digest = hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest[:_TEMPLATE_BYTES]).decode()


def stage_of(generation: object, status: Mapping[str, Any]) -> tuple[Stage, str]:
    """How far the controller is, and its sentence if it has refused.

    Args:
        generation: of the SealedSecret, raised by the API server with each change of what is sealed.
        status: as the controller wrote it; what it says of an older generation is about something else.
    """
    if generation is None or status.get("observedGeneration") != generation:
        return Stage.PENDING, ""
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, dict) or each.get("type") != "Synced":
            continue
        if each.get("status") == "True":
            return Stage.OPENED, ""
        if each.get("status") == "False":
            return Stage.REFUSED, str(each.get("message") or "")[:LONGEST_SENTENCE]
    return Stage.PENDING, ""


def openings_to_json(found: Iterable[Opening]) -> dict[str, Any]:
    """``secrets`` in the *Edge cluster status*: counts of all, and as much of the rest as fits."""
    by_stage: dict[Stage, list[Opening]] = {stage: [] for stage in Stage}
    for each in sorted(found, key=lambda one: one.digest):
        by_stage[each.stage].append(each)
    pending = by_stage[Stage.PENDING][:MOST_TOLD]
    refused = sorted(by_stage[Stage.REFUSED], key=lambda one: (one.namespace, one.name))
    named, unnamed = refused[:MOST_REFUSED], refused[MOST_REFUSED : MOST_REFUSED + MOST_TOLD - len(pending)]
    opened = by_stage[Stage.OPENED][: MOST_TOLD - len(pending) - len(unnamed)]
    return {
        "counts": {stage.value: len(each) for stage, each in by_stage.items()},
        "opened": _joined(opened),
        "pending": _joined(pending),
        "refused_too": _joined(unnamed),
        "refused": [
            {
                "namespace": each.namespace,
                "name": each.name,
                "digest": each.digest,
                "template": each.template,
                "message": each.sentence,
            }
            for each in named
        ],
        "templates": {
            "opened": _templates(opened),
            "pending": _templates(pending),
            "refused_too": _templates(unnamed),
        },
    }


def _joined(openings: Sequence[Opening]) -> str:
    return "".join(each.digest for each in openings)


def _templates(openings: Sequence[Opening]) -> str:
    return "".join(each.template for each in openings)


def _texts(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
