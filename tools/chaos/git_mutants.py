"""Broken promises in repositories: see ``mutants``."""

import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from secrets import token_bytes
from typing import Any

import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from loose_objects import object_file

from tools.chaos.golden import BY_HAND, RELEASE_FILE, SECRETS_FOLDER
from tools.chaos.mutants import GONE, PRESENT, PUSHED, REMOVED, SECRETIVE, Home, Mutant, Plant
from tools.chaos.repositories import CheckedRepository, is_secret
from tools.chaos.sealed import Opener, ciphertexts

NOBODY = {
    "GIT_AUTHOR_NAME": "mutant",
    "GIT_AUTHOR_EMAIL": "mutant@localhost",
    "GIT_COMMITTER_NAME": "mutant",
    "GIT_COMMITTER_EMAIL": "mutant@localhost",
}


def git(folder: Path, *arguments: str, stdin: str = "") -> str:
    """What git prints; it has to succeed."""
    index = {"GIT_INDEX_FILE": str(folder / "mutant.index")}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **NOBODY, **index},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path, changes: dict[str, str | None], *, message: str | None = None, merged: str = "") -> None:
    """One more commit; ``message`` None: as the head has it; ``merged``: a second parent."""
    git(folder, "read-tree", "main")
    for path, text in changes.items():
        if text is None:
            git(folder, "update-index", "--index-info", stdin=f"0 {'0' * 40}\t{path}\n")
        else:
            blob = git(folder, "hash-object", "-w", "--stdin", stdin=text)
            git(folder, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree = git(folder, "write-tree")
    text = message or git(folder, "log", "-1", "--format=%B", "main")
    parents = ["-p", "main", *(["-p", merged] if merged else [])]
    git(folder, "update-ref", "refs/heads/main", git(folder, "commit-tree", tree, *parents, "-F", "-", stdin=text))
    (folder / "mutant.index").unlink()


def seal(value: str, key: rsa.RSAPublicKey, label: str) -> str:
    """An envelope as docs/crypto.md has it."""
    session = token_bytes(32)
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label.encode())
    wrapped = key.encrypt(session, oaep)
    sealed = AESGCM(session).encrypt(b"\0" * 12, value.encode(), None)
    return b64encode(len(wrapped).to_bytes(2, "big") + wrapped + sealed).decode()


def on(where: str, change: Callable[[Home, CheckedRepository], None]) -> Plant:
    """A change in the repository of the first cluster that is ``where``."""

    def plant(home: Home) -> None:
        cluster = home.cluster(where)
        change(home, CheckedRepository(cluster, where == GONE, home.repository(cluster, archived=where == GONE)))

    return plant


def on_secret(change: Callable[[Home, CheckedRepository, str], None]) -> Plant:
    """A change of a file of a Secret; its path comes with it."""

    def plant(home: Home) -> None:
        for repository in home.open_repositories(SECRETIVE):
            path = next(filter(is_secret, repository.files), None)
            if path is not None:
                change(home, repository, path)
                return
        raise AssertionError("the run has left no secret")

    return plant


def lose_secret(_home: Home, repository: CheckedRepository, path: str) -> None:
    commit(repository.folder, {path: None})


def seal_for_another(_home: Home, repository: CheckedRepository, path: str) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _reseal(repository, path, lambda value, label: seal("of another cluster", stranger.public_key(), label))


def seal_for_other_hardware(home: Home, repository: CheckedRepository, path: str) -> None:
    opener = Opener(home.keys)
    document = repository.blobs[repository.files[path]]
    [first, *_] = opener.values(document).values()
    other = next(key for number, key in enumerate(home.keys) if number != first.key)

    def again(sealed: str, label: str) -> str:
        return seal(str(opener.open(sealed, label).value), other.opened().public_key(), label)

    _reseal(repository, path, again)


def lose_push(_home: Home, repository: CheckedRepository) -> None:
    commit(repository.folder, {next(path for path in repository.files if path.endswith(".txt")): None})


def push_foreign(_home: Home, repository: CheckedRepository) -> None:
    commit(repository.folder, {f"{BY_HAND}foreign.txt": "nobody pushed this\n"}, message="By hand")


def resurrect_secret(home: Home) -> None:
    """A value that was deleted, and is there again."""
    for repository in home.open_repositories(PRESENT):
        documents = [repository.blobs[blob] for path, blob in repository.files.items() if is_secret(path)]
        there = {place for document in documents for place in ciphertexts(document)}
        for line in home.lines:
            if line.verb != "secrets" or line.cluster != repository.uuid or line.outcome != "yes":
                continue
            for place, value in line.asked["changes"]:
                if value is None and place not in there:
                    _put(home, repository, place, "resurrected")
                    return
    raise AssertionError("the run has deleted no secret")


def put_foreign(home: Home, repository: CheckedRepository, path: str) -> None:
    """A Secret that nobody has ever written."""
    content = _document(repository, path)
    content["metadata"]["name"] = "foreign"
    sealed = seal(
        "nobody wrote this", home.keys[0].opened().public_key(), f"{content['metadata']['namespace']}/foreign"
    )
    content["spec"]["encryptedData"] = {"key": sealed}
    target = f"{SECRETS_FOLDER}{content['metadata']['namespace']}/foreign.yaml"
    commit(repository.folder, {target: yaml.safe_dump(content)})


def commit_again(_home: Home, repository: CheckedRepository) -> None:
    commit(repository.folder, {})


def commit_twice(home: Home, repository: CheckedRepository, path: str) -> None:
    """The same request, sealed anew by a second attempt."""
    opener = Opener(home.keys)

    def again(sealed: str, label: str) -> str:
        opened = opener.open(sealed, label)
        assert opened.key is not None
        return seal(str(opened.value), home.keys[opened.key].opened().public_key(), label)

    _reseal(repository, path, again)


def lose_commits(_home: Home, repository: CheckedRepository, _path: str) -> None:
    git(repository.folder, "update-ref", "refs/heads/main", repository.commits[0].id)


def wake_late(_home: Home, repository: CheckedRepository) -> None:
    message = f"Render\n\nEdgewright-Cluster: {repository.uuid}\nEdgewright-Fence: 0/1\n"
    commit(repository.folder, {"late": "an attempt of long ago\n"}, message=message)


def write_for_another(_home: Home, repository: CheckedRepository) -> None:
    message = "Render\n\nEdgewright-Cluster: another\nEdgewright-Fence: 9/99\n"
    commit(repository.folder, {"foreign": "of another cluster\n"}, message=message)


def fork(_home: Home, repository: CheckedRepository, _path: str) -> None:
    commit(repository.folder, {"merged": "two histories\n"}, merged=repository.commits[0].id)


def undeliver(_home: Home, repository: CheckedRepository) -> None:
    release = repository.blobs[repository.files[RELEASE_FILE]]
    content = yaml.safe_load(release)
    content["spec"]["values"]["global"]["stamp"] = "old"
    commit(repository.folder, {RELEASE_FILE: yaml.safe_dump(content)})


def damage(_home: Home, repository: CheckedRepository) -> None:
    blob = repository.files[RELEASE_FILE]
    object_file(repository.folder, blob).unlink()


def lose(_home: Home, repository: CheckedRepository) -> None:
    shutil.rmtree(repository.folder)


def double(_home: Home, repository: CheckedRepository) -> None:
    archive = repository.folder.parent / "archive"
    shutil.copytree(repository.folder, archive / f"{repository.uuid}-{repository.commits[-1].id}.git")


def put_in_service(_home: Home, repository: CheckedRepository) -> None:
    shutil.copytree(repository.folder, repository.folder.parent.parent / f"{repository.uuid}.git")


def commit_refused(home: Home) -> None:
    """A secret that was answered 409, and is in the repository all the same."""
    for repository in home.open_repositories(REMOVED):
        for line in home.lines:
            if line.verb != "secrets" or line.outcome != "no" or line.cluster != repository.uuid:
                continue
            for place, value in line.asked["changes"]:
                if value is not None:
                    _put(home, repository, place, value)
                    return
    raise AssertionError("no secret was refused in the run")


def _put(home: Home, repository: CheckedRepository, place: str, value: str) -> None:
    namespace, name, key = place.split("/")
    sealed = seal(value, home.keys[0].opened().public_key(), f"{namespace}/{name}")
    content = {"metadata": {"namespace": namespace, "name": name}, "spec": {"encryptedData": {key: sealed}}}
    commit(repository.folder, {f"{SECRETS_FOLDER}{namespace}/{name}.yaml": yaml.safe_dump(content)})


def _reseal(repository: CheckedRepository, path: str, again: Callable[[str, str], str]) -> None:
    content = _document(repository, path)
    label = f"{content['metadata']['namespace']}/{content['metadata']['name']}"
    sealed = content["spec"]["encryptedData"]
    content["spec"]["encryptedData"] = {key: again(text, label) for key, text in sealed.items()}
    commit(repository.folder, {path: yaml.safe_dump(content)})


def _document(repository: CheckedRepository, path: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(repository.blobs[repository.files[path]])
    return content


REPOSITORIES = (
    Mutant("a lost push", "push_lost", on(PUSHED, lose_push)),
    Mutant("a push that nobody made", "push_foreign", on(PUSHED, push_foreign)),
    Mutant("a lost secret", "secret_lost", on_secret(lose_secret)),
    Mutant("a secret encrypted for another cluster", "secret_unopenable", on_secret(seal_for_another)),
    Mutant("a secret encrypted for other hardware", "secret_of_other_hardware", on_secret(seal_for_other_hardware)),
    Mutant("a deleted secret that is there again", "secret_wrong", resurrect_secret),
    Mutant("a secret that nobody wrote", "secret_foreign", on_secret(put_foreign)),
    Mutant("a secret that was refused and committed", "refused_yet_committed", commit_refused),
    Mutant("a commit of nothing", "commit_doubled", on(PRESENT, commit_again)),
    Mutant("a request committed twice", "commit_doubled", on_secret(commit_twice)),
    Mutant("lost commits", "commit_lost", on_secret(lose_commits)),
    Mutant("an attempt that wakes late", "fence_backwards", on(PRESENT, wake_late)),
    Mutant("a commit of another cluster", "commit_foreign", on(PRESENT, write_for_another)),
    Mutant("a forked history", "history_forked", on_secret(fork)),
    Mutant("an update that was not delivered", "update_not_delivered", on(PRESENT, undeliver)),
    Mutant("a damaged repository", "repository_damaged", on(PRESENT, damage)),
    Mutant("a missing repository", "repository_missing", on(PRESENT, lose)),
    Mutant("a missing archive", "repository_missing", on(GONE, lose)),
    Mutant("a doubled repository", "repository_doubled", on(PRESENT, double)),
    Mutant("a repository that outlives its cluster", "deletion_unfinished", on(GONE, put_in_service)),
)
