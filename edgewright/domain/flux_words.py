"""What Flux and Helm say, in an operator's words: the file or the object first, no folder of the controller's own."""

import re

LONGEST_MESSAGE = 500
"""Characters of what Flux says: it is kept in each reading while it lasts."""

_WORKING_COPY = re.compile(r"/(?:[^/\s'\":()]+/)*?(?:kustomization-\d+|tmp/[^/\s'\":()]+)/")
"""Where a controller unpacks the repository; what follows is the path in the repository."""
_UNREADABLE_FILE = re.compile(r"(?:kustomize build failed: )?failed to decode Kubernetes YAML from ([^\s:]+): (.*)")
_FILE_OF_KUSTOMIZATION = re.compile(r"kustomize build failed: .*'([^'\s]+)': (MalformedYAMLError: .*?)(?:': |$)")
_YAML_ERROR = re.compile(r"(?:MalformedYAMLError: |error converting YAML to JSON: |yaml: )+")
_OBJECT = re.compile(r"([A-Z]\w*)/(\S+) (?:dry-run|apply) failed(?: \(\w+\))?: (.*)")
_HELM = re.compile(r"Helm \w+ failed for release \S+?(?: with chart (\S+))?: (.*)")
_CHART_SENTENCE = re.compile(r"execution error at \(([^():]+)[^()]*\): (.*)")


def line(text: str | None) -> str:
    """One line without control characters, as long as is kept."""
    if text is None:
        return ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_MESSAGE])
    return " ".join(shown.split())[:LONGEST_MESSAGE]


def application(kustomization: str, said: str) -> str:
    """Why Flux does not apply a Kustomization: names the file or the object that it stumbles over."""
    said = _WORKING_COPY.sub("", said)
    unreadable = _UNREADABLE_FILE.match(said) or _FILE_OF_KUSTOMIZATION.match(said)
    if unreadable is not None:
        file, error = unreadable.groups()
        return f"Flux cannot apply {kustomization}: {file} is no valid YAML: {_YAML_ERROR.sub('', error)}"
    refused = _OBJECT.match(said)
    if refused is not None:
        kind, name, error = refused.groups()
        return f"Flux cannot apply {kustomization}: {kind} {name} is refused: {error}"
    return f"Flux cannot apply {kustomization}: {said}"


def release(name: str, chart: str, said: str) -> str:
    """Why a release of Helm fails, of what helm-controller says.

    Args:
        chart: ``NAME@VERSION``, if it is known; what helm-controller names counts more.
    """
    failed = _HELM.match(said)
    if failed is not None:
        named, said = failed.groups()
        chart = named or chart
    sentence = _CHART_SENTENCE.match(said)
    if sentence is not None:
        file, said = sentence.groups()
        said = f"{said} ({file})"
    return f"The release {name}{f' (Helm chart {chart})' if chart else ''} failed: {said}"
