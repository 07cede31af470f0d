"""Memory files: read whole or named, written whole, changed only if still as they were read."""

from __future__ import annotations

import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.errors import NotFound, OpenMemexError, Refused
from openmemex.memory import frontmatter, ids
from openmemex.memory.frontmatter import Unreadable
from openmemex.memory.model import MAX_FILE_BYTES, Memory
from openmemex.store import files, homes
from openmemex.store.files import ChangedUnderneath, MemoryFile, Quarantined

A, B, C = "01K6AB3XZQ7WVD9J1M2N4P5Q6A", "01K6AB3XZQ7WVD9J1M2N4P5Q6B", "01K6AB3XZQ7WVD9J1M2N4P5Q6C"
KEY = "project__widget__0123456789ab"


@pytest.fixture
def personal(home) -> homes.Home:
    return homes.personal_home(str(home.data))


@pytest.fixture
def repository(tmp_path) -> homes.Home:
    (tmp_path / "work").mkdir()
    return homes.repository_home(str(tmp_path / "work"), ".ai/open-memex", KEY)


def memory(memory_id: str = A, body: str = "a text\n") -> Memory:
    return Memory(memory_id, body, created_at="2026-09-26T12:00:00Z", updated_at="2026-09-26T12:00:00Z")


def place(home: homes.Home, name: str, raw: bytes) -> Path:
    Path(home.folder).mkdir(parents=True, exist_ok=True)
    path = Path(home.folder, name)
    path.write_bytes(raw)
    return path


def good(memory_id: str, body: str = "a text\n") -> bytes:
    return frontmatter.render(memory(memory_id, body))


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


# --- writing and reading back ---


def test_a_new_memory_is_one_private_file_that_reads_back(personal):
    written = files.write_new(personal, memory())
    assert written.memory == memory()
    assert written.path == os.path.join(personal.folder, A + ".md")
    assert files.read(personal, A) == written
    assert (mode(written.path), mode(personal.folder)) == (0o600, 0o700)
    status = os.lstat(written.path)
    assert written.stamp == (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    assert os.listdir(personal.folder) == [A + ".md"]


def test_in_a_repository_files_have_the_modes_that_any_editor_gives(repository):
    written = files.write_new(repository, memory())
    assert (mode(written.path), mode(repository.folder), mode(os.path.dirname(repository.folder))) == (
        0o644,
        0o755,
        0o755,
    )
    os.chmod(written.path, 0o664)
    assert mode(files.replace(files.read(repository, A), good(A, "other\n")).path) == 0o664


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=3))
def test_any_text_that_is_written_reads_back_equal(tmp_path_factory, body, aliases):
    home = homes.personal_home(str(tmp_path_factory.mktemp("root")))
    made = Memory(ids.new_id(), body, aliases=tuple(aliases), created_at="2026-01-01T00:00:00Z")
    try:
        written = files.write_new(home, made)
    except OpenMemexError:
        assert list(files.scan(home)) == []
        return
    assert (written.memory.body, written.memory.aliases) == (body, tuple(aliases))
    assert list(files.scan(home)) == [written]


def test_a_memory_is_never_written_over_another(personal):
    files.write_new(personal, memory())
    with pytest.raises(Refused, match="exists already"):
        files.write_new(personal, memory(body="other\n"))
    assert files.read(personal, A).memory.body == "a text\n"
    os.symlink(Path(personal.folder).parent / "nowhere", personal.path_of(B))
    with pytest.raises(Refused, match="exists already"):
        files.write_new(personal, memory(B))


def test_bytes_that_are_no_memory_of_that_id_are_not_written(personal):
    for raw in (b"no front matter\n", good(B), b"\xff"):
        with pytest.raises(Unreadable):
            files.write_raw(personal, A, raw)
    assert not os.path.exists(personal.folder)


@pytest.mark.parametrize(
    "memory_id", ["../../../etc/hostname", "..\\..\\x", "/etc/hostname", A + "/../B", A + "\0"]
)
def test_nothing_but_an_id_names_a_file(personal, memory_id):
    for act in (
        lambda: files.read(personal, memory_id),
        lambda: files.write_raw(personal, memory_id, good(A)),
    ):
        with pytest.raises(OpenMemexError, match="no memory id"):
            act()


# --- what can't be read ---


def odd_files(home: homes.Home) -> dict[str, tuple[int, str]]:
    """Files that are quarantined: name → line and a part of the reason."""
    secret = "ghp" + "_mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
    made = {
        "no front matter": (b"text\n", 1, "no front matter"),
        "not closed": (b"---\nid: {id}\n", 0, "not closed"),
        "other id": (good(A), 0, "id"),
        "bad yaml": (b"---\nid: {id}\nreview_note: see C: drive: later\n---\nx\n", 3, ""),
        "twice": (b"---\nid: {id}\nstatus: active\nstatus: archived\n---\nx\n", 4, ""),
        "not utf-8": (b"---\nid: {id}\n---\n\xff\n", 4, "UTF-8"),
        "too large": (good(A) + b"x" * MAX_FILE_BYTES, 0, "1 MiB"),
        "conflict": (b"---\nid: {id}\n---\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", 4, "conflict"),
        "secret": (b"---\nid: {id}\nstatus: [" + secret.encode() + b"\n---\nx\n", 0, ""),
    }
    expected: dict[str, tuple[int, str]] = {}
    for raw, line, reason in made.values():
        memory_id = ids.new_id()
        place(home, memory_id + ".md", raw.replace(b"{id}", memory_id.encode()))
        expected[memory_id] = (line, reason)
    return expected


def test_a_broken_file_is_named_with_line_and_reason_and_left_alone(personal):
    expected = odd_files(personal)
    files.write_new(personal, memory())
    before = {name: Path(personal.folder, name).read_bytes() for name in os.listdir(personal.folder)}
    found = {os.path.basename(item.path)[:26]: item for item in files.scan(personal)}
    assert isinstance(found.pop(A), MemoryFile)
    assert set(found) == set(expected)
    for memory_id, (line, reason) in expected.items():
        item = found[memory_id]
        assert isinstance(item, Quarantined)
        assert item.line == line or not line
        assert reason in item.reason
        assert "mEmEx0TeSt1" not in item.reason
        with pytest.raises(Unreadable) as caught:
            files.read(personal, memory_id)
        assert caught.value.message.startswith(personal.path_of(memory_id))
        assert caught.value.hint
        assert "mEmEx0TeSt1" not in str(caught.value)
        with pytest.raises(Refused):
            files.write_new(personal, memory(memory_id))
    assert {name: Path(personal.folder, name).read_bytes() for name in os.listdir(personal.folder)} == before


def test_links_pipes_sockets_devices_and_folders_are_never_opened(personal, tmp_path):
    Path(personal.folder).mkdir(parents=True)
    names = [ids.new_id() for _ in range(5)]
    link, dangling, pipe, folder, sock = (personal.path_of(name) for name in names)
    (tmp_path / "outside.md").write_bytes(good(names[0]))
    os.symlink(tmp_path / "outside.md", link)
    os.symlink(Path(personal.folder).parent / "nowhere", dangling)
    os.mkfifo(pipe)
    os.mkdir(folder)
    bound = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(personal.folder)  # a socket's path may have 108 characters
    bound.bind(os.path.basename(sock))
    os.chdir(here)
    found = {os.path.basename(item.path)[:26]: item for item in files.scan(personal)}
    bound.close()
    assert set(found) == set(names)
    reasons = [found[name].reason for name in names]
    assert all("symbolic link" in reason for reason in reasons[:2])
    assert "regular file" in reasons[2]
    assert "folder" in reasons[3]
    assert "regular file" in reasons[4]
    for name in names:
        with pytest.raises(Unreadable):
            files.read(personal, name)


def test_other_files_in_the_folder_are_passed_over_unless_they_claim_to_be_memories(personal):
    files.write_new(personal, memory())
    plain = {
        "README.md": b"# Memories\n",
        "notes.md": b"---\ntitle: x\n---\n",
        "x.txt": b"",
        ".hidden.md": good(B),
        f".{B}.md.0123456789abcdef.tmp": good(B),
        "broken.md": b"---\nid: x\n",
    }
    claims = {
        A.lower() + ".md": good(B),
        B + ".MD": good(B),
        f"{C} copy.md": good(C),
        "部署.md": b"---\r\nid: x\r\n---\r\n",
    }
    for name, raw in (plain | claims).items():
        place(personal, name, raw)
    os.symlink(personal.path_of(A), os.path.join(personal.folder, "link.md"))
    os.mkfifo(os.path.join(personal.folder, "pipe.md"))
    found = [item for item in files.scan(personal) if isinstance(item, Quarantined)]
    assert sorted(os.path.basename(item.path) for item in found) == sorted(claims)
    assert all("no memory id" in item.reason for item in found)


def test_a_missing_folder_is_empty_and_a_missing_memory_is_named(personal):
    assert list(files.scan(personal)) == []
    with pytest.raises(NotFound, match=A):
        files.read(personal, A)


def test_a_repository_s_folder_that_became_a_link_is_neither_read_nor_written(repository, tmp_path):
    file = files.write_new(repository, memory())
    os.rename(repository.folder, tmp_path / "moved")
    os.symlink(tmp_path / "moved", repository.folder)
    acts = [
        lambda: files.read(repository, A),
        lambda: list(files.scan(repository)),
        lambda: files.write_new(repository, memory(B)),
        lambda: files.replace(file, good(A, "new\n")),
        lambda: files.remove(file),
    ]
    for act in acts:
        with pytest.raises(Refused, match="symbolic link"):
            act()
    assert os.listdir(tmp_path / "moved") == [A + ".md"]


# --- changes ---


def test_a_change_replaces_the_file_and_equal_bytes_write_nothing(personal):
    file = files.write_new(personal, memory())
    assert files.replace(file, file.raw) is file
    assert files.read(personal, A).stamp == file.stamp
    changed = files.replace(file, frontmatter.rewrite(file.document, {"importance": "high"}))
    assert changed.memory.importance == "high"
    assert changed.stamp != file.stamp
    with pytest.raises(Unreadable):
        files.replace(changed, b"broken")
    assert files.read(personal, A) == changed


def test_a_file_that_changed_underneath_is_left_and_the_new_text_is_kept(personal, home):
    file = files.write_new(personal, memory())
    theirs = good(A, "by an editor\n")
    Path(file.path).write_bytes(theirs)
    ours = [good(A, "ours\n"), good(A, "ours again\n")]
    for raw in ours:
        with pytest.raises(ChangedUnderneath) as caught:
            files.replace(file, raw)
        assert file.path in caught.value.message
        kept = next(p for p in (home.data / "rescued").iterdir() if str(p) in caught.value.hint)
        assert (kept.read_bytes(), mode(kept), mode(kept.parent)) == (raw, 0o600, 0o700)
    assert Path(file.path).read_bytes() == theirs
    assert os.listdir(personal.folder) == [A + ".md"]
    with pytest.raises(ChangedUnderneath):
        files.remove(file)
    assert Path(file.path).read_bytes() == theirs


@pytest.mark.parametrize("become", ["nothing", "link", "folder"])
def test_a_file_that_is_gone_or_something_else_is_not_written_again(personal, home, become):
    file = files.write_new(personal, memory())
    os.unlink(file.path)
    if become == "link":
        os.symlink(Path(personal.folder).parent / "nowhere", file.path)
    elif become == "folder":
        os.mkdir(file.path)
    with pytest.raises(OpenMemexError):
        files.replace(file, good(A, "ours\n"))
    assert os.path.lexists(file.path) == (become != "nothing")
    assert not os.path.isfile(file.path)


def test_removing_takes_the_file_away_once(personal):
    file = files.write_new(personal, memory())
    files.remove(file)
    assert os.listdir(personal.folder) == []
    files.remove(file)


# --- several processes, and processes that die ---

EDITOR = """
import sys, time
from openmemex.store import files, homes
from openmemex.memory import frontmatter
home = homes.personal_home(sys.argv[1])
file = files.read(home, sys.argv[2])
raw = frontmatter.rewrite(file.document, {"importance": "high"}, body=sys.argv[3] * 2000 + "\\n")
print("ready", flush=True)
sys.stdin.readline()
try:
    files.replace(file, raw)
    print("won")
except files.ChangedUnderneath as error:
    print("lost", error.hint)
"""


def start(code: str, *args: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )


def test_of_processes_that_edit_one_memory_one_wins_and_the_others_texts_are_kept(personal, home):
    files.write_new(personal, memory())
    running = [start(EDITOR, str(home.data), A, letter) for letter in "uvw"]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0] for process in running]
    assert sorted(text.split()[0] for text in said) == ["lost", "lost", "won"]
    texts = [files.read(personal, A).memory.body[0]]
    texts += [path.read_text("utf-8").rsplit("---\n", 1)[1][0] for path in (home.data / "rescued").iterdir()]
    assert sorted(texts) == ["u", "v", "w"]


STEP = """
import sys
from openmemex.store import files, homes
from openmemex.memory import frontmatter
from openmemex.memory.model import Memory
home = homes.personal_home(sys.argv[1])
if sys.argv[3] == "write":
    files.write_new(home, Memory(sys.argv[2], "new text\\n" * 3000))
else:
    file = files.read(home, sys.argv[2])
    if sys.argv[3] == "replace":
        body = "new text\\n" * 3000
        files.replace(file, frontmatter.rewrite(file.document, {"importance": "high"}, body=body))
    else:
        files.remove(file)
"""


@pytest.mark.parametrize(
    ("act", "point", "new"),
    [
        ("write", "write.temp-written", False),
        ("write", "write.renamed", True),
        ("replace", "write.temp-written", False),
        ("replace", "write.renamed", True),
        ("remove", "remove.done", True),
    ],
)
def test_a_kill_at_any_step_leaves_the_old_state_or_the_new_one_whole_and_a_rerun_finishes(
    personal, home, act, point, new
):
    old = None if act == "write" else files.write_new(personal, memory(A, "old text\n" * 2000)).raw
    done = subprocess.run(
        [sys.executable, "-c", STEP, str(home.data), A, act], env=os.environ | {"OPEN_MEMEX_FAULT": point}
    )
    assert done.returncode == -signal.SIGKILL
    found = list(files.scan(personal))
    if act == "remove":
        assert found == []
    elif new:
        assert [item.memory.body for item in found if isinstance(item, MemoryFile)] == ["new text\n" * 3000]
    else:
        assert [item.raw for item in found if isinstance(item, MemoryFile)] == ([old] if old else [])
    again = subprocess.run(
        [sys.executable, "-c", STEP, str(home.data), A, act], capture_output=True, text=True
    )
    if act == "replace" or not new:
        assert again.returncode == 0, again.stderr
    if act != "remove":
        assert files.read(personal, A).memory.body == "new text\n" * 3000


CHURN = """
import itertools, sys
from openmemex.store import files, homes
from openmemex.memory import frontmatter, ids
from openmemex.memory.model import Memory
home = homes.personal_home(sys.argv[1])
for n in itertools.count():
    new = files.write_new(home, Memory(ids.new_id(), f"{n}\\n" * 500))
    print(new.memory.id, flush=True)
    files.replace(new, frontmatter.rewrite(new.document, {}, body=f"{n} again\\n" * 500))
"""


def test_a_reader_never_sees_half_a_file_and_a_kill_loses_nothing_acknowledged(personal, home):
    rng = random.Random(11)
    acknowledged: list[str] = []
    for _ in range(3):
        writers = [start(CHURN, str(home.data)) for _ in range(2)]
        reads = 0
        stop = time.monotonic() + rng.uniform(0.8, 1.4)
        while time.monotonic() < stop or not reads:
            for item in files.scan(personal):
                assert isinstance(item, MemoryFile), item
                reads += 1
        for process in writers:
            process.send_signal(signal.SIGKILL)
        for process in writers:
            acknowledged += process.communicate()[0].split()
    found = [item for item in files.scan(personal) if isinstance(item, MemoryFile)]
    assert acknowledged
    assert set(acknowledged) <= {file.memory.id for file in found}
    for file in found:
        lines = file.memory.body.splitlines()
        assert (len(lines), len(set(lines))) == (500, 1)
