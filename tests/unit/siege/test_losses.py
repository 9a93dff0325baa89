"""What the siege takes for a loss, although something is there that looks like what it should be."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from sealing_keys import NOW, private_key, sealing_certificate

from bench.agent_load import Write
from bench.siege.losses import changed_certificates, lost_values, may_be_there, trouble_of, value_on_edge
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.ports.git_server import CommitMessage
from edgewright.sealing import Plaintext, Scope, SealedValue, put_values, seal

ONE, OTHER = "a" * 64, "b" * 64
PATH = f"/v1/cluster/{uuid4()}/secret/team/secret-0/password"


def test_certificates_that_all_changed_to_the_same_foreign_one_are_a_loss() -> None:
    before = {"one": ONE, "two": ONE}
    assert changed_certificates(before, before) == []
    assert len(changed_certificates(before, {"one": OTHER, "two": OTHER})) == 2
    assert len(changed_certificates(before, {"one": ONE, "two": None})) == 1


@pytest.mark.parametrize(
    ("phase", "conditions", "trouble"),
    [
        ("Active", {"Available": "True"}, []),
        ("Active", {"Available": "False"}, ["Available is False"]),
        ("Active", {"Available": "Unknown"}, ["Available is Unknown"]),
        ("Active", {}, ["Available is None"]),
        ("Deleting", {"Available": "True"}, ["is Deleting"]),
    ],
)
def test_an_edge_that_counts_as_silent_is_a_loss(phase: str, conditions: dict[str, str], trouble: list[str]) -> None:
    shown = {
        "name": "one",
        "phase": phase,
        "conditions": [{"type": kind, "status": status} for kind, status in conditions.items()],
    }
    found = trouble_of(shown)
    assert len(found) == len(trouble)
    assert all(word in sentence for word, sentence in zip(trouble, found, strict=True))


def test_an_older_value_under_the_same_certificate_is_a_loss() -> None:
    expected = may_be_there([Write(PATH, "older", answered=True), Write(PATH, "newer", answered=True)])
    states = {PATH: "current"}
    assert lost_values(expected, states, {PATH: "newer"}) == []
    assert len(lost_values(expected, states, {PATH: "older"})) == 1
    assert len(lost_values(expected, states, {PATH: None})) == 1
    assert len(lost_values(expected, {PATH: "stale"}, {PATH: "newer"})) == 1
    assert len(lost_values(expected, {}, {})) == 2


def test_a_value_without_an_answer_may_be_there_until_another_one_is_answered() -> None:
    writes = [Write(PATH, "one", answered=True), Write(PATH, "two", answered=False)]
    assert may_be_there(writes) == {PATH: ["one", "two"]}
    assert may_be_there([*writes, Write(PATH, "three", answered=True)]) == {PATH: ["three"]}
    assert may_be_there(writes[1:]) == {}


def test_a_value_is_read_as_the_edge_reads_it(tmp_path: Path) -> None:
    git, cluster = BareGitServer(tmp_path), uuid4()
    git.create_repository(cluster)
    write(git, cluster, "secret-0", "something")
    path = f"/v1/cluster/{cluster}/secret/team/secret-0/password"
    assert value_on_edge(git, path, private_key()) == "something"
    assert value_on_edge(git, path, generate_private_key(65537, 2048)) is None
    assert value_on_edge(git, path.replace("password", "user"), private_key()) is None
    assert value_on_edge(git, path.replace("secret-0", "secret-1"), private_key()) is None


def write(git: BareGitServer, cluster: UUID, name: str, value: str) -> None:
    certificate = sealing_certificate()
    secret = SecretReference("team", name)
    text = seal(Plaintext(value.encode()), certificate, scope=Scope.STRICT, secret=secret)
    document = put_values(
        None, SecretReference("team", name), {"password": SealedValue(text, certificate.fingerprint, NOW)}
    )
    git.commit(cluster, {f"edo/secrets/team/{name}.yaml": document}, CommitMessage("x", "x"), expected_head=None)
