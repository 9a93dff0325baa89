"""What the environment tells the agent; who it is and where its centre is stands in its Secret."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgewright.agent.urls import is_base_url
from edgewright.errors import Invalid

NAMESPACE = "EDGEWRIGHT_AGENT_NAMESPACE"
SEALING = "EDGEWRIGHT_AGENT_SEALING_URL"
LOOK = "EDGEWRIGHT_AGENT_LOOK_SECONDS"
LOG_LEVEL = "EDGEWRIGHT_LOG_LEVEL"
RUNS = "EDGEWRIGHT_AGENT_RUNS"
VARIABLES = (NAMESPACE, SEALING, LOOK, LOG_LEVEL, RUNS)
SEALING_URL = "http://sealed-secrets-controller.kube-system.svc:8080"
"""Where kubeseal looks for the sealed-secrets controller, too."""
LOOK_SECONDS = 15.0
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LONGEST_IMAGE = 600
"""Characters; a reference with a name, a tag and a digest has at most some 500."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of the agent. A variable that is empty counts as not set.

    Args:
        namespace: namespace of its Secret and of Flux's objects (``EDGEWRIGHT_AGENT_NAMESPACE``); default: the pod's.
        sealing_url: base URL of the sealed-secrets controller (``EDGEWRIGHT_AGENT_SEALING_URL``).
        look_seconds: seconds between two looks at the Kubernetes cluster (``EDGEWRIGHT_AGENT_LOOK_SECONDS``).
        log_level: least severity of what is logged (``EDGEWRIGHT_LOG_LEVEL``): DEBUG, INFO, WARNING or ERROR.
        image: image that it runs from (``EDGEWRIGHT_AGENT_RUNS``), as the manifest says; reported to the centre.
    """

    namespace: str | None = None
    sealing_url: str = SEALING_URL
    look_seconds: float = LOOK_SECONDS
    log_level: str = "INFO"
    image: str | None = None


def read_settings(environment: Mapping[str, str]) -> AgentSettings:
    """The settings in an environment.

    Raises:
        Invalid: a variable has a value that it cannot have; ``where`` names it.
    """
    level = environment.get(LOG_LEVEL) or "INFO"
    if level not in LOG_LEVELS:
        raise Invalid(f"{LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}.", where=LOG_LEVEL)
    sealing = environment.get(SEALING) or SEALING_URL
    if not is_base_url(sealing):
        raise Invalid(f"{SEALING} must be an http(s) URL without user name and query.", where=SEALING)
    image = environment.get(RUNS) or ""
    return AgentSettings(
        namespace=environment.get(NAMESPACE) or None,
        sealing_url=sealing.rstrip("/"),
        look_seconds=_seconds(environment.get(LOOK) or LOOK_SECONDS),
        log_level=level,
        image=image if 0 < len(image) <= LONGEST_IMAGE else None,
    )


def _seconds(given: str | float) -> float:
    try:
        seconds = float(given)
    except ValueError as error:
        raise Invalid(f"{LOOK} must be a number of seconds.", where=LOOK) from error
    if not 0 < seconds <= 3600:
        raise Invalid(f"{LOOK} must be more than 0 and at most 3600.", where=LOOK)
    return seconds
