"""Real processes in locales that can't hold the texts that go through them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def memex(make_repo):
    """Run a real process with the bytes of its arguments; gives exit code, stdout and stderr as bytes."""
    repo = make_repo()

    def run(*words, env=None, cwd=None):
        done = subprocess.run(
            [sys.executable, "-m", "openmemex", *words],
            cwd=cwd or repo,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("env", [C, {"PYTHONIOENCODING": "ascii"}, {}], ids=["C", "ascii", "utf-8"])
def test_texts_of_any_script_go_in_and_out(memex, env):
    text = "Café 数据库 🤝"
    assert memex("add", text.encode(), env=env)[0] == 0
    code, out, err = memex("search", "数据库".encode(), "--json", env=env)
    assert (code, err) == (0, b"")
    document = json.loads(out.decode("utf-8"))
    assert document["query"] == "数据库"
    assert [hit["summary"] for hit in document["hits"]] == [text]
    code, out, err = memex("list", env=env)
    assert (code, err) == (0, b"")
    shown = "Caf\\xe9 \\u6570\\u636e\\u5e93 \\U0001f91d" if env else text
    assert f"1. {shown}\n" in out.decode("utf-8").replace("\r\n", "\n") or f"1. {text}\n" in out.decode(
        "utf-8"
    )


def test_bytes_that_are_no_text_are_told(memex):
    for env in (C, {}):
        for words in (("search", b"caf\xe9"), ("add", b"caf\xe9"), ("show", b"\xff")):
            code, out, err = memex(*words, env=env)
            assert (code, out) == (2, b"")
            assert err.startswith(b"usage: Argument 2 is not valid UTF-8 text.\n")
            assert len(err.splitlines()) == 2


@pytest.mark.parametrize("env", [C, {}], ids=["C", "utf-8"])
def test_files_and_folders_may_have_any_name(memex, tmp_path, env):
    note = tmp_path / "nötiz.md"
    note.write_text("From a file")
    project = tmp_path / "проект"
    project.mkdir()
    code, _, err = memex("add", "--file", os.fsencode(note), "--scope", "personal", env=env)
    assert code == 0, err
    code, out, err = memex("list", "--json", "--project", os.fsencode(project), env=env)
    assert code == 0, err
    assert [item["summary"] for item in json.loads(out)["items"]] == ["From a file"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_folder_whose_name_is_no_text_works(memex, tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    for words in (["where"], ["where", "--json"], ["list"], ["search", "text"], ["status"]):
        code, out, err = memex(*words, cwd=folder)
        assert code == 0, err
        (out + err).decode("utf-8")
