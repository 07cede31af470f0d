"""Where files live, and that a write shows the old file or the new one, whole, whatever happens."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from openmemex import paths
from openmemex.errors import OpenMemexError

H = {"HOME": "/home/ada"}


@pytest.mark.parametrize(
    ("environ", "platform", "root"),
    [
        (H, "linux", "/home/ada/.local/share/open-memex"),
        (H, "darwin", "/home/ada/.local/share/open-memex"),
        (H | {"XDG_DATA_HOME": "/x"}, "linux", "/x/open-memex"),
        (H | {"XDG_DATA_HOME": "x"}, "linux", "/home/ada/.local/share/open-memex"),
        (H | {"XDG_DATA_HOME": ""}, "linux", "/home/ada/.local/share/open-memex"),
        (H | {"APPDATA": "/roam"}, "linux", "/home/ada/.local/share/open-memex"),
        (H | {"APPDATA": "/roam", "XDG_DATA_HOME": "/x"}, "win32", "/roam/open-memex"),
        ({"USERPROFILE": "/u"}, "win32", "/u/AppData/Roaming/open-memex"),
        (H | {"MY_O_MEMORY_HOME": "/old"}, "linux", "/old"),
        (H | {"MY_O_MEMORY_HOME": "/old", "OPEN_MEMEX_HOME": "/new/"}, "linux", "/new"),
        (H | {"MY_O_MEMORY_HOME": "/old", "OPEN_MEMEX_HOME": ""}, "linux", "/old"),
        (H | {"OPEN_MEMEX_HOME": "~/m"}, "linux", "/home/ada/m"),
        (H | {"OPEN_MEMEX_HOME": "~"}, "linux", "/home/ada"),
        (H | {"OPEN_MEMEX_HOME": "/a/../b"}, "win32", "/b"),
    ],
)
def test_the_data_root_follows_the_table(environ, platform, root):
    assert paths.data_root(environ, platform) == root


@pytest.mark.parametrize(
    ("environ", "platform", "file"),
    [
        (H, "linux", "/home/ada/.config/open-memex/config.jsonc"),
        (H, "darwin", "/home/ada/Library/Application Support/open-memex/config.jsonc"),
        (H | {"XDG_CONFIG_HOME": "/x"}, "darwin", "/x/open-memex/config.jsonc"),
        (H | {"XDG_CONFIG_HOME": "./x"}, "linux", "/home/ada/.config/open-memex/config.jsonc"),
        (H | {"APPDATA": "/roam"}, "win32", "/roam/open-memex/config.jsonc"),
        (H | {"MY_O_MEMORY_CONFIG": "/old.jsonc"}, "linux", "/old.jsonc"),
        (H | {"MY_O_MEMORY_CONFIG": "/old.jsonc", "OPEN_MEMEX_CONFIG": "/new.jsonc"}, "linux", "/new.jsonc"),
    ],
)
def test_the_settings_file_follows_the_table(environ, platform, file):
    assert paths.config_file(environ, platform) == file


def test_a_relative_data_root_is_taken_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert paths.data_root({"OPEN_MEMEX_HOME": "memex"}) == str(tmp_path / "memex")


def test_without_any_home_folder_the_variables_to_set_are_named():
    with pytest.raises(OpenMemexError) as caught:
        paths.data_root({"HOME": "relative"})
    assert "OPEN_MEMEX_HOME" in caught.value.hint


def mode(path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_folders_are_private_and_those_that_exist_keep_their_mode(tmp_path):
    tmp_path.chmod(0o755)
    paths.make_folder(str(tmp_path / "a" / "b"))
    paths.make_folder(str(tmp_path / "a" / "b"))
    assert [mode(tmp_path), mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o755, 0o700, 0o700]


def test_a_folder_where_a_file_is_in_the_way_names_it(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    for path in (tmp_path / "f", tmp_path / "f" / "g"):
        with pytest.raises(OpenMemexError, match=f"cannot make the folder {tmp_path / 'f'}"):
            paths.make_folder(str(path))


def test_a_write_makes_a_private_file_and_replaces_it_keeping_its_mode(tmp_path):
    path = tmp_path / "n.md"
    paths.atomic_write(str(path), b"one")
    assert (path.read_bytes(), mode(path)) == (b"one", 0o600)
    path.chmod(0o664)
    paths.atomic_write(str(path), b"")
    assert (path.read_bytes(), mode(path)) == (b"", 0o664)
    assert os.listdir(tmp_path) == ["n.md"]


def test_a_write_replaces_a_symbolic_link_and_leaves_its_target(tmp_path):
    (tmp_path / "target").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    paths.atomic_write(str(tmp_path / "link"), b"ours")
    assert (tmp_path / "target").read_bytes() == b"theirs"
    assert not (tmp_path / "link").is_symlink()
    assert mode(tmp_path / "link") == 0o600


def test_an_exclusive_write_never_overwrites(tmp_path):
    path = tmp_path / "n.md"
    paths.create_exclusively(str(path), b"one", 0o644)
    assert (path.read_bytes(), mode(path), os.lstat(path).st_nlink) == (b"one", 0o644, 1)
    with pytest.raises(FileExistsError):
        paths.create_exclusively(str(path), b"two", 0o644)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        paths.create_exclusively(str(tmp_path / "dangling"), b"two", 0o644)
    assert path.read_bytes() == b"one"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "n.md"]


def test_an_exclusive_write_works_where_hard_links_do_not(tmp_path, monkeypatch):
    def no_links(*args, **kwargs):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "n.md"
    paths.create_exclusively(str(path), b"one")
    with pytest.raises(FileExistsError):
        paths.create_exclusively(str(path), b"two")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"one", ["n.md"])


@pytest.mark.parametrize("write", [paths.atomic_write, paths.create_exclusively])
def test_what_the_system_refuses_is_told_with_path_and_cause(tmp_path, write):
    (tmp_path / "file").write_bytes(b"x")
    for path, cause in (
        (tmp_path / "missing" / "n.md", "No such file"),
        (tmp_path / "file" / "n.md", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(OpenMemexError, match=cause) as caught:
            write(str(path), b"new")
        assert str(path) in caught.value.message
        assert caught.value.hint


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "d").mkdir()
    with pytest.raises(OpenMemexError, match="Is a directory"):
        paths.atomic_write(str(tmp_path / "d"), b"new")
    with pytest.raises(FileExistsError):
        paths.create_exclusively(str(tmp_path / "d"), b"new")
    assert os.listdir(tmp_path) == ["d"]


# A file system of a few pages, or a folder without permission, needs rights that a test has not: the limit on
# file sizes gives the same EFBIG/ENOSPC kind of failure in the middle of a write.
FULL = """
import resource, signal, sys
from openmemex import paths
from openmemex.errors import OpenMemexError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    getattr(paths, sys.argv[1])(sys.argv[2], b"y" * 100_000)
except OpenMemexError as error:
    print(error.message)
"""


@pytest.mark.parametrize("write", ["atomic_write", "create_exclusively"])
def test_a_disk_that_is_full_in_the_middle_leaves_the_old_state(tmp_path, write):
    path = tmp_path / "n.md"
    if write == "atomic_write":
        path.write_bytes(b"old")
    before = sorted(os.listdir(tmp_path))
    done = subprocess.run([sys.executable, "-c", FULL, write, str(path)], capture_output=True, text=True)
    assert done.stdout == f"cannot write {path}: File too large\n", done.stderr
    assert sorted(os.listdir(tmp_path)) == before
    if before:
        assert path.read_bytes() == b"old"


DENIED = """
import os, sys
from openmemex import paths
from openmemex.errors import OpenMemexError
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
for write in (paths.atomic_write, paths.create_exclusively):
    try:
        write(sys.argv[1], b"new")
    except OpenMemexError as error:
        print(error.message, "/", error.hint)
"""


def test_a_folder_that_may_not_be_written_is_told(tmp_path):
    path = tmp_path / "n.md"
    tmp_path.chmod(0o500)
    done = subprocess.run([sys.executable, "-c", DENIED, str(path)], capture_output=True, text=True)
    tmp_path.chmod(0o700)
    told = done.stdout.splitlines()
    assert len(told) == 2, done.stderr
    assert all(line.startswith(f"cannot write {path}: Permission denied / give yourself") for line in told)
    assert os.listdir(tmp_path) == []


KILLED = "import sys; from openmemex import paths; getattr(paths, sys.argv[1])(sys.argv[2], b'new' * 5000)"


@pytest.mark.parametrize("write", ["atomic_write", "create_exclusively"])
@pytest.mark.parametrize("point", ["write.temp-written", "write.renamed"])
def test_a_kill_in_a_write_leaves_the_old_file_or_the_new_one_whole(tmp_path, write, point):
    path = tmp_path / "n.md"
    old = None if write == "create_exclusively" else b"old" * 4000
    if old is not None:
        path.write_bytes(old)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, write, str(path)], env=os.environ | {"OPEN_MEMEX_FAULT": point}
    )
    assert done.returncode == -signal.SIGKILL
    found = path.read_bytes() if path.exists() else None
    assert found == (old if point == "write.temp-written" else b"new" * 5000)
    left = [name for name in os.listdir(tmp_path) if name != "n.md"]
    assert all(name.startswith(".n.md.") and name.endswith(".tmp") for name in left)
    if point == "write.temp-written" or write == "create_exclusively":
        assert len(left) == 1


def test_leftovers_of_killed_writers_are_removed_after_an_hour_and_nothing_else_is(tmp_path):
    old = time.time() - paths.LEFTOVER_SECONDS - 60
    stale, fresh = f".a.md.{'0' * 16}.tmp", f".a.md.{'1' * 16}.tmp"
    others = [".a.md.tmp", "a.tmp", f".a.{'0' * 15}.tmp", f"a.md.{'0' * 16}.tmp"]
    for name in [stale, fresh, *others]:
        (tmp_path / name).write_bytes(b"x")
        if name != fresh:
            os.utime(tmp_path / name, (old, old))
    (tmp_path / f".d.{'2' * 16}.tmp").mkdir()
    os.utime(tmp_path / f".d.{'2' * 16}.tmp", (old, old))
    paths.atomic_write(str(tmp_path / "n.md"), b"x")
    assert sorted(os.listdir(tmp_path)) == sorted([fresh, *others, f".d.{'2' * 16}.tmp", "n.md"])


def test_removing_a_file_that_is_gone_is_told(tmp_path):
    (tmp_path / "n.md").write_bytes(b"x")
    paths.remove_file(str(tmp_path / "n.md"))
    with pytest.raises(OpenMemexError, match="cannot remove"):
        paths.remove_file(str(tmp_path / "n.md"))
