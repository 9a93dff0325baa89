"""The centre hears that nothing is left only when that is so."""

from dataclasses import replace

import pytest

from edgewright.agent.leaving import is_empty
from edgewright.agent.observation import Kustomized

AT, BEFORE = "a" * 40, "b" * 40
DRIVERS = Kustomized("self-link", "self-link", applied=f"main@sha1:{AT}", path="./edo/cluster", holds=6)
SECRETS = Kustomized("edge-secrets", "self-link", applied=f"main@sha1:{AT}", path="./edo/secrets")
BY_HAND = Kustomized("by-hand", "self-link", applied=f"main@sha1:{AT}", path="./by-hand")
FLUX = Kustomized("flux-system", "helm-charts", applied=f"main@sha1:{BEFORE}", path="./flux-system", holds=20)
ALL = (DRIVERS, SECRETS, BY_HAND, FLUX)


def test_all_is_gone_once_every_part_has_applied_the_removal_and_holds_nothing() -> None:
    assert is_empty(ALL, AT)
    assert is_empty([replace(each, applied=f"main/{AT}") for each in ALL if each is not FLUX], AT)


@pytest.mark.parametrize(
    "found",
    [
        None,
        (),
        (FLUX,),
        (replace(DRIVERS, applied=f"main@sha1:{BEFORE}"), SECRETS, BY_HAND),
        (DRIVERS, SECRETS, replace(BY_HAND, applied=f"main@sha1:{BEFORE}")),
        (DRIVERS, SECRETS, replace(BY_HAND, applied=None)),
        (DRIVERS, SECRETS, replace(BY_HAND, holds=1)),
        (DRIVERS, replace(SECRETS, holds=1), BY_HAND),
        (DRIVERS, SECRETS, replace(BY_HAND, deleting=True)),
        (*ALL, replace(FLUX, name="more", deleting=True)),
        (DRIVERS, SECRETS, replace(BY_HAND, applied=f"main@sha1:{AT[1:]}")),
    ],
)
def test_as_long_as_anything_is_left_or_unknown_it_is_not_empty(found: tuple[Kustomized, ...] | None) -> None:
    assert not is_empty(found, AT)
