"""What must hold of one cluster, as a person would write it down: no database, no workflow, no Git."""

from dataclasses import dataclass, field
from typing import Any, Literal

Desired = Literal["none", "present", "removed", "deleted"]


@dataclass
class LifeModel:
    """The wishes that were answered with yes, put together.

    Args:
        none: there is no such cluster, or none any more.
        stamp: what its values say; it has to arrive in its repository.
        secrets: ``namespace/name/key`` -> value, as the edge's key opens it.
        generation: counts its hardware; picks the edge's key.
        certified: whether an edge of this generation has reported a sealing certificate.
        edge: the password of the agent of this generation, if one has registered.
    """

    name: str
    uuid: str = ""
    desired: Desired = "none"
    desired_before: Desired = "present"
    stamp: str = ""
    label: str = ""
    paused: bool = False
    generation: int = 1
    certified: bool = False
    edge: str = field(default="", repr=False)
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def writable(self) -> tuple[int, str]:
        """Status and code of the answer to a new secret; 204: it is taken."""
        match self.desired:
            case "deleted":
                return 409, "deleting"
            case "removed":
                return 409, "removed"
        if self.paused:
            return 409, "paused"
        return (204, "") if self.certified else (404, "no_edge_status")

    @property
    def key(self) -> int:
        """Number of the edge's key."""
        return self.generation % 5

    def created(self, uuid: str, stamp: str) -> None:
        self.__init__(self.name, uuid, "present", stamp=stamp, label=stamp)  # type: ignore[misc]  # all anew

    def recreated(self, stamp: str | None, *, new_hardware: bool) -> None:
        self.desired = "present"
        self.stamp = self.stamp if stamp is None else stamp
        if new_hardware:
            self.generation += 1
            self.certified, self.edge, self.secrets = False, "", {}

    def deleted(self) -> None:
        if self.desired != "deleted":
            self.desired_before, self.desired = self.desired, "deleted"

    def shows(self, shown: dict[str, Any]) -> list[str]:
        """What a cluster at rest shows that is not so; empty if all is well."""
        present = self.desired == "present"
        wanted = {
            "name": self.name,
            "desired": self.desired,
            "generation": self.generation,
            "labels": {"stamp": self.label},
            "values": {"global": {"stamp": self.stamp}},
            "pause": self.paused,
        }
        seen = {**{name: shown[name] for name in wanted}, "pause": shown["pause"]["paused"]}
        if not (present and self.paused):
            wanted["ready"], seen["ready"] = present, shown["ready"]
        if not self.paused:  # else a removal waits, too, if it has to take away the secrets of hardware given up
            wanted["waits for a step"], seen["waits for a step"] = False, shown["waiting_for"].startswith("step ")
        return [f"{name} is {seen[name]!r}, not {value!r}" for name, value in wanted.items() if seen[name] != value]
