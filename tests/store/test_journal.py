"""Steps of two files: the note is on disk before the step, and gone after it."""

from __future__ import annotations

import os

import pytest

from openmemex.store import journal


def test_a_begun_step_is_pending_until_it_is_finished(tmp_path):
    root = str(tmp_path / "root")
    assert journal.pending(root) == []
    one = journal.begin(root, "supersede", old="A", new="B", folders=["/x", "/y"], tries=1, gone=None)
    two = journal.begin(root, "submit", ids=["A"])
    assert journal.pending(root) == sorted([one, two], key=lambda intent: intent.id)
    journal.finish(one)
    journal.finish(one)
    assert journal.pending(root) == [two]
    assert os.stat(two.path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("value", ["one\ntwo", "x" * 5000, ["a", "b\r"]])
def test_a_note_holds_no_text_of_a_memory(tmp_path, value):
    with pytest.raises(ValueError, match="no texts"):
        journal.begin(str(tmp_path), "supersede", old=value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"kind": 1, "at": "", "values": {}}', b"\xff", b"[" * 9999]
)
def test_a_broken_note_is_set_aside_and_hides_no_other(tmp_path, content):
    good = journal.begin(str(tmp_path), "submit", ids=["A"])
    bad = tmp_path / "pending" / "00000000000000000000000000.json"
    bad.write_bytes(content)
    (tmp_path / "pending" / "notes.json").write_bytes(b"{}")
    assert journal.pending(str(tmp_path)) == [good]
    assert (tmp_path / "pending" / f"{bad.name}.broken").read_bytes() == content
    assert journal.pending(str(tmp_path)) == [good]
