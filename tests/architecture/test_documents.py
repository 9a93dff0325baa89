"""What the documents tell people to do can be done."""

import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")
MAKE = re.compile(
    r"^(?:\$ )?make(?: -C \S+)?(?: (?P<target>[a-z][a-z-]*))?(?=\s|$)|`make (?P<inline>[a-z][a-z-]*)`", re.MULTILINE
)
CHECKOUT_PATH = re.compile(
    r"`(?P<path>(?:\.?/?(?:bin|\.ci|docs|tests|edgewright|workflows|api|activities|charts))/[\w./-]+)`"
)


def _targets(root: Path) -> set[str]:
    makefile = (root / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def test_each_make_command_in_a_document_is_a_target(root: Path, documents: list[Path]) -> None:
    targets = _targets(root)
    named = {
        (path.name, match["target"] or match["inline"])
        for path in documents
        for match in MAKE.finditer(path.read_text("utf-8"))
        if match["target"] or match["inline"]
    }
    assert {target for _, target in named} >= {"install", "test", "test-real"}
    assert {pair for pair in named if pair[1] not in targets} == set()


def test_each_link_between_documents_leads_somewhere(root: Path, documents: list[Path]) -> None:
    dead = [
        f"{path.relative_to(root)}: {match['target']}"
        for path in documents
        for match in LINK.finditer(path.read_text("utf-8"))
        if "://" not in match["target"] and not (path.parent / match["target"]).exists()
    ]
    assert dead == []


def test_each_file_that_a_rule_names_exists(root: Path) -> None:
    missing = [
        f"{name}: {match['path']}"
        for name in (
            "STYLE.md",
            "CONTRIBUTING.md",
            "docs/glossary.md",
            "docs/security.md",
            "docs/adr/0002-packaging.md",
        )
        for match in CHECKOUT_PATH.finditer((root / name).read_text("utf-8"))
        if not (root / match["path"]).exists()
    ]
    assert missing == []


def test_records_of_decisions_are_numbered_without_gaps_and_have_a_status(root: Path) -> None:
    records = sorted((root / "docs" / "adr").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(len(records)))
    for number, path in enumerate(records):
        text = path.read_text("utf-8")
        assert text.startswith(f"# {number}. "), path.name
        assert re.search(r"^Status: (accepted|superseded by \d+)$", text, re.MULTILINE), path.name


def test_phony_targets_and_help_name_what_the_makefile_has(root: Path) -> None:
    makefile = (root / "Makefile").read_text("utf-8")
    phony = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    assert _targets(root) <= phony
