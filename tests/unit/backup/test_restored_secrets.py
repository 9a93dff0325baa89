"""What a move to new hardware took away is listed to be entered again, also if it happened after the backup."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from sealing_keys import NOW
from stopped_home import StoppedHome

from edgewright.application.taken_secrets import TAKEN_TRAILER
from edgewright.domain.cluster import Phase
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.projection import Done
from edgewright.ports.git_server import CommitMessage
from edgewright.sealing import SealedValue, put_values

PATH = "edo/secrets/default/db.yaml"


def commit(
    home: StoppedHome, cluster: UUID, keys: set[str], *, fence: str, subject: str = "Change", taken: int | None = None
) -> None:
    """Leaves exactly these keys of ``default/db``. ``taken``: as the step says it that takes values away."""
    taken_away = () if taken is None else ((TAKEN_TRAILER, str(taken)),)
    values: Mapping[str, SealedValue] = {key: SealedValue("AQAA", "ab" * 32, NOW) for key in keys}
    document = put_values(None, SecretReference("default", "db"), values) if keys else None
    message = CommitMessage(subject=subject, actor="test", trailers=(("Edgewright-Fence", fence), *taken_away))
    home.git.commit(cluster, {PATH: document}, message, expected_head=home.git.head(cluster))


def commissioned(home: StoppedHome) -> UUID:
    """With three secrets, on its first hardware."""
    cluster = home.create()

    async def publish() -> None:
        async with home.store() as store:
            done = Done(generation=1, commissioning=1)
            await store.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True, done=done)

    asyncio.run(publish())
    commit(home, cluster, {"a", "b", "c"}, fence="1/1")
    return cluster


def listed(home: StoppedHome, cluster: UUID) -> tuple[str, ...]:
    async def read() -> tuple[str, ...]:
        async with home.store() as store:
            return tuple((await store.row(cluster)).must_reenter)

    return asyncio.run(read())


@pytest.mark.parametrize(
    "said",
    [
        {"taken": 2},
        {"subject": "Take away 2 secret values sealed for the old hardware"},  # all that versions up to 0.3.0 say
    ],
)
def test_what_a_move_after_the_backup_took_away_is_listed_unless_it_was_entered_since(
    home: StoppedHome, said: dict[str, Any]
) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, {"c"}, fence="2/4", **said)
    commit(home, cluster, {"a", "c"}, fence="2/4")
    commit(home, cluster, {"c"}, fence="2/4")  # entered, and deleted by somebody
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/b",)


def test_a_push_that_only_sounds_like_a_move_takes_nothing_away(home: StoppedHome) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, {"c"}, fence="2/4", subject="Take away what we no longer need")
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ()


def test_a_move_that_the_backup_knows_of_is_not_looked_at_again(home: StoppedHome) -> None:
    cluster = commissioned(home)
    commit(home, cluster, {"c"}, fence="1/1", taken=2)
    made = home.back_up()
    commit(home, cluster, {"c", "d"}, fence="1/1")
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ()


def test_a_move_is_found_behind_many_commits(home: StoppedHome) -> None:
    cluster = commissioned(home)
    made = home.back_up()
    commit(home, cluster, set(), fence="2/4", taken=3)
    for number in range(30):
        home.commit(cluster, f"later {number}", trailers={"Edgewright-Fence": "2/5"})
    home.restore(made, keep_repositories=True)
    assert listed(home, cluster) == ("default/db/a", "default/db/b", "default/db/c")
