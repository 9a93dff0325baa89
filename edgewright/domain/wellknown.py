"""The well-known UUIDs of a Config Store, and a few of our own.

The first four groups come from the AMRC Connectivity Stack, so that its clients find what they know. The ones marked
*ours* must never change, because installations and edges hold them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

# --- Applications --------------------------------------------------------------------------------------

APP_CLUSTER_CONFIGURATION = UUID("bdb13634-0b3d-4e38-a065-9d88c12ee78d")
APP_CLUSTER_SETUP_STATUS = UUID("f6c67e6f-e48e-4f69-b4bb-bfbddcc2a517")
APP_CLUSTER_STATUS = UUID("747a62c9-1b66-4a2e-8dd9-0b70a91b6b75")
APP_FLUX_TEMPLATE = UUID("72804a19-636b-4836-b62b-7ad1476f2b86")
APP_HELM_CHART_TEMPLATE = UUID("729fe070-5e67-4bc7-94b5-afd75cb42b03")
APP_KUBERNETES_TEMPLATE = UUID("88436128-09a3-4c9c-b7f4-b0e495137265")
APP_BOOTSTRAP_SCRIPT = UUID("a807d8fc-63ff-48bb-85c7-82b93beb606e")
APP_SPARKPLUG_ADDRESS = UUID("8e32801b-f35a-4cbf-a5c3-2af64d3debd7")
APP_OBJECT_INFO = UUID("64a8bfa9-7772-45c4-9d1a-9e6290690957")
APP_CONFIG_SCHEMA = UUID("dbd8a535-52ba-4f6e-b4f8-9b71aefe09d3")
APP_EDGE_DEPLOYMENTS = UUID("f2b9417a-ef7f-421f-b387-bb8183a48cdb")
APP_GIT_REPOSITORY = UUID("38d62a93-b6b4-4f63-bad4-d433e3eaff29")
APP_OBJECT_REGISTRATION = UUID("cb40bed5-49ad-4443-a7f5-08c75009da8f")
"""ACS stores the class of an object in an entry; there are no such entries here."""
APP_CLUSTER_SETTINGS = UUID("020f8fa8-2079-43e8-94e9-3bf0e60f449a")
"""Ours, *Edgewright cluster settings*: settings of a cluster that are not in its configuration entry."""
APP_INSTALLATION = UUID("d1f17a10-2fcf-4fd2-86bf-dc2f1144ca0e")
"""Ours, *Edgewright installation*: values that the first start fixed; only the centre writes it."""
APP_FLUX_BUNDLE = UUID("00aa45b5-ff6e-4289-b96a-3721e69955ee")
"""Ours, *Flux bundle*: the release of Flux that edges get, and earlier imported releases."""

RENDERED_APPS = frozenset({APP_FLUX_TEMPLATE, APP_HELM_CHART_TEMPLATE, APP_KUBERNETES_TEMPLATE})
"""Applications whose entries go into the generated files. The Bootstrap entry goes into scripts only."""

# --- Classes -------------------------------------------------------------------------------------------

CLASS_EDGE_CLUSTER = UUID("f24d354d-abc1-4e32-98e1-0667b3e40b61")
CLASS_EDGE_ACCOUNT = UUID("97756c9a-38e6-4238-b78c-3df6f227a6c9")
CLASS_CLASS = UUID("7b130b97-d62b-4c04-8269-6ee33aee1975")
"""Ours: the class of classes."""
CLASS_APPLICATION = UUID("2c2179f8-3f3a-446e-a5ae-61f7140606d8")
"""Ours: the class of Applications."""
CLASS_SERVICE = UUID("378827b5-9bbe-42b4-bf2d-2486f5719585")
"""Ours: the class of services."""
CLASS_PERMISSION = UUID("70860d43-b77c-45b1-8501-c71c692bd647")
"""Ours: the class of permissions."""
CLASS_HELM_CHART = UUID("eb2eb6d7-8bd8-44f0-94f3-b1adc8491837")
"""Ours: the class of Helm chart templates."""
CLASS_KUBERNETES_TEMPLATE = UUID("ed51bb04-b498-4369-bb3d-3528c434200a")
"""Ours: the class of Kubernetes resource templates."""
CLASS_GIT_REPOSITORY = UUID("d422572f-6743-4704-a75c-9fa414620b41")
"""Ours: the class of shared repositories, which belong to no cluster."""
CLASS_FLUX_RELEASE = UUID("a172a133-5d60-4170-bb2e-87ed391fe35e")
"""Ours: the class of releases of Flux; the UUID of each object follows from its checksum."""

SAME_CLASSES: Mapping[UUID, UUID] = MappingProxyType(
    {
        UUID("04a1c90d-2295-4cbe-b33a-74eded62cbf1"): CLASS_CLASS,
        UUID("d319bd87-f42b-4b66-be4f-f82ff48b93f0"): CLASS_APPLICATION,
        UUID("265d481f-87a7-4f93-8fc6-53fa64dc11bb"): CLASS_SERVICE,
        UUID("8ae784bb-c4b5-4995-9bf6-799b3c7f21ad"): CLASS_PERMISSION,
        UUID("f9be0334-0ff7-43d3-9d8a-188d3e4d472b"): CLASS_HELM_CHART,
        UUID("d25f2afc-1ab8-4d27-b51b-d02314624e3e"): CLASS_GIT_REPOSITORY,
    }
)
"""UUIDs in ACS of classes that have another UUID here."""

# --- Services ------------------------------------------------------------------------------------------

SERVICE_CLUSTER_MANAGER = UUID("2706aa43-a826-441e-9cec-cd3d4ce623c2")
SERVICE_DIRECTORY = UUID("af4a1d66-e6f7-43c4-8a67-0fa3be2b1cf9")
SERVICE_CONFIG_STORE = UUID("af15f175-78a0-4e05-97c0-2a0bb82b9f3b")
SERVICE_GIT = UUID("7adf4db0-2e7b-4a68-ab9d-376f4c5ce14b")

# --- Permissions ---------------------------------------------------------------------------------------

PERMISSION_ALL_OF_CLUSTER_MANAGER = UUID("9e07fd33-6400-4662-92c4-4dff1f61f990")
PERMISSION_MANAGE_CLUSTERS = UUID("a40acff8-0c61-4251-bef3-d8d53e50cdd0")
PERMISSION_MANAGE_SECRETS = UUID("07fba27a-0d01-4c07-875b-d25345261d3a")
PERMISSION_GIT_PULL = UUID("12ecb694-b4b9-4d2a-927e-d100019f7ebe")
PERMISSION_GIT_PUSH = UUID("b2d8d437-5060-4202-bcc2-bd2beda09651")

# --- Objects -------------------------------------------------------------------------------------------

OBJECT_HELM_RELEASE_TEMPLATE = UUID("0c92f608-d4dc-11f0-b2a0-1bc42be2ebc8")
OBJECT_GIT_REPOSITORY_TEMPLATE = UUID("03827afc-d4dc-11f0-9645-dfc5bcb16bc6")
OBJECT_DEFAULT_CHART = UUID("75cbe268-07c5-46e8-a05f-19cf309bb8f6")
"""Ours: the default Helm chart template, ``edge-cluster``."""
REPOSITORY_HELM_CHARTS = UUID("89b6152c-eae2-4872-8da6-1f1dc04aa2e2")
"""Ours: the repository ``shared/helm-charts`` that every cluster reads."""

OBJECT_FLUX_TEMPLATE = APP_FLUX_TEMPLATE
"""The Flux template is the entry of its Application for the Application itself."""
OBJECT_BOOTSTRAP_SCRIPT = APP_BOOTSTRAP_SCRIPT
"""The bootstrap script is the entry of its Application for the Application itself."""
OBJECT_FLUX_BUNDLE = APP_FLUX_BUNDLE
"""The Flux bundle is the entry of its Application for the Application itself."""


@dataclass(frozen=True)
class Application:
    """One well-known Application.

    Args:
        name: its display name.
        object_classes: classes whose objects may have an entry; empty: any class.
    """

    uuid: UUID
    name: str
    object_classes: frozenset[UUID] = frozenset()


_OF_CLUSTERS = frozenset({CLASS_EDGE_CLUSTER})

APPLICATIONS: Mapping[UUID, Application] = MappingProxyType(
    {
        app.uuid: app
        for app in (
            Application(APP_CLUSTER_CONFIGURATION, "Edge cluster configuration", _OF_CLUSTERS),
            Application(APP_CLUSTER_SETUP_STATUS, "Edge cluster setup status", _OF_CLUSTERS),
            Application(APP_CLUSTER_STATUS, "Edge cluster status", _OF_CLUSTERS),
            Application(APP_CLUSTER_SETTINGS, "Edgewright cluster settings", _OF_CLUSTERS),
            Application(APP_SPARKPLUG_ADDRESS, "Sparkplug address", _OF_CLUSTERS),
            Application(
                APP_GIT_REPOSITORY,
                "Git repository configuration",
                frozenset({CLASS_EDGE_CLUSTER, CLASS_GIT_REPOSITORY}),
            ),
            Application(APP_FLUX_TEMPLATE, "Flux template"),
            Application(APP_HELM_CHART_TEMPLATE, "Helm chart template"),
            Application(APP_KUBERNETES_TEMPLATE, "Kubernetes resource template"),
            Application(APP_BOOTSTRAP_SCRIPT, "Bootstrap script"),
            Application(APP_FLUX_BUNDLE, "Flux bundle"),
            Application(APP_OBJECT_INFO, "Object info"),
            Application(APP_CONFIG_SCHEMA, "Config schema"),
            Application(APP_EDGE_DEPLOYMENTS, "Edge deployments"),
        )
    }
)
"""Every well-known Application by its UUID."""

CLASS_NAMES: Mapping[UUID, str] = MappingProxyType(
    {
        CLASS_EDGE_CLUSTER: "Edge cluster",
        CLASS_EDGE_ACCOUNT: "Edge account",
        CLASS_CLASS: "Class",
        CLASS_APPLICATION: "Application",
        CLASS_SERVICE: "Service",
        CLASS_PERMISSION: "Permission",
        CLASS_HELM_CHART: "Helm chart template",
        CLASS_KUBERNETES_TEMPLATE: "Kubernetes resource template",
        CLASS_GIT_REPOSITORY: "Git repository",
        CLASS_FLUX_RELEASE: "Flux release",
    }
)

SERVICE_NAMES: Mapping[UUID, str] = MappingProxyType(
    {SERVICE_CLUSTER_MANAGER: "Cluster manager", SERVICE_GIT: "Git server"}
)

PERMISSION_NAMES: Mapping[UUID, str] = MappingProxyType(
    {
        PERMISSION_ALL_OF_CLUSTER_MANAGER: "All of cluster manager",
        PERMISSION_MANAGE_CLUSTERS: "Manage clusters",
        PERMISSION_MANAGE_SECRETS: "Manage secrets",
        PERMISSION_GIT_PULL: "Git pull",
        PERMISSION_GIT_PUSH: "Git push",
    }
)


APPLICATIONS_BY_NAME: Mapping[str, UUID] = MappingProxyType(
    {application.name.lower().replace(" ", "-"): uuid for uuid, application in APPLICATIONS.items()}
)
"""Well-known Applications by their names in paths, such as ``edge-cluster-status``."""


def allows_class(app: UUID, object_class: UUID) -> bool:
    """Whether objects of a class may have an entry of an Application; True for unknown Applications."""
    application = APPLICATIONS.get(app)
    return application is None or not application.object_classes or object_class in application.object_classes
