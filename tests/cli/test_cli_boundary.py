"""One boundary: every error becomes lines and a code, and no stream can make noise."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from openmemex.cli import fast
from openmemex.cli.boundary import guarded
from openmemex.cli.terminal import Screen
from openmemex.errors import DecisionNeeded, NotFound, PartlyDone, Refused, UsageError


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (NotFound("No memory.", "Look."), 1, "error: No memory.\nLook.\n"),
        (Refused("No."), 1, "error: No.\n`open-memex doctor` checks that everything here works.\n"),
        (UsageError("Bad word.", "Say it."), 2, "usage: Bad word.\nSay it.\n"),
        (UsageError("Bad word."), 2, "usage: Bad word.\n`open-memex --help` shows how it is used.\n"),
        (DecisionNeeded("Two fit.", "Choose."), 3, "error: Two fit.\nChoose.\n"),
        (PartlyDone("1 of 2.", "Rest."), 4, "error: 1 of 2.\nRest.\n"),
        (NotFound("two\nlines [red]", "a\x1b[31mb"), 1, "error: two lines [red]\na\\x1b[31mb\n"),
        (SystemExit(7), 7, ""),
        (SystemExit(None), 0, ""),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
    ],
)
def test_each_error_has_its_code_and_its_two_lines(error, code, told, capsys):
    assert guarded(raising(error), []) == code
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize(
    "error", [KeyError("the secret text"), RecursionError(), MemoryError(), ValueError("x\0")]
)
def test_a_fault_is_named_by_its_kind_alone(error, capsys):
    assert guarded(raising(error), []) == 1
    out, told = capsys.readouterr()
    assert out == ""
    assert told == (
        f"error: This is a fault in open-memex ({type(error).__name__}).\n"
        "Run it again with OPEN_MEMEX_DEBUG=1 in the environment to see where, and report it.\n"
    )


def test_debug_shows_the_traceback(monkeypatch, capsys):
    monkeypatch.setenv("OPEN_MEMEX_DEBUG", "1")
    assert guarded(raising(KeyError("k")), []) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_full_disk_names_the_path(capsys):
    import errno

    assert guarded(raising(OSError(errno.ENOSPC, "No space left on device", "/data/x.md")), []) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: /data/x.md: No space left on device.",
        "Make room on that disk and try again; what was there is unchanged.",
    ]


def test_json_errors_are_the_one_document(capsys):
    assert guarded(raising(NotFound("No é.", "Look.")), ["show", "x", "--json"]) == 1
    out, told = capsys.readouterr()
    assert json.loads(out) == {"error": {"message": "No é.", "hint": "Look.", "code": 1}}
    assert told == "error: No é.\nLook.\n"


def test_json_behind_a_double_dash_is_text(capsys):
    assert guarded(raising(NotFound("No.", "Look.")), ["search", "--", "--json"]) == 1
    assert capsys.readouterr().out == ""


def test_main_never_exits(capsys):
    assert fast.main(["--version"]) == 0
    assert fast.main(["no-such-command"]) == 2
    assert fast.main(["--help"]) == 0
    assert fast.main([]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "moved"),
    [
        (["--json", "list"], ["list", "--json"]),
        (["--project", "d", "--plain", "search", "x"], ["search", "--project", "d", "--plain", "x"]),
        (["--project=d", "config", "get", "k"], ["config", "get", "--project=d", "k"]),
        (["--project", "config", "list", "--", "x"], ["list", "--project", "config", "--", "x"]),
        (["--json", "--help"], ["--json", "--help"]),
        (["--project"], ["--project"]),
        (["search", "--json"], ["search", "--json"]),
        ([], []),
    ],
)
def test_common_options_may_stand_before_the_command(arguments, moved):
    assert fast.behind_the_command(arguments) == moved


def test_bytes_that_are_utf8_are_text_in_any_locale_and_others_are_told():
    assert fast.as_utf8("h\udcc3\udca9", 1) == "hé"
    assert fast.as_utf8("é文🤝", 1) == "é文🤝"
    for bad in ("\udcff", "x\ud800"):
        with pytest.raises(UsageError, match="Argument 2 is not valid UTF-8"):
            fast.as_utf8(bad, 2)


def python(code, *, env=None, stdin=None, stdout=subprocess.PIPE):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=120,
    )


MUCH = """
import sys
from openmemex.cli import boundary, fast
from openmemex.cli.terminal import Screen
def much():
    Screen().lines("line %d" % n for n in range(200_000))
    return 0
fast.main = lambda: boundary.guarded(much, [])
fast.run()
"""


def test_a_reader_that_stops_early_ends_it_quietly(tmp_path):
    script = tmp_path / "much.py"
    script.write_text(MUCH)
    for shell in (f"{sys.executable} {script} | head -1", f"{sys.executable} {script} | true"):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", shell], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")


THROUGH_TYPER = """
import sys
from openmemex.cli import fast, session
from openmemex.cli.commands import reading, sharing
def much(session):
    session.screen.lines("line %d" % n for n in range(200_000))
    return 0
sharing.show_sync_status = much
sys.argv = ["open-memex", "sync-status"]
fast.run()
"""


def test_a_reader_that_stops_early_ends_other_commands_quietly_too(tmp_path):
    script = tmp_path / "much.py"
    script.write_text(THROUGH_TYPER)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} {script} | head -1"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "line 0\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_can_not_be_written_is_a_failure_with_a_reason():
    with open("/dev/full", "wb") as full:
        done = python(MUCH, stdout=full)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[0] == "error: No space left on device."
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16"])
def test_any_encoding_of_the_terminal_takes_any_text(encoding):
    code = """
from openmemex.cli.terminal import Screen
Screen().lines(["h\\xe9 \\u6587 \\U0001f91d"])
Screen(json=True).document({"t": "h\\xe9 \\u6587 \\ud800 \\u202e"})
Screen().note("n\\u6587")
"""
    done = python(code, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr.decode(encoding).replace("\ufeff", "")) == (
        0,
        "n\\u6587\n" if encoding in ("ascii", "latin-1") else "n文\n",
    )
    text = done.stdout.decode(encoding)
    first, _, rest = text.partition("\n")
    assert first.endswith("🤝") or first.endswith("\\U0001f91d")
    if encoding != "utf-16":
        assert json.loads(rest) == {"t": "hé 文 \ufffd \u202e"}


def test_a_stream_that_is_not_there_takes_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert guarded(lambda: Screen().lines(["x"]) or 0, []) == 0
    assert guarded(raising(NotFound("x")), []) == 1


def test_a_closed_stdout_is_a_failure_not_a_crash(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    assert guarded(lambda: Screen().lines(["x"]) or 0, []) == 1


@pytest.mark.parametrize(
    ("environ", "plain"),
    [({}, False), ({"NO_COLOR": "1"}, True), ({"NO_COLOR": ""}, False), ({"TERM": "dumb"}, True)],
)
def test_what_asks_for_plain_output(environ, plain):
    assert Screen(environ=environ).plain is plain
    assert Screen(environ=environ, plain=True).plain
    assert Screen(environ=environ).style("x", "bold") == "x"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(
    "words",
    [
        ("show", "{}"),
        ("{}",),
        ("add", "x", "--type", "{}"),
        ("add", "x", "--scope", "{}"),
        ("add", "x", "--expires", "{}"),
        ("add", "x", "--{}"),
        ("add", "--file", "/nowhere/{}"),
        ("list", "--project", "/nowhere/{}"),
        ("search", "{}"),
        ("search", "--limit", "{}", "x"),
        ("config", "set", "cjkTokenizer", "{}"),
        ("config", "get", "{}"),
    ],
)
def test_a_secret_typed_in_the_wrong_place_is_not_repeated(words, as_json, capfd, home):
    token = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
    fast.main([word.replace("{}", token) for word in words] + list(as_json))
    out, err = capfd.readouterr()
    assert token[8:] not in out + err
    assert out + err
