"""Where a memory's text may come from: the argument, stdin, a file, an editor."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys

import pytest

from openmemex.cli import content, fast

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


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
    assert "ship it" in shown["front_matter"]


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
        ("2026-12-31", "2026-12-31T00:00:00Z"),
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


@pytest.mark.parametrize(
    "typed", ["soon", "30", "d", "2026-13-01", "99999y", "-3d", "9999-12-31T23:59:59-14:00"]
)
def test_what_is_no_time_is_wrong_usage(add, typed):
    code, document, _ = add("text", f"--expires={typed}")
    assert code == 2
    assert document["error"]["message"].startswith("--expires can't be '")


class Terminal:
    """A real process on a real pseudo-terminal, answered with `typed`."""

    def run(self, *words, cwd, typed="", env=None):
        master, slave = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "openmemex", *words],
            cwd=cwd,
            env={**os.environ, "TERM": "xterm", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        if typed:
            os.write(master, typed.encode())
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(master)
        return child.wait(timeout=60), shown.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal():
    return Terminal()


def editor(tmp_path, code):
    script = tmp_path / "editor.py"
    script.write_text("import os, stat, sys\npath = sys.argv[-1]\n" + code)
    return f"{sys.executable} {script}"


def test_the_editor_writes_in_a_private_folder_that_goes_afterwards(repo, home, terminal, tmp_path):
    seen = tmp_path / "seen"
    command = editor(
        tmp_path,
        f"mode = stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode)\n"
        f"open({str(seen)!r}, 'w').write(f'{{mode:o}} {{path}}')\n"
        "open(path, 'w').write('Written in an editor\\n')\n",
    )
    code, shown = terminal.run("add", cwd=repo, env={"VISUAL": command, "EDITOR": "false"})
    assert code == 0, shown
    mode, path = seen.read_text().split(" ", 1)
    assert mode == "700"
    assert path.startswith(str(home.data))
    assert not os.path.exists(os.path.dirname(path))
    (file,) = home.data.rglob("memories/**/*.md")
    assert "Written in an editor" in file.read_text()
    assert ULID.search(shown)


def test_an_editor_that_fails_or_leaves_nothing_saves_nothing(repo, home, terminal, tmp_path):
    for code_of_editor in ("sys.exit(3)", "pass", "open(path, 'w').write(' \\n')"):
        command = editor(tmp_path, code_of_editor)
        code, shown = terminal.run("add", cwd=repo, env={"EDITOR": command})
        assert code == 1
        assert "Traceback" not in shown
        assert not list(home.data.rglob("memories/**/*.md"))


def test_a_text_that_could_not_be_saved_is_kept_and_named(repo, home, terminal, tmp_path):
    command = editor(tmp_path, "open(path, 'w').write('Precious words\\n')")
    code, shown = terminal.run(
        "add", "--type", "fact", cwd=home, env={"EDITOR": command, "OPEN_MEMEX_PROJECT": ""}
    )
    # The home folder is no project: saved as a personal memory. A refused scope keeps the text instead.
    assert code == 0
    code, shown = terminal.run("add", "--scope", "project", cwd=home, env={"EDITOR": command})
    assert code == 1
    kept = re.search(r"Your text is kept in (\S+)\.", shown.replace("\n", ""))
    assert kept, shown
    with open(kept[1], encoding="utf-8") as file:
        assert file.read() == "Precious words\n"
    assert oct(os.stat(kept[1]).st_mode & 0o777) == "0o600"


def test_an_editor_that_is_not_there_is_told(repo, terminal):
    for command in ("/no/such/editor", "'unclosed"):
        code, shown = terminal.run("add", cwd=repo, env={"EDITOR": command})
        assert code == 1
        assert "Traceback" not in shown and "fault" not in shown


def test_edit_opens_the_text_and_keeps_an_unchanged_file(repo, home, terminal, tmp_path, capsys):
    assert fast.main(["add", "First words", "--json"]) == 0
    memory_id = json.loads(capsys.readouterr().out)["id"]
    (file,) = home.data.rglob("memories/**/*.md")
    before = file.read_bytes()
    code, shown = terminal.run("edit", memory_id, cwd=repo, env={"EDITOR": editor(tmp_path, "pass")})
    assert code == 0
    assert "Nothing changed" in shown
    assert file.read_bytes() == before
    change = editor(tmp_path, "t = open(path).read()\nopen(path, 'w').write(t.replace('First', 'Second'))")
    code, shown = terminal.run("edit", memory_id, cwd=repo, env={"EDITOR": change})
    assert code == 0
    assert "Second words" in file.read_text()


def test_forget_asks_on_a_terminal_and_reads_the_text_back(repo, home, terminal, capsys):
    assert fast.main(["add", "Words to forget", "--json"]) == 0
    memory_id = json.loads(capsys.readouterr().out)["id"]
    (file,) = home.data.rglob("memories/**/*.md")
    code, shown = terminal.run("forget", memory_id, cwd=repo, typed="n\n")
    assert code == 1
    assert file.exists()
    assert "Words to forget" in shown and memory_id in shown and "Nothing was forgotten." in shown
    code, shown = terminal.run("forget", memory_id, cwd=repo, typed="y\n")
    assert code == 0
    assert not file.exists()


def test_colour_on_a_terminal_only_where_it_is_wanted(repo, terminal, capsys):
    assert fast.main(["add", "Words \x1b[31mred\x1b[0m \u202e"]) == 0
    capsys.readouterr()
    code, shown = terminal.run("search", "words", cwd=repo)
    assert code == 0
    assert "\x1b[1m" in shown
    assert "\x1b[31m" not in shown and "\\x1b[31mred" in shown and "\\u202e" in shown
    for words, env in (
        (["search", "words", "--plain"], {}),
        (["search", "words"], {"NO_COLOR": "1"}),
        (["search", "words"], {"TERM": "dumb"}),
        (["list", "--plain"], {}),
        (["list", "--json"], {}),
    ):
        code, shown = terminal.run(*words, cwd=repo, env=env)
        assert code == 0
        assert "\x1b" not in shown and "red" in shown
