"""Whether a push would have Flux take over, or delete, what Edgewright itself has on the edge.

It keeps people from a mistake that would cost them the edge. It is no barrier: whoever may push is admin there, and
what kustomize makes of a folder is not computed. It is part of the ``pre-receive`` hook.
"""

from collections.abc import Iterator

from edgewright.adapters.git.push_changes import Trees, changed_entries
from edgewright.adapters.git.tree_format import EXECUTABLE, FILE, FOLDER
from edgewright.adapters.git.yaml_objects import Budget, TooLong, named_objects
from edgewright.domain.own_objects import EDGEWRIGHT, UNPRUNED, ObjectKey, OwnObjects
from edgewright.domain.repository_paths import printable

SECONDS = 3.0
"""Processor time for the objects of one push. Only files that name something of Edgewright's take any."""
GENERATED = ("edo", "cluster")
"""The folder whose objects Edgewright writes itself."""
_MANIFESTS = (".yaml", ".yml", ".json")
_FILES = frozenset({FILE, EXECUTABLE})


def reason_against_objects(old: str, new: str, folder: str, own: OwnObjects) -> str | None:
    """One sentence that says why a push is refused for the objects that it brings or drops; None if it is not.

    Args:
        old, new: commits.
        folder: the top folder that pushes may change.
        own: what bootstrap has brought to the edge.
    """
    budget = Budget(SECONDS)
    path = "/".join(GENERATED)
    with Trees() as trees:
        try:
            generated = [
                each.key for content in _generated(trees, old) for each in named_objects(content, ("",), budget)
            ]
            own = own.with_more(generated, EDGEWRIGHT)
            for entry in changed_entries(old, new):
                path = entry.path
                if not path.startswith(folder + "/") or not path.lower().endswith(_MANIFESTS):
                    continue
                before = _own_in(trees, own, entry.old_mode, entry.old_id, budget)
                after = _own_in(trees, own, entry.mode, entry.id, budget)
                for key, (stated, _) in after.items():
                    if key not in before:
                        return _brings(path, key, own, placed=key.namespace == stated.namespace)
                for key, (_, unpruned) in before.items():
                    if key not in after and not unpruned:
                        return _drops(path, key, own)
        except TooLong:
            return f"{printable(path)} takes too long to be read: split it, or push less at a time."
    return None


def _generated(trees: Trees, commit: str) -> Iterator[bytes]:
    tree = f"{commit}^{{tree}}"
    for part in GENERATED:
        mode, tree = trees.read(tree).get(part.encode(), (b"", ""))
        if mode != FOLDER:
            return
    yield from _manifests(trees, tree)
    for mode, object_id in trees.read(tree).values():
        if mode == FOLDER:  # such as the drivers of secrets
            yield from _manifests(trees, object_id)


def _manifests(trees: Trees, tree: str) -> Iterator[bytes]:
    for file, (mode, object_id) in trees.read(tree).items():
        if mode in _FILES and file.endswith(b".yaml"):
            yield trees.file(object_id)


def _own_in(
    trees: Trees, own: OwnObjects, mode: bytes, object_id: str, budget: Budget
) -> dict[ObjectKey, tuple[ObjectKey, bool]]:
    """Objects of ours that a file names -> how it names them, and whether Flux is to leave them when it is gone."""
    if mode not in _FILES:
        return {}
    found = {}
    for each in named_objects(trees.file(object_id), own.names, budget):
        key = own.find(each.key)
        if key is not None:
            found[key] = (each.key, each.unpruned)
    return found


def _brings(path: str, key: ObjectKey, own: OwnObjects, *, placed: bool) -> str:
    along = " with all that is in it" if key.kind == "Namespace" else ""
    elsewhere = "" if placed else " If yours is in another namespace, say in the file in which."
    return (
        f"{printable(path)} holds the {key}, which is {_whose(own.owner(key))}: Flux would take it over, and delete "
        f"it{along} once it leaves the file. Take it out of the file, and push again.{elsewhere}"
    )


def _drops(path: str, key: ObjectKey, own: OwnObjects) -> str:
    [(annotation, value)] = UNPRUNED.items()
    return (
        f"{printable(path)} held the {key}, which is {_whose(own.owner(key))}: Flux would delete it now. Leave it in "
        f"the file with the annotation {annotation}: {value}, push that, and take it out once the edge has it."
    )


def _whose(owner: str) -> str:
    return f"{owner}'" if owner.endswith("s") else f"{owner}'s"
