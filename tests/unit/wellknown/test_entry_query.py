"""What matches a search, and what does not."""

import pytest

from edgewright.domain.entry_query import ABSENT, EntryQuery, Path, Scalar, path_of, value_at
from edgewright.errors import Invalid

BODY = {"name": "press", "count": 1, "on": True, "nothing": None, "flux": {"version": "2.7"}}


@pytest.mark.parametrize(
    ("text", "path"),
    [("name", ("name",)), ("$.flux.version", ("flux", "version")), ("kubeseal_cert", ("kubeseal_cert",))],
)
def test_paths_are_names_joined_by_dots(text: str, path: Path) -> None:
    assert path_of(text) == path


@pytest.mark.parametrize("text", ["", "$", "a..b", "$..a", "a[0]", "a[*]", "a.", ".a", "a b", "$['a']"])
def test_other_paths_are_refused_and_not_guessed_at(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        path_of(text)
    assert refused.value.code == "path_unsupported"


@pytest.mark.parametrize(
    ("path", "value", "matches"),
    [
        ("name", "press", True),
        ("name", "pres", False),
        ("count", 1, True),
        ("count", True, False),
        ("on", True, True),
        ("on", 1, False),
        ("nothing", None, True),
        ("missing", None, False),
        ("name.more", "press", False),
        ("flux.version", "2.7", True),
    ],
)
def test_only_the_same_value_matches(path: str, value: Scalar, matches: bool) -> None:
    assert EntryQuery([(path_of(path), value)]).matches(BODY) is matches


def test_nothing_can_be_searched_for() -> None:
    assert EntryQuery([(("missing",), ABSENT)]).matches(BODY)
    assert not EntryQuery([(("nothing",), ABSENT)]).matches(BODY)
    assert value_at([], ("a",)) is ABSENT
