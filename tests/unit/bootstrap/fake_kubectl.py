"""Stands in for kubectl against a cluster that is kept in a JSON file.

Why a stand-in: a real API server needs components that are built for minutes, and `make test` has none. It
knows exactly the calls that the script makes and fails on any other, so that a new call is a decision. The
same script meets a real API server in the tests under `tests/real/`, once those bring one.

Usage: fake_kubectl.py STATE_FOLDER ARGUMENT...   The folder is that of ``KubectlState`` in tests/support, which reads
and writes the same files.
"""

import binascii
import marshal
import os
import sys

# ruff: noqa: PTH110, PTH118, PTH123, PTH202, PLC0415, SIM115 - pathlib, re, base64 or json each double the start of this program, and tests
# start it thousands of times: what only some calls need is imported there

TYPE_CHECKING = False  # type checkers know the name, and typing would have to be imported for theirs
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    Held = dict[str, Any]
    Objects = dict[str, Held]

STATE = sys.argv[1]
CLUSTER = os.path.join(STATE, "cluster")
ANCHOR = "ClusterRole/edgewright-anchor"
ANCHOR_UID = "5f0c1d2e-uid-of-the-anchor"
UNNOTICED, TERMINATING = 2, 2
"""For how many calls what has lost its owner is as before, and its namespace terminating then; a real garbage
collector takes about a second for each."""
KINDS = {
    "configmaps": "ConfigMap",
    "customresourcedefinitions.apiextensions.k8s.io": "CustomResourceDefinition",
    "deployments.apps": "Deployment",
    "gitrepositories.source.toolkit.fluxcd.io": "GitRepository",
    "helmreleases.helm.toolkit.fluxcd.io": "HelmRelease",
    "kustomizations.kustomize.toolkit.fluxcd.io": "Kustomization",
    "namespaces": "Namespace",
    "secrets": "Secret",
}


def note(name: str, value: "Any") -> None:
    with open(os.path.join(STATE, name), "ab") as log:
        log.write(marshal.dumps(value))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def stop(sentence: str, code: int = 1) -> "NoReturn":
    sys.stderr.write(sentence + "\n")
    sys.exit(code)


def field(text: str, name: str, indent: str = "  ") -> str:
    import re

    found = re.search(rf"^{indent}{re.escape(name)}:[ ]*(.*)$", text, re.MULTILINE)
    return found.group(1).strip().strip('"') if found else ""


def next_version(cluster: "Held") -> str:
    cluster["version_counter"] = cluster.get("version_counter", 100) + 1
    return str(cluster["version_counter"])


def version_of(held: "Held") -> str:
    return str(held.get("version", "7"))


def anchor_uid(objects: "Objects") -> str:
    return str(objects[ANCHOR].get("uid", ANCHOR_UID)) if ANCHOR in objects else ""


def owner_in(text: str) -> str:
    found = text.partition('name: edgewright-anchor, uid: "')[2]
    return found.partition('"')[0]


def collect(objects: "Objects") -> None:
    """As the garbage collector does it, some calls later: what belongs to an anchor that has gone goes.

    A namespace is terminating first, as a real one is: nothing new comes into it then.
    """
    alive = anchor_uid(objects)
    for key in [key for key, held in objects.items() if held.get("owned_by", alive) not in ("", alive)]:
        if key not in objects:
            continue  # went with its namespace
        held = objects[key]
        held["calls"] = held.get("calls", 0) + 1
        if held["calls"] > UNNOTICED and key.startswith("Namespace/"):
            held["deleted"] = "2026-01-01T00:00:00Z"
        if held["calls"] > UNNOTICED + TERMINATING:
            remove(objects, key)


def remove(objects: "Objects", key: str) -> None:
    objects.pop(key, None)
    if key.startswith("Namespace/"):
        for each in [each for each in objects if each.split("/")[1:2] == [key[10:]] and each.count("/") == 2]:
            del objects[each]


def meant(objects: "Objects", kinds: str, options: list[str]) -> "Iterator[tuple[str, str, str, str]]":
    """The keys of the objects that ``get`` or ``delete`` mean."""
    namespace = options[options.index("-n") + 1] if "-n" in options else ""
    wanted = options[options.index("-l") + 1].split(",") if "-l" in options else []
    called = options[options.index("--field-selector") + 1].partition("=")[2] if "--field-selector" in options else ""
    for key, held in objects.items():
        kind, *_, name = key.split("/")
        scope = key.split("/")[1] if key.count("/") == 2 else ""
        named = [KINDS.get(each, each) for each in kinds.split(",")]
        fits = all(held["labels"].get(pair.partition("=")[0]) == pair.partition("=")[2] for pair in wanted)
        if fits and kind in named and (not namespace or scope == namespace) and called in ("", name):
            yield key, kind, scope, name


def parsed(text: str) -> "Held":
    import re

    labels = dict(re.findall(r'(edgewright\.dev/[a-z-]+): "([^"]*)"', field(text, "labels")))
    values = {}
    if "\ndata:\n" in text:
        values = dict(re.findall(r"^  ([A-Za-z._]+): (\S*)$", text.split("\ndata:\n")[1], re.MULTILINE))
    for value in values.values():
        binascii.a2b_base64(value, strict_mode=True)
    return {"labels": labels, "data": values, "text": text, "namespace": field(text, "namespace")}


def rehearse(cluster: "Held", texts: list[str]) -> None:
    """As a dry run on the server: each object is judged by itself, as a real one, and nothing is kept.

    ``ungranted`` in the state names Roles that the user may not make, ``denied`` objects that an admission plugin
    refuses in namespaces that are there; ``unserved``: Flux's kinds have come only just.
    """
    objects, said = cluster["objects"], []
    for text in "\n---\n".join(texts).split("\n---\n"):
        kind, name, namespace = field(text, "kind", ""), field(text, "name"), field(text, "namespace")
        group = field(text, "apiVersion", "").partition("/")[0]
        known = [each for each in objects if each.startswith("CustomResourceDefinition/") and each.endswith(group)]
        if group.endswith("fluxcd.io") and not known:
            said += [f'no matches for kind "{kind}" in version "{group}/v1"', "ensure CRDs are installed first"]
        elif group.endswith("fluxcd.io") and cluster.get("unserved"):
            said.append(
                f"Error from server (NotFound): the server could not find the requested resource (patch {name})"
            )
        elif namespace not in ("", "default") and f"Namespace/{namespace}" not in objects:
            said.append(f'Error from server (NotFound): namespaces "{namespace}" not found')
        elif name in cluster.get("ungranted", []) and kind.endswith("Role"):
            said.append(
                f'Error from server (Forbidden): {kind} "{name}" is forbidden: user "u" is attempting to grant'
            )
            said.append("RBAC permissions not currently held:")
        elif name in cluster.get("denied", []):
            said.append(f'Error from server: admission webhook "w" denied the request: {kind} {name}')
        elif kind.endswith("Binding"):
            said.append(f'Error from server (NotFound): roles.rbac.authorization.k8s.io "{name}" not found')
    if said:
        stop("\n".join(said))


def gate() -> None:
    """Counts the calls of a run in GATE_FILE; before the one numbered GATE_AT it waits, or has the run killed."""
    file = os.environ["GATE_FILE"]
    with open(file, "ab") as calls:
        calls.write(b".")
    if os.path.getsize(file) != int(os.environ.get("GATE_AT", "0")):
        return
    if os.environ["GATE"] == "kill":
        import signal

        os.killpg(os.getpgid(0), signal.SIGKILL)
    import time

    open(f"{file}.reached", "w").close()
    while not os.path.exists(f"{file}.open"):
        time.sleep(0.005)


def main() -> None:
    args = sys.argv[2:]
    if "GATE_FILE" in os.environ:
        gate()
    # One request at a time, as the API server orders what is asked of one object.
    import fcntl

    lock = open(os.path.join(STATE, "lock"), "a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    note("calls", {"args": args, "environment": dict(os.environ)})
    with open(CLUSTER, "rb") as file:
        cluster = marshal.load(file)
    objects = cluster["objects"]
    collect(objects)
    if args[:1] == ["--context"]:
        if args[1] not in cluster["contexts"]:
            stop(f'error: context "{args[1]}" does not exist')
        args = args[2:]
    args = [arg for arg in args if not arg.startswith("--request-timeout")]
    if not cluster["reachable"] and args[0] != "config":
        stop("The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?")

    match args:
        case ["get", "--raw", "/version"]:
            say(f'{{\n  "major": "1",\n  "gitVersion": "{cluster["version"]}",\n  "goVersion": "go1.24"\n}}')
        case ["auth", "can-i", "--quiet", "*", "*", "--all-namespaces"]:
            sys.exit(1 if cluster["forbidden"] else 0)
        case ["auth", "can-i", "--quiet", verb, resource, *_]:
            sys.exit(1 if f"{verb} {resource}" in cluster["forbidden"] else 0)
        case ["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]:
            sys.stdout.write(cluster["uid"])
        case ["get", "namespace", *names, "--ignore-not-found", "-o", "name"]:
            for name in names:
                if f"Namespace/{name}" in objects:
                    say(f"namespace/{name}")
        case ["apply", "--server-side", "--force-conflicts", _, "--dry-run=server", *files]:
            rehearse(cluster, [open(path).read() for path in files if path != "-f"])
        case ["get", "namespace", name, "--ignore-not-found", "-o", template]:
            owner = '{.metadata.ownerReferences[?(@.name=="edgewright-anchor")].uid}'
            assert template == "jsonpath={.metadata.deletionTimestamp}|" + owner
            held = objects.get(f"Namespace/{name}")
            if held:
                sys.stdout.write(held.get("deleted", "") + "|" + (held.get("owner") or held.get("owned_by", "")))
        case ["get", "validatingadmissionpolicies.v1.admissionregistration.k8s.io", "-o", "name"]:
            stop('error: the server doesn\'t have a resource type "validatingadmissionpolicies"')
        case ["wait", "--for=delete", namespace, *_]:
            if cluster.get("hangs"):
                stop("error: timed out waiting for the condition")
            remove(objects, f"Namespace/{namespace.partition('/')[2]}")
        case ["get", "secret", name, "-n", namespace, "--ignore-not-found", "-o", template]:
            assert template.startswith("go-template={{with .metadata.labels}}")
            held = objects.get(f"Secret/{namespace}/{name}")
            if held:
                labels = [held["labels"].get(f"edgewright.dev/{key}", "") for key in ("cluster", "generation")]
                password = binascii.a2b_base64(held["data"].get("password", "")).decode()
                sys.stdout.write("|".join([*labels, version_of(held), password]))
        case ["get", "secrets", "--all-namespaces", "--field-selector", _, "-l", selector, "-o", _]:
            ours = selector.rpartition("!=")[2]
            for key, held in objects.items():
                owner = held["labels"].get("edgewright.dev/cluster")
                if key.endswith("/edgewright-agent") and owner not in (None, ours):
                    sys.stdout.write(f"{owner} in namespace {held['namespace']} ")
        case ["config", "current-context"]:
            say(cluster["contexts"][0])
        case ["config", "view", *_]:
            sys.stdout.write("https://10.0.0.1:6443")
        case ["get", "nodes", "-o", "name"]:
            if cluster.get("hidden_nodes"):
                stop("Error from server (Forbidden): nodes is forbidden")
            say("node/one\nnode/two")
        case [
            "get",
            "clusterrole",
            name,
            "--ignore-not-found",
            "-o",
            "jsonpath={.metadata.labels.edgewright\\.dev/cluster}",
        ]:
            if f"ClusterRole/{name}" in objects:
                sys.stdout.write(objects[f"ClusterRole/{name}"]["labels"].get("edgewright.dev/cluster", ""))
        case ["get", "clusterrole", name, "--ignore-not-found", "-o", template]:
            assert template.endswith("|{.metadata.resourceVersion}|{.metadata.uid}")
            held = objects.get(f"ClusterRole/{name}")
            if held:
                labels = [held["labels"].get(f"edgewright.dev/{key}", "") for key in ("cluster", "generation")]
                sys.stdout.write("|".join([*labels, held.get("run", ""), version_of(held), anchor_uid(objects)]))
        case ["annotate" | "label" as verb, "clusterrole", name, "--overwrite", mark, *seen]:
            held = objects.get(f"ClusterRole/{name}")
            if held is None:
                stop(f'Error from server (NotFound): clusterroles "{name}" not found')
            if seen not in ([], [f"--resource-version={version_of(held)}"]):
                stop(f'error: Operation cannot be fulfilled on clusterroles "{name}": the object has been modified')
            word, _, value = mark.partition("=")
            if verb == "annotate":
                assert word == "edgewright.dev/run"
                held["run"] = value
            else:
                held["labels"][word] = value
            held["version"] = next_version(cluster)
        case ["patch", "clusterrole", name, "--type=json", "--patch", patch]:
            import re

            path = "/metadata/annotations/edgewright.dev~1run"
            form = f"[{{op: test, path: {path}, value: '([0-9a-f]+)'}}, {{op: remove, path: {path}}}]"
            asked = re.fullmatch(re.escape(form).replace(re.escape("([0-9a-f]+)"), "([0-9a-f]+)"), patch)
            assert asked
            held = objects.get(f"ClusterRole/{name}")
            if held is None or held.get("run") != asked.group(1):
                stop("The request is invalid: the server rejected our request due to an error in our request")
            held["run"] = ""
            held["version"] = next_version(cluster)
        case ["delete", "--raw", path, "-f", "-"]:
            import json

            wanted = json.loads(sys.stdin.read())["preconditions"]["resourceVersion"]
            parts = path.split("/")
            key = f"Secret/{parts[4]}/{parts[6]}" if path.startswith("/api/v1/") else f"ClusterRole/{parts[5]}"
            if key not in objects:
                stop("Error from server (NotFound): it is not there")
            if version_of(objects[key]) != wanted:
                stop("Error from server (Conflict): the object has been modified")
            note("changes", ["delete", key])
            del objects[key]
            collect(objects)
        case ["get", "customresourcedefinition", "sealedsecrets.bitnami.com", "--ignore-not-found", "-o", "name"]:
            pass
        case ["get", "customresourcedefinition", name, "--ignore-not-found", "-o", template]:
            assert template.endswith("| {.spec.versions[?(@.served==true)].name} ")
            held = objects.get(f"CustomResourceDefinition/{name}")
            if held:
                served = held["data"].get("served") or ("v2" if name.startswith("helmreleases") else "v1")
                sys.stdout.write(held["labels"].get("edgewright.dev/cluster", "") + f"| {served} ")
        case ["get", "-f", _, "--ignore-not-found", "--no-headers", "--show-labels"]:
            if cluster.get("foreign"):
                say("something   1d   app=theirs\n\nother   1d   edgewright.dev/part-of=bootstrap")
        case ["patch", "--local", "--type=merge", "-f", "-", "-o", "json", "--patch", patch]:
            assert patch.startswith("metadata:\n  labels: {")
            text = sys.stdin.read()
            cluster.setdefault("stamped", {})[text] = patch
            sys.stdout.write(text)  # what it does to them is seen on a real cluster
        case ["get", "service", "kubernetes", "-n", "default", "-o", _]:
            sys.stdout.write("10.43.0.1")
        case ["wait", "--for=condition=Established", _, kind]:
            if kind.replace("customresourcedefinition", "CustomResourceDefinition") not in objects:
                stop(f'Error from server (NotFound): "{kind}" not found')
        case ["get", "secrets", "--all-namespaces", "-l", "owner=helm", "-o", template]:
            end = "\n" if "range" in template else " "
            sys.stdout.write("".join(each + end for each in cluster.get("releases", [])))
        case ["create", "-f", "-", *_] | ["apply", "--server-side", "--force-conflicts", _, "-f", "-", *_]:
            import re

            given = sys.stdin.read()
            stamp = cluster.get("stamped", {}).get(given, "")
            for text in re.split(r"^---$", given, flags=re.MULTILINE):
                if not text.strip():
                    continue
                made = parsed(text)
                made["labels"].update(parsed(stamp)["labels"])
                kind, name = field(text, "kind", ""), field(text, "name")
                if name in cluster["refused"] and (made["data"] or kind != "Secret"):
                    stop(f"Error from server (Forbidden): {kind} {name} is refused: {made['data'].get('password')}")
                scoped = [kind, made["namespace"], name] if made["namespace"] else [kind, name]
                key = "/".join(scoped)
                if args[0] == "create" and key in objects:
                    stop(f'Error from server (AlreadyExists): {kind} "{name}" already exists')
                tried = field(text, "resourceVersion")
                if (
                    tried and key in objects and version_of(objects[key]) != tried
                ):  # one that is gone is made, as tried
                    stop(f'Operation cannot be fulfilled on {kind} "{name}": the object has been modified')
                space = made["namespace"]
                if key not in objects and space not in ("", "default", "kube-system"):
                    if f"Namespace/{space}" not in objects:
                        stop(f'Error from server (NotFound): {kind} "{name}": namespaces "{space}" not found')
                    if objects[f"Namespace/{space}"].get("deleted"):
                        stop(
                            f'Error from server (Forbidden): error when creating "STDIN": {kind} "{name}" is '
                            f"forbidden: unable to create new content in namespace {space} because it is being "
                            "terminated"
                        )
                note("changes", [args[0], key])
                run = re.search(r'edgewright\.dev/run: "([0-9a-f]*)"', text)
                made["text"] = re.sub(r"^  resourceVersion: .*\n", "", text, flags=re.MULTILINE)
                before = objects.get(key)
                same = before is not None and before["text"] == made["text"]  # what changes nothing keeps its version
                version = version_of(before) if same else next_version(cluster)
                objects[key] = {**made, "version": version, "run": run.group(1) if run else ""}
                if key == ANCHOR:
                    objects[key]["uid"] = f"uid-of-anchor-{version}"
                if owner := owner_in(stamp or text):
                    objects[key]["owned_by"] = owner
                if args[-2] == "-o":
                    sys.stdout.write(version_of(objects[key]))
        case ["api-resources", "--verbs=list,delete", "-o", "name", *namespaced]:
            alone = {"namespaces", "customresourcedefinitions.apiextensions.k8s.io"} if namespaced else {"namespaces"}
            defined = {key.partition("/")[2] for key in objects if key.startswith("CustomResourceDefinition/")}
            say(
                "\n".join(each for each in KINDS if each not in alone and (".fluxcd." not in each or each in defined))
            )
        case ["get", _, "--all-namespaces", "-l", "app.kubernetes.io/managed-by=Helm", "-o", _]:
            pass  # what Helm has made is seen on a real cluster
        case ["get", "secrets", "--all-namespaces", "-l", release, "-o", _] if release.startswith("owner=helm,name="):
            sys.stdout.write("edgewright" if release.rpartition("=")[2] in cluster.get("releases", []) else "")
        case ["delete", "secrets", "-n", _, "-l", release, *_] if release.startswith("owner=helm,name="):
            cluster["releases"].remove(release.rpartition("=")[2])
        case ["get", kinds, "--all-namespaces", "-l", "edgewright.dev/part-of=bootstrap", "-o", _]:
            for key, *_ in meant(objects, kinds, args):
                sys.stdout.write(objects[key]["labels"]["edgewright.dev/cluster"] + " ")
        case ["get", kinds, *options, "-o", template] if "{{range .items}}" in template:
            for _, kind, namespace, name in meant(objects, kinds, options):
                if "Reconciling" in template:
                    sys.stdout.write("False")
                elif "deletionTimestamp" in template:
                    say(f"{kind}/{name}")
                elif ".kind" in template:
                    say(f"{namespace or '-'} {kind} {name}")
                else:
                    sys.stdout.write(f"{name} ")
        case ["delete", "namespace", name, "--ignore-not-found", "--wait", _]:
            note("changes", ["delete", f"Namespace/{name}"])
            remove(objects, f"Namespace/{name}")
        case ["delete", kinds, "--all-namespaces", "--ignore-not-found", "--dry-run=server", *options]:
            for key, *_ in meant(objects, kinds, options):
                if f"delete {key.partition('/')[0]}" in cluster["forbidden"]:
                    stop(f'Error from server (Forbidden): "{key}" is forbidden: User "u" cannot delete resource "x"')
        case ["delete", kinds, *options] if kinds in cluster.get("once_undeleted", {}):
            sentence = cluster["once_undeleted"].pop(kinds)
            with open(CLUSTER, "wb") as file:
                marshal.dump(cluster, file)
            stop(sentence)
        case ["delete", kinds, *options]:
            for key, *_ in list(meant(objects, kinds, options)):
                note("changes", ["delete", key])
                remove(objects, key)
        case ["patch", kind, name, "-n", namespace, "--field-manager=edgewright", "--type=merge", "--patch", _]:
            if f"{KINDS.get(kind, kind)}/{namespace}/{name}" not in objects:
                stop(f'Error from server (NotFound): {kind} "{name}" not found')
        case ["patch", "namespace", name, "--type=merge", "--patch", _]:
            objects[f"Namespace/{name}"]["labels"] = {}
        case _:
            stop(f"fake kubectl does not know: {args}", 64)
    with open(CLUSTER, "wb") as file:
        marshal.dump(cluster, file)


main()
