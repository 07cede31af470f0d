"""Locks between processes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from openmemex.errors import OpenMemexError, Refused
from openmemex.store.locks import lock

HOLDER = """
import sys, time
from openmemex.store.locks import lock
with lock(sys.argv[1], "k"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_held_lock_is_refused_by_name_and_a_killed_holder_leaves_none(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Refused) as caught, lock(str(tmp_path), "k", wait=0.05):
        pass
    assert str(tmp_path / "locks" / "k.lock") in caught.value.message
    with lock(str(tmp_path), "another"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with lock(str(tmp_path), "k", wait=0.05):
        pass


def test_an_odd_key_never_leaves_the_locks_folder(tmp_path):
    for key in ("../../x", "/etc/x", "", "a\0b", "x" * 500, "Schlüssel", "\ud800"):
        with lock(str(tmp_path / "root"), key):
            pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["root"]
    assert all(entry.suffix == ".lock" for entry in (tmp_path / "root" / "locks").iterdir())


def test_a_data_root_that_is_a_file_is_told(tmp_path):
    (tmp_path / "root").write_bytes(b"")
    with pytest.raises(OpenMemexError, match="cannot make the folder"), lock(str(tmp_path / "root"), "k"):
        pass
