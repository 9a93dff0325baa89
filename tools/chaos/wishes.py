"""What the clients will wish for: a function of the seed alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from tools.chaos.edge_keys import POOL
from tools.chaos.golden import OTHER_CHART

SHARED_NAMES = 3
PLACES = [
    f"{namespace}/{name}/{key}" for namespace in ("default", "plant") for name in ("db", "mqtt") for key in "abcd"
]
"""Every key of a Secret that is ever written, but for those of bulk requests."""
BULK = 150
"""Changes of one bulk request; two go into one Secret at the same moment."""
CHAPTERS = {
    "change": 5,
    "contest": 2,
    "secrets": 5,
    "bulk": 1,
    "push": 2,
    "observe": 1,
    "removal": 3,
    "recreation": 1,
    "move": 1,
    "move and remove": 1,
    "pause": 1,
    "second thoughts": 1,
}
"""What a life is made of, and how often."""
NAMESPACES = ("edgewright", "edge", "line-4")
Change = tuple[str, str | None]
"""A place and its new value; None: it is deleted."""


@dataclass(frozen=True)
class SecretRequest:
    """Changes that go in one request."""

    wish: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Step:
    """One request about a cluster, and the secrets that are sent at the same moment.

    Args:
        calm: nothing of this step is a reason to refuse these secrets.
    """

    verb: str
    wish: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[SecretRequest, ...] = ()
    calm: bool = True


@dataclass(frozen=True)
class PlannedLife:
    """What one client does with one cluster.

    Args:
        uuid: chosen by the client if it creates through entries.
        attached: whether an edge registers; else an operator writes its status.
        again: whether another cluster of the same name follows its deletion.
    """

    name: str
    uuid: str | None
    attached: bool
    steps: tuple[Step, ...]
    again: bool


def plan_life(seed: int, client: int, number: int, *, name: str | None = None) -> PlannedLife:
    """The life that a client plays as its ``number``-th."""
    return _Planner(seed, client, number).life(name)


class _Planner:
    def __init__(self, seed: int, client: int, number: int) -> None:
        self._random = Random(f"{seed}/{client}/{number}")
        self._prefix = f"{seed}.{client}.{number}"
        self._client, self._number = client, number
        self._counter = 0
        self._key = self._random.randrange(POOL)
        self._namespace = self._random.choice(NAMESPACES)

    def life(self, name: str | None) -> PlannedLife:
        random = self._random
        shared = random.random() < 0.15
        name = name or (f"shared-{random.randrange(SHARED_NAMES)}" if shared else f"c{self._client}-{self._number}")
        uuid = str(UUID(int=random.getrandbits(128), version=4)) if random.random() < 0.4 else None
        attached = random.random() < 0.3
        steps = [self._create(name, uuid), self._status()]
        for _ in range(random.randint(2, 5)):
            steps += self._chapter(name)
        if attached:
            steps += self._upgrades()
        ending = random.choices(("deletion", "removal", "none"), weights=(6, 1, 3))[0]
        if ending == "deletion":
            steps += self._deletion(attached)
        elif ending == "removal":
            late = SecretRequest(self._name(), (("default/db/late", self._stamp()),))
            steps += [self._step("remove"), Step("secrets", secrets=(late,), calm=False)]
        steps.append(Step("observe"))
        return PlannedLife(name, uuid, attached, tuple(steps), again=random.random() < 0.4)

    def _chapter(self, name: str) -> list[Step]:
        [kind] = self._random.choices(list(CHAPTERS), list(CHAPTERS.values()))
        match kind:
            case "change":
                return [self._change(name)]
            case "contest":
                return [self._contest(name)]
            case "push":
                return [self._step("push", secrets=self._burst(2))]
            case "secrets":
                return [Step("secrets", secrets=self._burst(4))]
            case "bulk":
                return [Step("secrets", secrets=(self._bulk("one"), self._bulk("two")))]
            case "removal":
                return self._removal(name)
            case "recreation":
                return [self._recreate(name, door="rest")]
            case "move":
                return [self._move(), self._status(), Step("secrets", secrets=self._burst(3))]
            case "move and remove":
                return [Step("secrets", secrets=self._burst(3)), self._move(), *self._removal(name), self._status()]
            case "pause":
                return self._pause()
            case "second thoughts":
                return self._second_thoughts()
        return [Step("observe")]

    def _pause(self) -> list[Step]:
        """What is wished for in a pause is done after it; secrets are refused meanwhile."""
        steps = [self._step("pause", secrets=self._burst(2) if self._random.random() < 0.5 else (), calm=False)]
        if self._random.random() < 0.5:
            steps.append(self._step("change", fields=self._fields() | {"label": self._stamp()}, door="rest"))
        if self._random.random() < 0.5:
            steps.append(Step("secrets", secrets=self._burst(2), calm=False))
        return [*steps, self._step("resume", secrets=self._burst(2), calm=False)]

    def _second_thoughts(self) -> list[Step]:
        """A deletion that is taken back, in time or not."""
        deletion = self._step(
            "delete", calm=False, door="rest", force=False, goodbye=False, deadline="4s", thought_over=True
        )
        return [deletion, self._step("undelete", calm=False)]

    def _removal(self, name: str) -> list[Step]:
        random = self._random
        steps = [self._step("remove", secrets=self._burst(2) if random.random() < 0.3 else (), calm=False)]
        if random.random() < 0.3:
            steps.append(self._step("change", fields={"label": self._stamp()}, door="rest"))
        if random.random() < 0.2:
            return [*steps, self._move(), self._status()]
        return [*steps, self._recreate(name, door=random.choice(["entry", "rest"]))]

    def _deletion(self, attached: bool) -> list[Step]:
        random = self._random
        secrets = self._burst(2) if random.random() < 0.3 else ()
        if random.random() < 0.3:
            return [self._step("delete", door="signal", force=True, secrets=secrets, calm=False)]
        how = random.choice(["force", "deadline", "goodbye"]) if attached else "at once"
        deadline = {"deadline": "4s", "goodbye": "30s"}.get(how)
        asked = {"force": how == "force", "goodbye": how == "goodbye", "deadline": deadline}
        return [self._step("delete", door="rest", secrets=secrets, calm=False, **asked)]

    def _upgrades(self) -> list[Step]:
        """Upgrades of the agent, which the edge proves or somebody calls off; drawn apart from the rest."""
        random = Random(f"{self._prefix}/upgrades")
        ends = random.choices(("proof", "call off", "nothing"), weights=(4, 4, 1), k=random.randint(1, 2))
        return [self._step("upgrade", end=end) for end in ends]

    def _create(self, name: str, uuid: str | None) -> Step:
        fields = {"namespace": self._namespace, "chart": None, "stamp": self._stamp()}
        if uuid is None:
            fields["label"] = self._stamp()
        return self._step("create", name=name, door="entry" if uuid else "rest", fields=fields)

    def _status(self) -> Step:
        return self._step("status", key=self._key)

    def _change(self, name: str) -> Step:
        random = self._random
        secrets = self._burst(3) if random.random() < 0.5 else ()
        if random.random() < 0.3:
            return self._step("change", name=name, door="entry", fields=self._fields(), whole=True, secrets=secrets)
        fields = self._fields() | {"label": self._stamp()}
        some = random.sample(sorted(fields), random.randint(1, 2))
        return self._step("change", door="rest", fields={field: fields[field] for field in some}, secrets=secrets)

    def _contest(self, name: str) -> Step:
        """Two writers who have read the same revision of the entry."""
        return self._step("contest", name=name, door="entry", rivals=[self._fields(), self._fields()], whole=True)

    def _recreate(self, name: str, *, door: str) -> Step:
        secrets = self._burst(2) if self._random.random() < 0.4 else ()
        fields = self._fields() if door == "entry" or self._random.random() < 0.5 else {}
        return self._step(
            "recreate", name=name, door=door, fields=fields, whole=door == "entry", secrets=secrets, calm=False
        )

    def _move(self) -> Step:
        self._key = (self._key + 1) % POOL
        secrets = self._burst(2) if self._random.random() < 0.4 else ()
        fields = {}
        if self._random.random() < 0.3:
            self._namespace = self._random.choice(NAMESPACES)
            fields["namespace"] = self._namespace
        return self._step("recreate", door="rest", fields=fields, new_hardware=True, secrets=secrets, calm=False)

    def _fields(self) -> dict[str, Any]:
        """Now and then with another namespace, which is refused while an edge is attached."""
        random = self._random
        return {
            "namespace": random.choice(NAMESPACES) if random.random() < 0.04 else self._namespace,
            "chart": random.choice([None, OTHER_CHART]),
            "stamp": self._stamp(),
        }

    def _burst(self, most: int) -> tuple[SecretRequest, ...]:
        places = self._random.sample(PLACES, self._random.randint(1, most) * 2)
        wishes = []
        while places:
            size = self._random.choice([1, 1, 1, 2, 3])
            together, places = places[:size], places[size:]
            wishes.append(SecretRequest(self._name(), tuple((place, self._value()) for place in together)))
        return tuple(wishes)

    def _bulk(self, half: str) -> SecretRequest:
        return SecretRequest(
            self._name(), tuple((f"default/bulk/{half}-{number:03d}", self._stamp()) for number in range(BULK))
        )

    def _value(self) -> str | None:
        return None if self._random.random() < 0.15 else self._stamp()

    def _step(self, verb: str, *, secrets: tuple[SecretRequest, ...] = (), calm: bool = True, **asked: Any) -> Step:
        return Step(verb, self._name(), asked, secrets, calm)

    def _name(self) -> str:
        return f"wish.{self._stamp()}"

    def _stamp(self) -> str:
        self._counter += 1
        return f"{self._prefix}.{self._counter}"
