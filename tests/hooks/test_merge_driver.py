"""The merge driver as git calls it: three files in, the second one merged, an exit code to trust."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from openmemex_hooks import merge_driver

from openmemex.memory import frontmatter, merge
from openmemex.memory.model import Memory

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
NAME = f".ai/open-memex/{ID}.md"
BASE = frontmatter.render(
    Memory(id=ID, body="Deploys need the VPN.\n", scope="project", scope_key="project__app__0123456789ab")
)
OURS = BASE.replace(b"type: fact", b"type: gotcha")
THEIRS = BASE.replace(b"importance: normal", b"importance: high").replace(b"tags: []", b"tags: [vpn]")
CLASH = BASE.replace(b"type: fact", b"type: howto").replace(b"need the", b"want a")


@pytest.fixture
def three(tmp_path):
    """Write base, ours and theirs; returns the folder."""

    def write(base: bytes | None, ours: bytes, theirs: bytes) -> Path:
        for name, raw in (("O", base or b""), ("A", ours), ("B", theirs)):
            (tmp_path / name).write_bytes(raw)
        return tmp_path

    return write


def run(folder: Path, *more: str, path: str = NAME, env: dict[str, str] | None = None):
    return subprocess.run(
        [sys.executable, "-m", "openmemex", "merge-driver", "O", "A", "B", path, *more],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def files(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def test_edits_of_different_fields_merge_and_only_the_second_file_is_written(three):
    folder = three(BASE, OURS, THEIRS)
    done = run(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert files(folder) == {
        "O": BASE,
        "B": THEIRS,
        "A": OURS.replace(b"importance: normal", b"importance: high").replace(b"tags: []", b"tags: [vpn]"),
    }


def test_the_result_is_what_the_merge_of_memories_gives(three):
    folder = three(BASE, OURS, THEIRS)
    run(folder)
    assert (folder / "A").read_bytes() == merge.merge(BASE, OURS, THEIRS, stem=ID).raw


def test_a_conflict_leaves_both_sides_between_markers_and_names_what_clashes(three):
    folder = three(BASE, OURS.replace(b"VPN", b"tunnel"), CLASH)
    done = run(folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"open-memex: {ID}: both sides changed type and the text; `open-memex resolve {ID}` settles it\n"
    )
    marked = (folder / "A").read_bytes()
    for line in (
        *(b"<<<<<<< ours\n", b"||||||| base\n", b"=======\n", b">>>>>>> theirs\n"),
        *(b"type: gotcha\n", b"type: howto\n", b"Deploys need the tunnel.\n", b"Deploys want a VPN.\n"),
    ):
        assert line in marked
    assert sorted(files(folder)) == ["A", "B", "O"]


def test_the_line_on_stderr_holds_no_text_of_the_memory(three):
    secret = "gh" + "p_" + "a1B2" * 9
    ours, theirs = (
        BASE.replace(b"\n---\nDeploys", f"\n{secret}: {n}\n---\n{secret}{n} Deploys".encode()) for n in (1, 2)
    )
    done = run(three(BASE, ours, theirs))
    assert done.returncode == 1
    assert secret not in done.stderr
    assert "the text and an unknown field" in done.stderr


def test_names_and_marker_size_are_those_that_git_gives(three):
    folder = three(BASE, OURS, CLASH)
    done = run(folder, "--from-config", "10", "merged common ancestors", "HEAD", "topic\nbranch")
    assert done.returncode == merge_driver.CONFLICT_IS_MARKED
    marked = (folder / "A").read_bytes()
    for line in (b"<" * 10 + b" HEAD\n", b"|" * 10 + b" merged common ancestors\n", b"=" * 10 + b"\n"):
        assert b"\n" + line in marked
    assert b"\n" + b">" * 10 + b" topic branch\n" in marked


def test_an_older_git_hands_names_over_that_it_does_not_know(three):
    folder = three(BASE, OURS, CLASH)
    assert run(folder, "--from-config", "7", "%S", "%X", "%Y").returncode == merge_driver.CONFLICT_IS_MARKED
    assert b"<<<<<<< ours\n" in (folder / "A").read_bytes()


def test_memories_that_both_sides_added_are_merged_without_a_base(three):
    folder = three(None, OURS, OURS)
    assert run(folder).returncode == 0
    folder = three(None, OURS, CLASH)
    done = run(folder)
    assert done.returncode == 1
    marked = (folder / "A").read_bytes()
    assert b"type: gotcha" in marked and b"type: howto" in marked and b"<<<<<<< ours" in marked


@pytest.mark.parametrize("side", ["O", "A", "B"])
@pytest.mark.parametrize(
    "ruin", [b"", b"\xff\xfe\x00", b"---\nid: x\n", b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"]
)
def test_a_side_that_can_not_be_read_is_a_conflict_with_both_sides_in_the_file(three, side, ruin):
    sides = {"O": BASE, "A": OURS, "B": CLASH, side: ruin}
    folder = three(sides["O"], sides["A"], sides["B"])
    done = run(folder)
    assert done.returncode == 1
    assert f"`open-memex resolve {ID}`" in done.stderr
    assert done.stderr.count("\n") == 1
    marked = (folder / "A").read_bytes()
    assert b"<<<<<<< ours\n" in marked and b">>>>>>> theirs\n" in marked
    for name, telling in (("A", b"type: gotcha"), ("B", b"type: howto")):
        lines = [telling] if name != side else ruin.splitlines()
        assert all(line in marked for line in lines)


def test_a_file_that_is_no_memory_is_left_to_git(three):
    folder = three(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n")
    assert run(folder, "--from-config", "7", path=".ai/open-memex/README.md").returncode == 4
    assert (folder / "A").read_bytes() == b"A\nb\nc\n"
    assert run(folder, path=".ai/open-memex/README.md").returncode == 1  # called by hand there is no git
    assert b">>>>>>> theirs" in (folder / "A").read_bytes()


@pytest.mark.parametrize("failure", [RuntimeError("x"), MemoryError(), KeyboardInterrupt(), SystemExit(0)])
def test_whatever_fails_inside_both_sides_are_in_the_file(three, monkeypatch, capsys, failure):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(merge, "merge", fail)
    folder = three(BASE, OURS, THEIRS)
    assert merge_driver.main([*(str(folder / name) for name in "OAB"), NAME]) == 1
    marked = (folder / "A").read_bytes()
    assert marked == (
        b"<<<<<<< ours\n" + OURS + b"||||||| base\n" + BASE + b"=======\n" + THEIRS + b">>>>>>> theirs\n"
    )
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert type(failure).__name__ in told.err


@pytest.mark.parametrize("broken", ["raises", "forgets the markers"])
def test_where_the_markers_fail_too_the_file_holds_both_sides_whole(three, monkeypatch, capsys, broken):
    def fail(*_, **__):
        if broken == "raises":
            raise ValueError
        return OURS

    monkeypatch.setattr(merge, "with_markers", fail)
    folder = three(BASE, OURS, CLASH)
    assert merge_driver.main([*(str(folder / name) for name in "OAB"), NAME]) == 1
    marked = (folder / "A").read_bytes()
    assert marked.startswith(b"<<<<<<< ours\n" + OURS) and marked.endswith(CLASH + b">>>>>>> theirs\n")
    assert "both sides changed type" in capsys.readouterr().err


def test_a_package_without_its_merge_still_marks_the_conflict(three):
    folder = three(BASE, OURS, THEIRS)
    code = (
        "import sys\n"
        "for name in ('merge', 'ids'): sys.modules['openmemex.memory.' + name] = None\n"
        "from openmemex_hooks.merge_driver import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "O", "A", "B", NAME], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    marked = (folder / "A").read_bytes()
    assert OURS in marked and THEIRS in marked and marked.startswith(b"<<<<<<< ours\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("point", ["merged", "temporary", "written"])
def test_a_kill_leaves_the_old_file_or_the_new_one(three, point):
    folder = three(BASE, OURS, THEIRS)
    done = run(folder, env={"OPEN_MEMEX_FAULT": f"merge-driver.{point}"})
    assert done.returncode == -signal.SIGKILL
    merged = merge.merge(BASE, OURS, THEIRS, stem=ID).raw
    assert (folder / "A").read_bytes() == (merged if point == "written" else OURS)
    assert ((folder / "O").read_bytes(), (folder / "B").read_bytes()) == (BASE, THEIRS)


def test_a_temporary_name_that_is_taken_harms_nobody(three):
    folder = three(BASE, OURS, THEIRS)
    (folder / "A.openmemex").write_bytes(b"somebody's")
    assert run(folder).returncode == 0
    assert (folder / "A").read_bytes() == merge.merge(BASE, OURS, THEIRS, stem=ID).raw
    assert (folder / "A.openmemex").read_bytes() == b"somebody's"


def test_a_file_that_can_not_be_read_is_a_failure_that_names_it(three):
    folder = three(BASE, OURS, THEIRS)
    (folder / "B").unlink()
    done = run(folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert NAME in done.stderr and "Traceback" not in done.stderr
    assert run(folder, "--from-config", "7").returncode not in (0, 3, 4)


def test_the_mode_of_the_file_stays(three):
    folder = three(BASE, OURS, THEIRS)
    (folder / "A").chmod(0o640)
    run(folder)
    assert (folder / "A").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("words", [[], ["O", "A"], ["O", "A", "B", "P", "more"], ["--base", "A", "B"]])
def test_a_call_that_is_none_is_wrong_usage(words):
    done = subprocess.run(
        [sys.executable, "-m", "openmemex_hooks.merge_driver", *words], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("open-memex: usage: open-memex merge-driver")


def test_help_is_given_with_an_example(run_cli):
    done = run_cli("merge-driver", "--help")
    assert done.returncode == 0
    assert "Example:\n  git config merge.openmemex.driver" in done.stdout


def test_a_path_in_any_bytes_is_taken(three):
    folder = three(BASE, OURS, CLASH)
    done = run(folder, path=f"caf\udce9\x1b/{ID}.md")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr and ID in done.stderr


def test_a_notice_of_a_merge_is_told(three):
    many = tuple(f"t{n}" for n in range(20))
    ours, theirs = (
        BASE.replace(b"tags: []", f"tags: [{', '.join(side + tag for tag in many)}]".encode())
        for side in "ab"
    )
    done = run(three(BASE, ours, theirs))
    assert done.returncode == 0
    assert done.stderr.startswith(f"open-memex: {ID}: ") and done.stderr.count("\n") == 1
