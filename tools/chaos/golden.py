"""Names of the stores, written down here once more: the checker shares no code with the product."""

from uuid import UUID

CONFIGURATION = "bdb13634-0b3d-4e38-a065-9d88c12ee78d"
SETUP_STATUS = "f6c67e6f-e48e-4f69-b4bb-bfbddcc2a517"
EDGE_STATUS = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
SETTINGS = "020f8fa8-2079-43e8-94e9-3bf0e60f449a"
ADDRESS = "8e32801b-f35a-4cbf-a5c3-2af64d3debd7"
GIT_REPOSITORY = "38d62a93-b6b4-4f63-bad4-d433e3eaff29"
CHART_TEMPLATE = "729fe070-5e67-4bc7-94b5-afd75cb42b03"
OF_CLUSTER = {CONFIGURATION, SETUP_STATUS, EDGE_STATUS, SETTINGS, ADDRESS, GIT_REPOSITORY}
"""Applications of which a cluster that is deleted has no entry."""

EDGE_CLUSTER = "f24d354d-abc1-4e32-98e1-0667b3e40b61"
CLASS_CHART = "eb2eb6d7-8bd8-44f0-94f3-b1adc8491837"
OTHER_CHART = str(UUID(int=0x0C4A05_0C4A05_4000_8000_000000000001))
"""A second Helm chart template, which the run makes, so that a change of chart can be wished for."""

COMMISSIONED = {"AwaitingBootstrap", "PendingAcceptance", "Active"}
"""Phases of a cluster that is ready."""

OLD_AGENT, NEW_AGENT = "registry.example.com/agent:1", "registry.example.com/agent:2"
"""What the edges of a run report at first, and what its centre offers."""
MOST_UPGRADES = 2
"""So many may be under way at a time."""

DATABASE = "edgewright.db"
REPOSITORIES = "repositories"
RELEASE_FILE = "edo/cluster/edge-cluster.yaml"
AGENT_FILE = "edo/agent/agent.yaml"
SECRETS_FOLDER = "edo/secrets/"
BY_HAND = "by-hand/"
"""The only folder that people may push to."""
