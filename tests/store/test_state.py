"""What is remembered between runs: whole at every moment, and never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.store import state
from openmemex.store.state import Pulled

TIP = "1" * 40
PULL = Pulled("2026-09-26T12:00:00Z", "origin", "main")


def test_nothing_is_known_before_anything_is_written(tmp_path):
    assert state.branches(str(tmp_path), "/r/.git") == []
    assert state.pulled(str(tmp_path), "/r/.git") is None


def test_branches_and_pulls_are_kept_a_repository(tmp_path):
    root = str(tmp_path / "root")
    state.add_branch(root, "/r/.git", "refs/heads/a", TIP)
    state.add_branch(root, "/r/.git", "refs/heads/b", TIP)
    state.add_branch(root, "/r/.git", "refs/heads/a", TIP)
    state.add_branch(root, "/s/.git", "refs/heads/c", TIP)
    state.set_pulled(root, "/r/.git", PULL)
    assert state.branches(root, "/r/.git") == ["refs/heads/a", "refs/heads/b"]
    assert state.branches(root, "/s/.git") == ["refs/heads/c"]
    assert state.branch_tips(root, "/r/.git") == {"refs/heads/a": TIP, "refs/heads/b": TIP}
    assert (state.pulled(root, "/r/.git"), state.pulled(root, "/s/.git")) == (PULL, None)
    state.drop_branch(root, "/r/.git", "refs/heads/a")
    state.drop_branch(root, "/r/.git", "refs/heads/a")
    state.drop_branch(root, "/s/.git", "refs/heads/c")
    assert state.branches(root, "/r/.git") == ["refs/heads/b"]
    assert state.branch_tips(root, "/r/.git") == {"refs/heads/b": TIP}
    assert "/s/.git" not in (tmp_path / "root" / "sync-state.json").read_text()


@given(st.text(min_size=1, max_size=12).filter(lambda t: "\0" not in t), st.booleans())
def test_any_folder_name_is_found_again(tmp_path_factory, name, pulled_first):
    root = str(tmp_path_factory.mktemp("state"))
    if pulled_first:
        state.set_pulled(root, name, PULL)
    state.add_branch(root, name, "refs/heads/x", TIP)
    state.set_pulled(root, name, PULL)
    assert state.branches(root, name) == ["refs/heads/x"]
    assert state.pulled(root, name) == PULL
    assert state.branches(root, name + "2") == []


def test_what_another_writer_put_there_stays_and_its_spelling_is_read(tmp_path):
    file = tmp_path / "sync-state.json"
    file.write_text(
        '{"other": 1, "pulled": {}, "branches": {"\\/r\\u002f.git": ["refs/heads/a", 5, "nonsense"]}}'
    )
    assert state.branches(str(tmp_path), "/r/.git") == ["refs/heads/a"]
    state.set_pulled(str(tmp_path), "/r/.git", PULL)
    assert json.loads(file.read_text())["other"] == 1
    assert state.branches(str(tmp_path), "/r/.git") == ["refs/heads/a"]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"\xff\xfe", b'{"branches": 3, "pulled": []}', b"[" * 9999, b" "]
)
def test_a_broken_file_stops_nothing_and_is_set_aside(tmp_path, content):
    root, file = str(tmp_path), tmp_path / "sync-state.json"
    file.write_bytes(content)
    assert state.branches(root, "/r") == []
    assert state.pulled(root, "/r") is None
    assert file.read_bytes() == content
    state.add_branch(root, "/r", "refs/heads/a", TIP)
    assert state.branches(root, "/r") == ["refs/heads/a"]
    aside = tmp_path / "sync-state.json.broken-1"
    assert aside.exists() == (content not in (b'{"branches": 3, "pulled": []}', b" "))
    if aside.exists():
        assert aside.read_bytes() == content


@pytest.mark.parametrize("ref", ["main", "refs/heads/a b", "refs/heads/\n", "refs/heads/a~1", ""])
def test_only_full_ref_names_are_kept(tmp_path, ref):
    with pytest.raises(ValueError, match="full ref name"):
        state.add_branch(str(tmp_path), "/r", ref, TIP)


WRITER = """
import sys
from openmemex.store import state
for n in range(10):
    state.add_branch(sys.argv[1], "/r", f"refs/heads/{sys.argv[2]}-{n}", "1" * 40)
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(n)]) for n in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len(state.branches(str(tmp_path), "/r")) == 30


def test_the_files_are_private(tmp_path):
    root = tmp_path / "root"
    state.add_branch(str(root), "/r", "refs/heads/a", TIP)
    assert os.stat(root).st_mode & 0o777 == 0o700
    assert os.stat(root / "sync-state.json").st_mode & 0o777 == 0o600
    assert all(os.stat(f).st_mode & 0o077 == 0 for f in (root / "locks", *(root / "locks").iterdir()))


def test_asking_for_branches_of_a_repository_that_is_not_named_loads_no_json(tmp_path):
    state.set_pulled(str(tmp_path), "/r", PULL)
    state.add_branch(str(tmp_path), "/other", "refs/heads/a", TIP)
    code = (
        "import sys; from openmemex.store import state; before = set(sys.modules); "
        "assert state.branches(sys.argv[1], '/r') == []; print(set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
