"""Where a memory's text may come from: the argument, stdin, a file."""

from __future__ import annotations

import io
import json
import sys

import pytest

from openmemex.cli import content, fast


@pytest.fixture
def repo(make_repo, monkeypatch):
    folder = make_repo()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def add(repo, capsys, monkeypatch):
    """Run `add --json` and give back the exit code, the document and stderr."""

    def run(*words, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
        code = fast.main(["add", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out), err

    return run


@pytest.fixture
def stored(capsys):
    def show(memory_id):
        capsys.readouterr()
        assert fast.main(["show", memory_id, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return show


def test_the_argument_is_the_text_wherever_options_stand(add, stored):
    for words in (["One text", "--type", "gotcha"], ["--type", "gotcha", "Other text"]):
        code, document, err = add(*words)
        assert (code, document["action"], err) == (0, "created", "")
        shown = stored(document["id"])
        assert shown["type"] == "gotcha"
        assert shown["content"].strip() in ("One text", "Other text")


def test_text_that_begins_with_a_dash_goes_behind_two(repo, capsys, stored):
    assert fast.main(["add", "--json", "--", "-v means verbose"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert stored(document["id"])["content"].strip() == "-v means verbose"
    assert fast.main(["add", "-v means verbose"]) == 2


def test_a_dash_reads_stdin_as_utf8_in_any_locale(add, stored):
    code, document, _ = add("-", stdin="文 é\r\nline".encode())
    assert code == 0
    assert stored(document["id"])["content"].strip().replace("\r", "") == "文 é\nline"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"latin \xe9", "stdin is no UTF-8 text: byte 7 can't be read."),
        (b"\xff\xfet\0", "stdin is no UTF-8 text."),
        (b"bin\0ary", "stdin is no UTF-8 text."),
        (b"x" * ((1 << 20) + 1), "stdin is larger than 1 MiB."),
    ],
)
def test_stdin_that_is_no_text_is_told(add, home, raw, reason):
    code, document, _ = add("-", stdin=raw)
    assert (code, document["error"]["message"]) == (1, reason)
    assert document["error"]["hint"]
    assert not list(home.data.rglob("*.md"))


def test_no_text_and_nobody_at_a_terminal_is_wrong_usage(add, home):
    code, document, _ = add(stdin=b"not asked for")
    assert (code, document["error"]["code"]) == (2, 2)
    assert not list(home.data.rglob("*.md"))


def test_two_words_without_quotes_are_wrong_usage_and_are_not_repeated(add):
    code, document, err = add("secretword", "other")
    assert code == 2
    assert "secretword" not in err + json.dumps(document)


def test_a_file_gives_its_text(add, stored, tmp_path):
    note = tmp_path / "n.md"
    note.write_bytes(b"\xef\xbb\xbf# Title\n\nText with --- and \xe6\x96\x87\n")
    code, document, _ = add("--file", note)
    assert code == 0
    assert stored(document["id"])["content"].strip() == "# Title\n\nText with --- and 文"


def test_a_note_gives_its_front_matter_and_options_win(add, stored, tmp_path):
    note = tmp_path / "n.md"
    note.write_text(
        "---\ntitle: T\ntags: [Deploy, '#ops']\ntype: howto\naliases: [ship it]\nimportance: high\n"
        "date: 2026\n---\nBody\n"
    )
    code, document, err = add("--file", note, "--type", "gotcha")
    assert code == 0
    shown = stored(document["id"])
    assert shown["content"].strip() == "Body"
    assert (shown["type"], shown["importance"], shown["tags"]) == ("gotcha", "high", ["deploy", "ops"])
    assert "note: of the file's front matter this was not used: title, date\n" in err
    assert shown["front_matter"]["aliases"] == ["ship it"]


def test_a_type_that_memories_do_not_have_is_told_not_refused(add, stored, tmp_path):
    note = tmp_path / "n.md"
    note.write_text("---\ntype: blogpost\n---\nBody\n")
    code, document, err = add("--file", note)
    assert (code, stored(document["id"])["type"]) == (0, "fact")
    assert "not used: type" in err


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda p: None, "can't be read: No such file or directory."),
        (lambda p: p.mkdir(), "can't be read: Is a directory."),
        (lambda p: p.write_bytes(b"\x89PNG\0\1"), "is no UTF-8 text."),
        (lambda p: p.write_bytes(b"caf\xe9"), "is no UTF-8 text: byte 4 can't be read."),
        (lambda p: p.write_bytes(b"x" * ((1 << 20) + 1)), "is larger than 1 MiB."),
    ],
)
def test_a_file_that_is_no_text_is_told(add, home, tmp_path, make, reason):
    path = tmp_path / "note"
    make(path)
    code, document, _ = add("--file", path)
    assert code == 1
    assert document["error"]["message"] == f"{path} {reason}"
    assert not list(home.data.rglob("*.md"))


def test_a_text_and_a_file_are_too_much(add, tmp_path):
    assert add("text", "--file", tmp_path / "x")[0] == 2


@pytest.mark.parametrize(
    ("typed", "stored_as"),
    [
        ("2026-12-31", "2026-12-31"),
        ("2026-12-31T10:00:00+02:00", "2026-12-31T08:00:00Z"),
        (" 2026-12-31T10:00:00.5Z ", "2026-12-31T10:00:00Z"),
        ("never", ""),
        ("", ""),
    ],
)
def test_when_a_memory_stops_counting(typed, stored_as):
    assert content.moment(typed) == stored_as


def test_a_span_counts_from_now():
    from datetime import UTC, datetime, timedelta

    for typed, days in (("30d", 30), ("12w", 84), ("+1y", 365), ("2 m", 60), ("48h", 2)):
        ahead = datetime.fromisoformat(content.moment(typed)) - datetime.now(UTC)
        assert timedelta(days=days, minutes=-5) < ahead <= timedelta(days=days)


@pytest.mark.parametrize("typed", ["soon", "30", "d", "2026-13-01", "99999y", "-3d"])
def test_what_is_no_time_is_wrong_usage(add, typed):
    code, document, _ = add("text", f"--expires={typed}")
    assert code == 2
    assert document["error"]["message"].startswith("--expires can't be '")
