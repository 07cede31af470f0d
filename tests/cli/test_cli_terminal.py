"""What only happens on a terminal: colour, questions, an editor, a bar."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from openmemex.cli import fast

pty = pytest.importorskip("pty")

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


@pytest.fixture
def repo(make_repo, monkeypatch):
    folder = make_repo()
    monkeypatch.chdir(folder)
    return folder


def _on_its_own_terminal():
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A real process on a real pseudo-terminal, answered with `typed`."""

    def run(self, *words, cwd, typed="", at="", env=None):
        return self.start([sys.executable, "-m", "openmemex", *words], cwd=cwd, typed=typed, at=at, env=env)

    def start(self, command, *, cwd, typed="", at="", env=None):
        master, slave = pty.openpty()
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=_on_its_own_terminal,  # noqa: PLW1509 - there are no threads here
        )
        os.close(slave)
        shown = b""
        while True:
            if typed and at.encode() in shown:
                os.write(master, typed.encode())
                typed = ""
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


def test_the_interrupt_key_ends_it_with_one_word(repo, terminal, home, capsys):
    assert fast.main(["add", "Words to keep", "--json"]) == 0
    memory_id = json.loads(capsys.readouterr().out)["id"]
    code, shown = terminal.run("forget", memory_id, cwd=repo, typed="\x03", at="[y/N]")
    assert code == 130
    assert shown.rstrip().endswith("interrupted")
    assert "Traceback" not in shown
    assert list(home.data.rglob(f"{memory_id}.md"))


def test_the_end_of_the_input_is_no_yes(repo, terminal, home, capsys):
    assert fast.main(["add", "Words to keep", "--json"]) == 0
    memory_id = json.loads(capsys.readouterr().out)["id"]
    code, shown = terminal.run("forget", memory_id, cwd=repo, typed="\x04", at="[y/N]")
    assert code == 1
    assert "Nothing was forgotten." in shown
    assert list(home.data.rglob(f"{memory_id}.md"))


def test_the_tab_key_offers_ids_with_what_they_say(repo, capsys, monkeypatch):
    assert fast.main(["add", "Words \x1b[31m to find", "--json"]) == 0
    memory_id = json.loads(capsys.readouterr().out)["id"]
    monkeypatch.setattr(sys, "argv", ["open-memex"])
    monkeypatch.setenv("_OPEN_MEMEX_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"open-memex show {memory_id[:8].lower()}")
    assert fast.main([]) == 0
    assert memory_id.lower() in capsys.readouterr().out
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"open-memex show {memory_id[:8]}")
    assert fast.main([]) == 0
    out = capsys.readouterr().out
    assert memory_id in out
    assert "to find" in out and "\x1b" not in out
    monkeypatch.setenv("OPEN_MEMEX_PROJECT", "/no/such/folder")
    assert fast.main([]) == 0
    assert memory_id not in capsys.readouterr().out


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


BAR = """
import sys, time
from openmemex.cli import progress
from openmemex.cli.terminal import Screen
progress.PATIENCE_SECONDS = float(sys.argv[1])
bar = progress.Bar(Screen(plain=sys.argv[2] == "plain"))
for done in range(0, 5001, 10):
    bar("Reading [red]memories", done, 5000)
time.sleep(0.2)
bar("Reading [red]memories", 5000, 5000)
bar.close()
print("rich" in sys.modules)
"""


@pytest.mark.parametrize(
    ("patience", "plain", "drawn"), [("0", "", True), ("60", "", False), ("0", "plain", False)]
)
def test_a_bar_is_drawn_for_long_work_only(repo, terminal, patience, plain, drawn):
    code, shown = terminal.start([sys.executable, "-c", BAR, patience, plain], cwd=repo)
    assert code == 0, shown
    assert ("Reading [red]memories" in shown) is drawn
    assert shown.rstrip().endswith(str(drawn))


def test_no_bar_where_nobody_looks(repo):
    done = subprocess.run([sys.executable, "-c", BAR, "0", ""], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_long_summaries_are_cut_to_the_terminal_and_whole_in_a_pipe(repo, terminal, capsys):
    text = "数据库连接 " * 30 + "end"
    assert fast.main(["add", text]) == 0
    capsys.readouterr()
    code, shown = terminal.run("list", "--plain", cwd=repo, env={"COLUMNS": "60"})
    assert code == 0
    from openmemex.cli.plain import columns

    line = next(line for line in shown.splitlines() if line.startswith("1. "))
    assert line.endswith("...") and columns(line) <= 60
