"""The hand-written reader of search's options against the library's own: same words, same outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.cli import app, searching
from openmemex.errors import UsageError

OPTION_WORDS = ["--limit", "--scope", "--type", "--tag", "--project", "--all", "--explain", "--json"]
OPTION_WORDS += ["--verbose", "--plain", "--tag=a,b", "--limit=3", "--scope=", "--json=1", "--type=--all"]
ODD_WORDS = ["--", "-", "-h", "--help", "-x", "--lim", "--no-json", "---", "--=x", "", " ", "=", "-5", "--at"]
PLAIN_WORDS = ["deploy", "a b", "how?", '"phrase"', "3", "é", "文", "*", "a=b", "\n", "C++"]
WORDS = st.sampled_from(OPTION_WORDS + ODD_WORDS + PLAIN_WORDS) | st.text(max_size=4)


def read_by_library(arguments, monkeypatch):
    """What the full reader hands to the command; None when it hands over nothing (help, a mistake)."""
    calls = []
    monkeypatch.setattr(searching, "run", lambda call: calls.append(call) or 0)
    try:
        app.start(["search", *arguments], "open-memex")
    except UsageError:
        pass
    finally:
        monkeypatch.undo()
    return calls[0] if calls else None


@given(arguments=st.lists(WORDS, max_size=6))
def test_both_readers_agree(arguments, capsys):
    with pytest.MonkeyPatch.context() as patch:
        assert searching.parse(list(arguments)) == read_by_library(arguments, patch)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["a", "b"], searching.SearchCall(("a", "b"))),
        (["a", "--limit", "3", "b"], searching.SearchCall(("a", "b"), limit="3")),
        (["--limit=3", "--limit", "4"], searching.SearchCall(limit="4")),
        (["--tag", "a", "--tag=b"], searching.SearchCall(tags=("a", "b"))),
        (["--json", "--", "--json"], searching.SearchCall(("--json",), json=True)),
        (["--project", "--json", "x"], searching.SearchCall(("x",), project="--json")),
        (["-", "x"], searching.SearchCall(("-", "x"))),
        (["--help"], None),
        (["x", "-h"], None),
        (["--limit"], None),
        (["--json=true"], None),
        (["-x"], None),
        (["--at", "HEAD", "x"], searching.SearchCall(("x",), at="HEAD")),
        (["--as", "HEAD", "x"], None),
    ],
)
def test_what_the_words_of_a_search_mean(arguments, call):
    assert searching.parse(arguments) == call
