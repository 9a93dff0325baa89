"""Paths inside a repository: hypothesis looks for one that slips through."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.repository_paths import check_path, printable
from edgewright.errors import Invalid

SEGMENT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\~:."), min_size=1, max_size=20
)


@given(st.lists(SEGMENT, min_size=1, max_size=8))
def test_ordinary_path_is_split_into_its_segments(segments: list[str]) -> None:
    assert check_path("/".join(segments)) == tuple(segments)


@given(st.text(max_size=40))
def test_accepted_path_stays_inside_on_any_system(path: str) -> None:
    try:
        segments = check_path(path)
    except Invalid as refusal:
        assert refusal.code == "path_invalid"
        assert refusal.where is not None and refusal.where.isprintable()
        return
    assert "/".join(segments) == path
    assert not {"", ".", ".."} & set(segments)
    assert "\\" not in path and not any(unicodedata.category(char) == "Cc" for char in path)
    assert path.encode().decode() == path


@given(
    st.sampled_from([".git", ".GIT", ".gIt", "git~1", "GIT~1"]),
    st.text(st.sampled_from("\u200c\u200d\u202a\u206a\ufeff"), max_size=3),
    st.sampled_from(["", " ", ".", " . ", "::$INDEX_ALLOCATION", ":x"]),
    st.integers(0, 5),
)
def test_every_spelling_of_gits_own_folder_is_refused(name: str, ignored: str, ending: str, at: int) -> None:
    spelling = name[:at] + ignored + name[at:] + ending
    for path in (spelling, f"a/{spelling}/b"):
        with pytest.raises(Invalid):
            check_path(path)


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "a.git", "git", "git~2", ".gith", ". git"])
def test_names_that_only_resemble_gits_folder_are_accepted(name: str) -> None:
    assert check_path(f"by-hand/{name}") == ("by-hand", name)


def test_limits_count_bytes() -> None:
    check_path("ü" * 127)
    with pytest.raises(Invalid):
        check_path("ü" * 128)
    longest = "/".join(["x" * 204] * 5)
    assert len(longest) == 1024
    check_path(longest)
    with pytest.raises(Invalid):
        check_path(longest + "x")


def test_shown_text_cannot_steer_a_terminal() -> None:
    assert printable("a\x1b[31m\nb\u202ec") == "a?[31m?b?c"
    assert len(printable("x" * 5000)) == 200
