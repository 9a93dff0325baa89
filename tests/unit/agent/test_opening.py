"""What is reported of sealed secrets: which sealing is opened, waits or is refused, however many there are."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre

from edgewright.agent.kubernetes import Kubernetes
from edgewright.agent.opening import LONGEST_SENTENCE, MOST_TOLD, Opening, Stage, openings_to_json, stage_of
from edgewright.agent.opening import sealing_digest as digest_on_the_edge
from edgewright.agent.opening import template_digest as template_on_the_edge
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.opened_secrets import EdgeState, opened_secrets, sealing_digest, template_digest
from edgewright.domain.secret_template import TLS, SecretTemplate, TemplateChange
from edgewright.errors import Forbidden
from edgewright.sealing import SealedValue, change_values, read_template

TAKEN = 'failed update: Resource "taken" already exists and is not managed by SealedSecret'
UNNOTED = frozenset({""})


def digest_of(name: str, ciphertext: str) -> str:
    return sealing_digest(SecretReference("default", name), {"k": ciphertext})


def conditions(status: str, message: str = "") -> list[dict[str, str]]:
    return [{"type": "Synced", "status": status, "message": message}]


@pytest.mark.parametrize("values", [{}, {"k": "AgB="}, {"b": "1", "a": "2", "ä": "3"}])
def test_edge_and_centre_call_a_sealing_the_same(values: dict[str, str]) -> None:
    digest = digest_on_the_edge("default", "db", values)
    assert digest == sealing_digest(SecretReference("default", "db"), values)
    assert digest == digest_on_the_edge("default", "db", dict(reversed(values.items())))
    others = {digest_on_the_edge("default", "dc", values), digest_on_the_edge("other", "db", values)}
    assert len(digest) == 8 and digest not in others | {digest_on_the_edge("default", "db", {**values, "k": "new"})}


TEMPLATES = (
    TemplateChange(),
    TemplateChange(TLS),
    TemplateChange(None, {"b": "1", "a": "2"}),
    TemplateChange(None, {"b": "2", "a": "1"}),
    TemplateChange(None, {}, {"b": "1", "a": "2"}),
    TemplateChange(None, {"ä": ""}, {"note": "a: b\n# c"}),
)


def test_edge_and_centre_call_a_template_the_same() -> None:
    """Read from the file that the centre writes, as the API server has it."""
    digests = set()
    for change in TEMPLATES:
        value = SealedValue("AgB=", None, None)
        keys = dict.fromkeys(("tls.crt", "tls.key"), value)
        file = change_values(None, SecretReference("default", "db"), keys, change)
        assert file is not None
        digest = template_on_the_edge(yaml.safe_load(file)["spec"]["template"])
        assert digest == template_digest(read_template(file))
        digests.add(digest)
    assert {len(digest) for digest in digests} == {4} and len(digests) == len(TEMPLATES)


@pytest.mark.parametrize(
    "template", [{}, {"metadata": None}, {"metadata": {"labels": [], "annotations": "x"}, "type": ""}]
)
def test_whatever_a_template_looks_like_it_has_a_name(template: dict[str, Any]) -> None:
    assert template_on_the_edge(template) == template_digest(SecretTemplate())


@pytest.mark.parametrize(
    ("generation", "status", "stage", "sentence"),
    [
        (1, {"observedGeneration": 1, "conditions": conditions("True")}, Stage.OPENED, ""),
        (2, {"observedGeneration": 2, "conditions": conditions("False", TAKEN)}, Stage.REFUSED, TAKEN),
        (1, {"observedGeneration": 1, "conditions": conditions("False", "m" * 5000)}, Stage.REFUSED, "m" * 300),
        # What it said of the sealing before says nothing of this one.
        (2, {"observedGeneration": 1, "conditions": conditions("True")}, Stage.PENDING, ""),
        (2, {"observedGeneration": 1, "conditions": conditions("False", TAKEN)}, Stage.PENDING, ""),
        (1, {}, Stage.PENDING, ""),
        (None, {}, Stage.PENDING, ""),
        (1, {"observedGeneration": 1, "conditions": conditions("Unknown")}, Stage.PENDING, ""),
        (1, {"observedGeneration": 1, "conditions": "none"}, Stage.PENDING, ""),
        (1, {"observedGeneration": 1, "conditions": [5, {"type": "Other"}]}, Stage.PENDING, ""),
    ],
)
def test_only_what_the_controller_says_of_this_sealing_counts(
    generation: int | None, status: dict[str, Any], stage: Stage, sentence: str
) -> None:
    assert stage_of(generation, status) == (stage, sentence)


@pytest.fixture
async def kubernetes(kubeconfig: Path) -> AsyncIterator[Kubernetes]:
    kubernetes = Kubernetes()
    yield kubernetes
    await kubernetes.close()


def sealed(name: str, status: dict[str, Any], *, ours: bool = True) -> dict[str, Any]:
    annotations = {"edgewright.dev/sealed-keys": "{}"} if ours else {}
    return {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"name": name, "namespace": "default", "generation": 1, "annotations": annotations},
        "spec": {"encryptedData": {"k": "AgB="}},
        "status": status,
    }


async def test_all_that_the_centre_has_sealed_is_looked_at_and_nothing_else(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    well = {"observedGeneration": 1, "conditions": conditions("True")}
    ill = {"observedGeneration": 1, "conditions": conditions("False", TAKEN)}
    taken, labelled = sealed("taken", ill), {"metadata": {"labels": {"app": "press"}}}
    pages = {
        "": {"items": [sealed("db", well), sealed("theirs", well, ours=False)], "metadata": {"continue": "more"}},
        "more": {"items": [{**taken, "spec": {**taken["spec"], "template": labelled}}], "metadata": {}},
    }

    def reply(request: ReceivedRequest) -> Reply:
        return Reply(200, pages["more" if "continue=more" in request.path else ""])

    centre.reply = reply
    assert await kubernetes.openings() == [
        Opening(
            "default",
            "db",
            digest_of("db", "AgB="),
            Stage.OPENED,
            "",
            UNNOTED,
            template_on_the_edge({}),
        ),
        Opening(
            "default",
            "taken",
            digest_of("taken", "AgB="),
            Stage.REFUSED,
            TAKEN,
            UNNOTED,
            template_on_the_edge({"metadata": {"labels": {"app": "press"}}}),
        ),
    ]
    asked = {(each.method, each.path.partition("?")[0]) for each in centre.requests}
    assert asked == {("GET", "/apis/bitnami.com/v1alpha1/sealedsecrets")}


async def test_an_edge_without_sealed_secrets_holds_none_and_one_that_hides_them_is_not_said_to(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    centre.reply = lambda _request: Reply(404, b"404 page not found", {"Content-Type": "text/plain"})
    assert await kubernetes.openings() == []
    centre.reply = lambda _request: Reply(403, {"kind": "Status", "code": 403}, {"Content-Type": "application/json"})
    with pytest.raises(Forbidden):
        await kubernetes.openings()


def openings(number: int, stage: Stage, sentence: str = "") -> list[Opening]:
    names = (f"{stage.value}-{each:05}" for each in range(number))
    digests = {name: digest_on_the_edge("default", name, {}) for name in names}
    return [
        Opening("default", name, digest, stage, sentence, template=digest[:4]) for name, digest in digests.items()
    ]


def test_the_centre_reads_what_the_edge_has_written() -> None:
    found = [*openings(3, Stage.OPENED), *openings(2, Stage.PENDING), *openings(30, Stage.REFUSED, TAKEN)]
    read = opened_secrets(read_edge_status({"secrets": json.loads(json.dumps(openings_to_json(found)))}))
    assert read is not None and read.is_complete
    expected = {Stage.OPENED: EdgeState.OPENED, Stage.PENDING: EdgeState.APPLIED, Stage.REFUSED: EdgeState.REFUSED}
    assert [read.state_of(each.digest, each.template)[0] for each in found] == [
        expected[each.stage] for each in found
    ]
    assert (len(read.refused), read.refused_count) == (20, 30)
    assert {read.state_with_template(each.digest, "none") for each in found} == {EdgeState.SEALED}
    assert read.state_of(found[5].digest, found[5].template) == (EdgeState.REFUSED, TAKEN)
    assert read.state_of(digest_of("opened-00000", "another"), found[0].template) == (EdgeState.SEALED, "")


@pytest.mark.parametrize("stage", list(Stage))
def test_thousands_fit_and_more_are_not_guessed_at(stage: Stage) -> None:
    found = openings(MOST_TOLD + 500, stage, "m" * LONGEST_SENTENCE)
    said = openings_to_json(found)
    assert len(json.dumps(said)) < 47_000
    assert said["counts"][stage] == len(found)
    read = opened_secrets(read_edge_status({"secrets": said}))
    assert read is not None and not read.is_complete
    assert {read.state_of(each.digest, each.template)[0] for each in found} > {EdgeState.UNKNOWN}
    assert openings_to_json(reversed(found)) == said, "the order in which they were found is no news"
