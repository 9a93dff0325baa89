"""A file like ``install.yaml`` of Flux's releases, which cannot be had here: its kinds, its names, its labels.

Controllers and rights are as upstream's own manifests have them; the definitions are small ones, unless real ones
are given.
"""

import hashlib
from collections.abc import Sequence

from edgewright.domain.imported_flux import ImportedFlux, checked_import

VERSION = "v2.7.0"
NAMESPACE = "flux-system"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")
KINDS = {
    "source": ("GitRepository", "gitrepositories", "v1"),
    "kustomize": ("Kustomization", "kustomizations", "v1"),
    "helm": ("HelmRelease", "helmreleases", "v2"),
}
LABELS = f"labels: {{app.kubernetes.io/part-of: flux, app.kubernetes.io/version: {VERSION}}}"


def definition(group: str, kind: str, plural: str, version: str) -> str:
    """One CustomResourceDefinition that takes anything."""
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}.toolkit.fluxcd.io
  {LABELS}
spec:
  group: {group}.toolkit.fluxcd.io
  scope: Namespaced
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {kind.lower()}}}
  versions:
    - name: {version}
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


DEFINITIONS = tuple(definition(group, *names) for group, names in KINDS.items())


def controller(name: str) -> str:
    """A controller and its ServiceAccount."""
    return f"""\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {name}
  namespace: {NAMESPACE}
  {LABELS}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: {NAMESPACE}
  {LABELS}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {name}
      containers:
        - name: manager
          image: ghcr.io/fluxcd/{name}:v1.7.0
          args: [--watch-all-namespaces, --log-level=info]
          env: [{{name: RUNTIME_NAMESPACE, valueFrom: {{fieldRef: {{fieldPath: metadata.namespace}}}}}}]
          securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true}}
"""


def flux_file(definitions: Sequence[str] = DEFINITIONS) -> bytes:
    """The whole file."""
    subjects = "".join(
        f"  - {{kind: ServiceAccount, name: {name}, namespace: {NAMESPACE}}}\n" for name in CONTROLLERS[1:]
    )
    documents = [
        f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n  {LABELS}\n",
        f"""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: allow-egress
  namespace: {NAMESPACE}
  {LABELS}
spec:
  podSelector: {{}}
  egress: [{{}}]
  policyTypes: [Ingress, Egress]
""",
        *definitions,
        f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: cluster-reconciler-{NAMESPACE}
  {LABELS}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}
subjects:
{subjects}""",
        *map(controller, CONTROLLERS),
    ]
    return ("---\n# As from a release\n" + "---\n".join(documents)).encode()


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


FILE = flux_file()
GENUINE_FLUX = checked_import(FILE, sha256_of(FILE))


def labelled_flux(version: str, *, built: str = "") -> ImportedFlux:
    """A release of that version; ``built``: another file of the same version."""
    content = FILE.replace(VERSION.encode(), version.encode()) + f"# {built}\n".encode()
    facts = {"version": version, "sha256": sha256_of(content), "manifests": content.decode()}
    return GENUINE_FLUX.model_copy(update=facts)
