"""What a hook or a server said is passed on line by line, without what a terminal must not get."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from openmemex.cli.boundary import guarded
from openmemex.errors import Refused
from openmemex.git.words import lines_of


def test_lines_stay_lines_and_colours_and_progress_bars_go():
    text = "\n\x1b[31mred\x1b[0m words  \r\n10%\r20%\r100% done\n\n  indented\n\n"
    assert lines_of(text) == ("red words", "100% done", "", "  indented")


def test_credentials_go():
    password = "-".join(["hunter", "2"])
    assert lines_of(f"cloning https://ada:{password}@example.org/x") == ("cloning https://example.org/x",)


def test_the_end_of_a_long_text_is_kept_and_the_rest_counted():
    lines = lines_of("\n".join(f"line {n}" for n in range(500)))
    assert lines[0] == "(441 lines before this are left out)" and lines[1] == "line 441"
    assert lines[-1] == "line 499" and len(lines) == 60
    assert lines_of("x" * 5000)[0].endswith("… (5000 characters)")


@given(st.text(max_size=3000))
def test_any_text_is_bounded(text):
    lines = lines_of(text)
    assert len(lines) <= 60 and all(len(line) < 450 and "\n" not in line for line in lines)
    assert not lines or (lines[0] and lines[-1])


def test_an_error_shows_them_below_its_message_with_control_characters_escaped(capsys, tmp_path: Path):
    def refuse() -> int:
        raise Refused("The hook said no", "Do as it says.", ("first\x07", "", "  second"))

    assert guarded(refuse, []) == 1
    assert capsys.readouterr().err.split("\n") == [
        "error: The hook said no",
        "  | first\\x07",
        "  |",
        "  |   second",
        "Do as it says.",
        "",
    ]
    assert guarded(refuse, ["--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["words"] == ["first\x07", "", "  second"]


def test_a_secret_in_them_is_masked_also_over_several_lines(capsys):
    token = "ghp_" + "a1B2" * 9

    def refuse() -> int:
        raise Refused("No", "x", ("token:", token, "end"))

    assert guarded(refuse, ["--json"]) == 1
    out, err = capsys.readouterr()
    assert token not in out + err and "end" in json.loads(out)["error"]["words"]
