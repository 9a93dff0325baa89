"""Where things lie in a driving repository, and the notes that lie there for people.

Git holds no empty folders, and a Flux Kustomization whose path is missing fails and prunes nothing. So each
folder that Flux reads holds a note from the first commit on. Flux takes only ``*.yaml`` and ``*.yml`` for
manifests: a folder with nothing but its note builds to no objects, and what it held before is pruned.
"""

from uuid import UUID

README_PATH = "README.md"
CLUSTER_FOLDER = "edo/cluster/"
SECRETS_FOLDER = "edo/secrets/"
BY_HAND_FOLDER = "by-hand/"

SELF_LINK_FILE = "self-link.yaml"
FLUX_SYSTEM_FILE = "flux-system.yaml"
SELF_LINK_PATH = CLUSTER_FOLDER + SELF_LINK_FILE
"""The objects that bootstrap applies first: they make Flux read this repository."""

DRIVERS_FOLDER = CLUSTER_FOLDER + "secrets/"
DRIVERS_PATH = DRIVERS_FOLDER + "drivers.yaml"
"""One Kustomization for each namespace with secrets."""
DRIVER_PATTERN_PATH = DRIVERS_FOLDER + "driver.template"
"""What each of them is made from. Flux takes it for no manifest."""
RETIRED_DRIVER_PATH = DRIVERS_FOLDER + "retired.yaml"
RETIRED_NOTE_PATH = "edo/retired/README.md"

SECRETS_NOTE_PATH = SECRETS_FOLDER + "README.md"
BY_HAND_NOTE_PATH = BY_HAND_FOLDER + "README.md"

DRIVER_FILES = frozenset(
    {
        SELF_LINK_FILE,
        FLUX_SYSTEM_FILE,
        "helm-charts.yaml",
        "edge-cluster.yaml",
        "edge-secrets.yaml",
        "by-hand.yaml",
    }
)
"""Files of ``edo/cluster`` that drive the edge, as opposed to running something on it."""

SECRETS_NOTE = b"""\
# Sealed secrets

One file per Secret, `NAMESPACE/NAME.yaml`, each a SealedSecret that only this cluster can open. Edgewright writes
them when somebody sets a secret through its API or command line; edits made here are refused. Each folder is applied
by itself: a namespace that the cluster does not have holds up no other.
"""

NAMESPACE_NOTE = b"""\
# Sealed secrets of one namespace

This note keeps the folder while it holds no secret: Flux removes what a folder used to hold only while it exists.
"""

RETIRED_NOTE = b"""\
# Nothing

The Kustomization that used to apply the secrets of all namespaces reads this folder now, so that it applies and
removes nothing. Each namespace has one of its own.
"""

BY_HAND_NOTE = b"""\
# Yours

Kubernetes manifests in this folder and below are applied to the cluster, and removed from it when they leave the
folder. A `kustomization.yaml` is honoured. Every object that lives in a namespace has to say which, and none may
be one that Edgewright generates. Keep at least one file here, such as this one: Flux refuses a folder that is gone.
"""


def repository_note(name: str, uuid: UUID) -> bytes:
    """``README.md`` of the driving repository of a cluster."""
    return f"""\
# Driving repository of {name}

Flux on the cluster `{name}` ({uuid}) pulls the branch `main` of this repository and makes the cluster match it.

| folder | who writes it | what it holds |
|---|---|---|
| `edo/cluster/` | Edgewright | what drives the cluster: sources, Flux's own objects, the release of its Helm chart |
| `edo/secrets/` | Edgewright | secrets, sealed for this cluster alone |
| `by-hand/` | you | any other manifest |

Each folder is applied by itself: a mistake in one does not hold up the others.

Generated files are written again whenever the cluster's configuration or a template changes, so a push may change
`by-hand/` only. To change the rest, change the configuration, the template or the secret.
""".encode()
