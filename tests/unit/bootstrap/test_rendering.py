"""What may go into a script, and that no content of it is ever read as shell."""

import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from bootstrap_edge import KubectlMachine, RegistrationServer
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.bootstrap import MAX_SCRIPT_BYTES, BootstrapInput, render_refusal, render_script, render_uninstall
from edgewright.errors import Invalid, Stalled

HOSTILE = [
    "$(touch {canary})",
    "`touch {canary}`",
    "'; touch {canary}; '",
    '"; touch {canary}; "',
    "END_OF_FILE\ntouch {canary}",
    "END_OF_FILE_\nEND_OF_FILE\n}\ntouch {canary}\nmain() {{",
    "}\ntouch {canary}\n#@values\n#@unpack\n",
    "\\$(touch {canary})\\\\'\\",
    "!touch {canary} ~ * ? [a] %s\t",
    "Á ё 漢 \x81 \x88 touch",  # bytes 0x81 to 0x88 are marks inside some shells
]


@pytest.fixture
def wanted() -> BootstrapInput:
    return BootstrapInput(
        cluster=UUID("0e7a1d3c-93f7-4a52-8a5e-3f0f5f5f9a10"),
        name="press-shop",
        namespace="edgewright",
        external_url="https://centre.example/ew/",
        token="reg.abc_def-1",
        expires_at=datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=1))),
        generation=1,
        files={"self-link.yaml": "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"},
    )


def shellcheck(script: str, *codes: str) -> str:
    tool = Path(sys.executable).with_name("shellcheck")
    excluded = [f"--exclude={','.join(codes)}"] if codes else []
    done = subprocess.run(
        [tool, "-s", "sh", "-S", "style", *excluded, "-"], input=script, capture_output=True, text=True, check=False
    )
    return done.stdout


def test_script_is_clean_for_shellcheck(wanted: BootstrapInput) -> None:
    full = replace(
        wanted,
        ca_bundle="-----BEGIN CERTIFICATE-----\n",
        before="echo x",
        after="echo y",
        files={**wanted.files, "a.yaml": "kind: ConfigMap"},
    )
    assert shellcheck(render_script(wanted)) == ""
    assert shellcheck(render_script(full)) == ""
    assert shellcheck(render_uninstall(wanted)) == ""
    assert shellcheck("echo $x") != ""


def test_refusal_is_clean_for_shellcheck() -> None:
    assert shellcheck(render_refusal("The token has expired.")) == ""
    # single quotes are meant: what is in them must not be expanded
    assert shellcheck(render_refusal('It\'s `x` $(y)\n"z"'), "SC2016") == ""


def test_script_is_one_function_called_on_the_last_line(wanted: BootstrapInput) -> None:
    lines = [line for line in render_script(wanted).splitlines() if not line.startswith("#")]
    assert lines[0] == "main() {"
    assert lines[-2:] == ["}", '{ main "$@"; }']
    assert render_script(wanted).endswith('"; }\n')


def test_same_input_renders_the_same_bytes(wanted: BootstrapInput) -> None:
    assert render_script(wanted) == render_script(replace(wanted))


def test_every_bootstrap_of_a_usual_cluster_leaves_room(wanted: BootstrapInput) -> None:
    assert len(render_script(wanted)) < MAX_SCRIPT_BYTES * 0.9


def test_the_bound_is_the_one_that_is_promised() -> None:
    assert MAX_SCRIPT_BYTES == 32_000


def test_what_is_written_for_maintainers_is_left_out_and_content_is_not(wanted: BootstrapInput) -> None:
    note = "x: y #- of theirs\n"
    for script in (render_script(replace(wanted, files={"a.yaml": note})), render_uninstall(wanted)):
        assert " #- " not in script.replace(note, "")
    assert note in render_script(replace(wanted, files={"a.yaml": note}))
    for line in render_script(wanted).splitlines():
        assert line == line.rstrip(), "nothing is left of them"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_content_stays_content(
    edge: KubectlMachine, centre: RegistrationServer, tmp_path: Path, hostile: str
) -> None:
    canary = tmp_path / "canary"
    text = hostile.replace("{canary}", str(canary)).replace("{{", "{")
    manifest = f"kind: ConfigMap\nmetadata:\n  name: plain\nvalue: |\n{text}\n"
    script = edge.render(name=text, files={"a.yaml": manifest, "b.yaml": text}, after=f": <<'X'\n{text}\nX\n")
    done = edge.run("--yes", script=script)
    assert done.returncode == 0, done.stderr
    assert not canary.exists()
    assert edge.cluster["objects"]["ConfigMap/plain"]["text"] == manifest
    assert f"as '{text}'" in done.stdout


@pytest.mark.parametrize(
    "hostile", ["It's over.", "`touch {canary}` $(touch {canary})", "'; touch {canary}; '", "a\nb\r\nc"]
)
def test_refusal_says_exactly_its_sentence_and_fails(edge: KubectlMachine, tmp_path: Path, hostile: str) -> None:
    canary = tmp_path / "canary"
    sentence = hostile.replace("{canary}", str(canary))
    done = edge.run(script=render_refusal(sentence))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "edgewright: " + " ".join(sentence.split()) + "\n"
    assert not canary.exists()


def test_pasted_line_shows_a_refusal_and_fails(edge: KubectlMachine, centre: RegistrationServer) -> None:
    centre.pages["/script"] = render_refusal("This registration token has expired.")
    done = subprocess.run(
        ["/bin/sh", "-c", f"curl -sSL '{centre.url}/script' | sh -"],
        env=edge.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "edgewright: This registration token has expired.\n")


# The first draw builds the table of all characters, which is slow on a busy machine.
@settings(max_examples=25)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_any_sentence_of_a_refusal_is_printed_as_one_line(text: str) -> None:
    sh = shutil.which("sh")
    assert sh
    done = subprocess.run([sh], input=render_refusal(text).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().count("\n") == 1


def test_too_large_script_is_refused(wanted: BootstrapInput) -> None:
    with pytest.raises(Stalled) as refused:
        render_script(replace(wanted, files={"big.yaml": "é" * (MAX_SCRIPT_BYTES // 2)}))
    assert refused.value.code == "bootstrap_too_large"


@pytest.mark.parametrize("name", ["../x.yaml", "a/b.yaml", "", ".hidden", "a b", "a;b", "-rf", "a\n", "x" * 200])
def test_file_name_that_could_leave_its_folder_is_refused(wanted: BootstrapInput, name: str) -> None:
    with pytest.raises(Stalled) as refused:
        render_script(replace(wanted, files={name: "kind: ConfigMap"}))
    assert (refused.value.code, refused.value.where) == ("bootstrap_file_invalid", name)


def test_file_names_that_differ_in_case_only_are_refused(wanted: BootstrapInput) -> None:
    with pytest.raises(Stalled):
        render_script(replace(wanted, files={"A.yaml": "", "a.yaml": ""}))


@pytest.mark.parametrize("place", ["files", "before", "after"])
def test_nul_is_refused(wanted: BootstrapInput, place: str) -> None:
    held: Any = {"a.yaml": "a\0b"} if place == "files" else "a\0b"
    with pytest.raises(Stalled):
        render_script(replace(wanted, **{place: held}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a\0b"),
        ("namespace", "a\nb"),
        ("namespace", "Edge"),
        ("namespace", "edgewright\n"),
        ("external_url", 'http://x/"\nurl = "y'),
        ("external_url", "ftp://x"),
        ("external_url", "http://user name@x"),
        ("token", 'x"\nproxy = "y'),
        ("token", ""),
        ("version", "1 2"),
        ("generation", 0),
        ("expires_at", datetime(2030, 1, 1)),
        ("ca_bundle", "not a certificate"),
        ("ca_bundle", "-----BEGIN CERTIFICATE-----\n\0"),
    ],
)
def test_value_that_cannot_be_carried_is_refused_by_field(wanted: BootstrapInput, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        replace(wanted, **{field: value})
    assert refused.value.where == field


def test_token_is_not_in_the_text_form_of_its_input(wanted: BootstrapInput) -> None:
    assert wanted.token not in repr(wanted)


def test_expiry_is_shown_in_utc(wanted: BootstrapInput) -> None:
    assert "2030-01-01T11:00:00Z" in render_script(wanted)


def test_url_with_a_final_slash_is_joined_once(wanted: BootstrapInput) -> None:
    assert "url='https://centre.example/ew'\n" in render_script(wanted)
