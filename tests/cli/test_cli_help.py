"""Help is there when nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import typer

from openmemex.cli.app import app

TREE = typer.main.get_command(app)
COMMANDS = sorted(
    [[name] for name in TREE.commands] + [["config", name] for name in TREE.commands["config"].commands]
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_tells_usage_options_and_an_example(command, capsys):
    from openmemex.cli import fast

    outputs = []
    for option in ("--help", "-h"):
        assert fast.main([*command, option]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        outputs.append(out)
    assert outputs[0] == outputs[1]
    words = " ".join(command)
    assert outputs[0].startswith(f"Usage: open-memex {words} [OPTIONS]")
    assert "\nOptions:\n" in outputs[0]
    assert "\n  Example:\n    " in outputs[0]
    assert f"open-memex {command[0]}" in outputs[0].partition("Example:")[2]
    assert "<" not in outputs[0].partition("Arguments:")[2].partition("Options:")[0]
    assert outputs[0].isascii()
    if command != ["config"]:
        for name in ("--json", "--project DIR", "--verbose", "--plain"):
            assert name in outputs[0]


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_each_example_is_read_without_a_mistake(command):
    """Every example line parses as the command it stands under (nothing is run)."""
    import shlex

    at = TREE
    for name in command:
        at = at.commands[name]
    lines = [line.strip() for line in at.epilog.splitlines() if "open-memex " in line and "`" not in line]
    assert lines
    for line in lines:
        words = shlex.split(line.partition("| ")[2] or line)
        assert words[0] == "open-memex"
        command_at, rest = TREE, words[1:]
        while hasattr(command_at, "commands"):
            command_at, rest = command_at.commands[rest[0]], rest[1:]
        with command_at.make_context("example", rest):
            pass


BROKEN = """
import os, subprocess, sys
base, python, *words = sys.argv[1:]
gone = os.path.join(base, "gone")
os.mkdir(gone)
os.chdir(gone)
os.rmdir(gone)
os.execve(python, [python, "-m", "openmemex", *words], {k: v for k, v in os.environ.items() if k != "HOME"})
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """No HOME, a data root that can't be, settings that are no settings, a working folder that is gone."""
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "config.jsonc").write_bytes(b"\xff{{{ not json")
    monkeypatch.setenv("OPEN_MEMEX_HOME", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("OPEN_MEMEX_CONFIG", str(tmp_path / "config.jsonc"))
    monkeypatch.setenv("OPEN_MEMEX_PROJECT", str(tmp_path / "nowhere"))
    monkeypatch.setenv("COLUMNS", "x")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("GIT_DIR", "/nowhere")

    def run(*words):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(BROKEN), str(tmp_path), sys.executable, *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    return run


@pytest.mark.skipif(os.name == "nt", reason="a working folder can't be removed there")
@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_help_needs_nothing_to_be_in_order(broken, command):
    done = broken(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: open-memex")
    assert "Example:" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="a working folder can't be removed there")
@pytest.mark.parametrize("command", [["search", "x"], ["list"], ["add", "x"], ["doctor"]], ids=" ".join)
def test_a_broken_place_is_told_in_two_lines(broken, command):
    done = broken(*command)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "fault" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("name", ["open-memex", "openmemex", "open-memex.exe", "__main__.py", ""])
def test_help_and_completion_use_the_name_that_was_typed(name, monkeypatch, capsys):
    from openmemex.cli import fast

    monkeypatch.setattr(sys, "argv", ["/somewhere/" + name if name else ""])
    shown = "openmemex" if name == "openmemex" else "open-memex"
    assert fast.main(["list", "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: {shown} list ")


@pytest.mark.parametrize("program", ["open-memex", "openmemex"])
def test_completion_scripts_name_their_program(program, monkeypatch, capsys):
    from openmemex.cli import fast

    monkeypatch.setattr(sys, "argv", [program])
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    for shell, mark in (("bash", "complete -o default"), ("zsh", f"#compdef {program}"), ("fish", program)):
        monkeypatch.setenv(variable, f"source_{shell}")
        assert fast.main([]) == 0
        assert mark in capsys.readouterr().out
        monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("open-memex su", ["submit", "supersede"]),
        ("open-memex add --type go", ["gotcha"]),
        ("open-memex list --scope p", ["personal", "project"]),
        ("open-memex status X ar", ["archived"]),
        ("open-memex config get mem", ["memoryDir"]),
    ],
)
def test_the_tab_key_offers_commands_and_values(line, offered, monkeypatch, capsys):
    from openmemex.cli import fast

    monkeypatch.setattr(sys, "argv", ["open-memex"])
    monkeypatch.setenv("_OPEN_MEMEX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert fast.main([]) == 0
    assert sorted(capsys.readouterr().out.split()) == offered


def test_commands_start_without_what_they_do_not_need(run_cli, make_repo):
    """Not a second matters, but half the time of most commands."""
    code = (
        "import sys; from openmemex.cli import fast; assert fast.main(['list']) == 0; "
        "print(sorted({'pydantic', 'rich', 'pygit2', 'frontmatter'} & set(sys.modules)))"
    )
    repo = make_repo(origin="https://example.org/team/app.git")
    run_cli("list", cwd=repo)
    done = subprocess.run([sys.executable, "-c", code], cwd=repo, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
