"""The page behind the printed link: it has Temporal's Web UI show the names of clusters, and goes to their list.

The UI keeps the columns of its list in the browser, begins with columns that name no cluster, and takes none from a
link. A page of the same origin can set them: this one does so once, and leaves alone what somebody has chosen since.
"""

import base64
import hashlib
import json
from html import escape
from urllib.parse import quote

from edgewright.messages.names import ATTRIBUTE_AVAILABLE, ATTRIBUTE_NAME, ATTRIBUTE_PHASE, WORKFLOW_TYPE

PATH = "/clusters"
COLUMNS_KEY = "namespace-workflow-table-columns"
"""Under which the UI (2.54) keeps the columns of each namespace. One that does not know it shows its own columns."""
COLUMNS = ("Status", ATTRIBUTE_NAME, ATTRIBUTE_PHASE, ATTRIBUTE_AVAILABLE, "Workflow ID", "Type", "Start", "End")

_SCRIPT = """
const [key, namespace, columns, name, list] = JSON.parse(document.body.dataset.wanted);
try {
  const kept = JSON.parse(localStorage.getItem(key)) ?? {};
  const own = kept[namespace] ?? [];
  const shown = own.some(({label}) => label === name);
  if (!own.length) kept[namespace] = columns.map((label) => ({label}));
  else if (!shown) kept[namespace] = [...own.slice(0, 1), {label: name}, ...own.slice(1)];
  localStorage.setItem(key, JSON.stringify(kept));
} finally {
  location.replace(list);
}
"""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Clusters</title>
<body data-wanted="{wanted}">
<p><a href="{list}">Clusters</a></p>
<script>{script}</script>
"""
_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
CONTENT_POLICY = (
    f"default-src 'none'; script-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def clusters_link(ui: str, namespace: str, *, guarded: bool) -> str:
    """What is printed for people to open.

    Args:
        ui: base URL of the Web UI, no trailing slash.
        guarded: whether our guard, which has the page, stands before the UI.
    """
    return f"{ui}{PATH}" if guarded else f"{ui}/{_list_of(namespace)}"


def clusters_page(namespace: str) -> str:
    """The page, as HTML."""
    listed = _list_of(namespace)  # relative: behind a proxy the UI may have a path of its own
    wanted = json.dumps([COLUMNS_KEY, namespace, COLUMNS, ATTRIBUTE_NAME, listed])
    return _PAGE.format(wanted=escape(wanted), list=escape(listed), script=_SCRIPT)


def _list_of(namespace: str) -> str:
    """Path and query of the list of the clusters' workflows alone: no sweep, no delivery of notifications."""
    query = quote(f"`WorkflowType`={json.dumps(WORKFLOW_TYPE)}", safe="")
    return f"namespaces/{quote(namespace, safe='')}/workflows?query={query}"
