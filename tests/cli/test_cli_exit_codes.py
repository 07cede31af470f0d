"""Nothing that was not done ends with 0, and no success is told after a failure."""

from __future__ import annotations

import json
import re

import pytest

from openmemex.cli import fast


@pytest.fixture
def place(make_repo, monkeypatch):
    repo = make_repo()
    monkeypatch.chdir(repo)
    return repo


@pytest.fixture
def memex(capsys):
    """Run a command: exit code, stdout, stderr."""

    def run(*words):
        code = fast.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def added(memex):
    def add(*words):
        code, out, err = memex("add", *words, "--json")
        assert code == 0, err
        return json.loads(out)["id"]

    return add


def two_lines(err):
    assert len(err.splitlines()) == 2, err
    assert "Traceback" not in err
    return err


def broken_file(home, text="---\nid: [\n"):
    folder = home.data / "memories" / "personal"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV.md"
    path.write_text(text)
    return path


def test_finding_nothing_is_done(place, memex):
    assert memex("search", "zebra") == (0, "Nothing found in repo. Fewer or other words may help.\n", "")
    code, out, err = memex("list")
    assert (code, out.splitlines()[0], err) == (0, "No memories in repo.", "")


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000"])
def test_an_empty_query_is_wrong_usage(place, memex, query):
    code, out, err = memex("search", query)
    assert (code, out) == (2, "")
    assert "empty" in two_lines(err).splitlines()[0]


@pytest.mark.parametrize(
    "query",
    [
        "blue-green",
        "node@20.4",
        "apps/web.toml",
        "it's",
        "C++",
        "std::span",
        "40%",
        '"',
        "NEAR(",
        "a AND",
        "*",
    ],
)
def test_any_text_is_a_query(place, memex, added, query):
    added("blue-green rollout for node@20.4 in apps/web.toml; it's C++ and std::span; 40% done")
    code, out, err = memex("search", "--", query)
    assert (code, err) == (0, "")
    if query not in ('"', "NEAR(", "a AND", "*"):
        assert "1. blue-green rollout" in out


def test_an_unknown_id_is_a_failure(place, memex):
    for words in (["show"], ["edit", "--type", "fact"], ["forget", "--yes"], ["submit"], ["status"]):
        tail = ["archived"] if words == ["status"] else []
        code, out, err = memex(*words, "7ZZZZZZZ", *tail)
        assert (code, out) == (1, ""), words
        two_lines(err)


def test_what_is_no_id_is_wrong_usage_and_reaches_no_file(place, memex, added):
    memory_id = added("Text")
    for ref in (
        "../../../etc/hostname",
        "..\\..\\x",
        "/etc/hostname",
        memory_id + "/../B",
        memory_id + "\0",
        " " + memory_id,
        memory_id + "A",
        "abc",
        "",
    ):
        code, out, err = memex("show", ref)
        assert (code, out) == (2, ""), ref
        two_lines(err)
    for ref in (memory_id, memory_id.lower(), memory_id[:12], memory_id[-4:], memory_id[-6:].lower()):
        code, out, _ = memex("show", ref)
        assert code == 0
        assert out.startswith(memory_id)


def test_an_id_that_fits_two_asks_for_more(place, memex, added):
    one, two = added("First text here"), added("Second words there")
    common = one[:5]  # ids made in the same nine hours begin alike
    assert two.startswith(common)
    for words in (["show"], ["forget", "--yes"], ["submit"], ["edit", "--type", "fact"]):
        code, out, err = memex(*words, common)
        assert (code, out) == (3, "")
        assert one in err and two in err


def test_forgetting_twice_fails_the_second_time(place, memex, added):
    memory_id = added("Text")
    assert memex("forget", memory_id, "--yes")[0] == 0
    code, out, err = memex("forget", memory_id, "--yes")
    assert (code, out) == (1, "")
    two_lines(err)


def test_forgetting_needs_yes_where_nobody_can_answer_and_shows_what_would_go(place, home, memex, added):
    memory_id = added("Words [red] to forget")
    code, out, err = memex("forget", memory_id)
    assert (code, out) == (1, "")
    assert "Words [red] to forget" in err and memory_id in err and "--yes" in err.splitlines()[-1]
    assert list(home.data.rglob(f"{memory_id}.md"))


def test_forgetting_in_part_names_what_is_left(place, home, memex, added):
    one, two = added("First text here"), added("Second words there")
    assert memex("submit", two, "--branch", "other")[0] == 0
    code, out, err = memex("forget", one, two, "--yes")
    assert code == 4
    assert f"Deleted {one}" in out and two not in out
    assert two in err and "1 of 2 done." in err
    code, out, err = memex("forget", two, "--yes")
    assert (code, out) == (1, "")


def test_reindex_names_what_it_could_not_read(place, home, memex, added):
    added("Text", "--scope", "personal")
    path = broken_file(home)
    code, out, _ = memex("reindex")
    assert code == 4
    assert out.splitlines()[0] == "Made the index again from 1 of 2 files; left out:"
    assert path.name in out
    assert json.loads(memex("reindex", "--json")[1])["quarantined"][0]["path"].endswith(path.name)
    path.unlink()
    assert memex("reindex") == (0, "Made the index again from 1 memory.\n", "")


def test_a_file_that_can_not_be_read_stops_nothing_and_is_told(place, home, memex, added):
    added("Text about zebras")
    broken_file(home)
    code, out, err = memex("search", "zebras")
    assert code == 0
    assert "zebras" in out
    assert err == "note: 1 file was left out as not readable: `open-memex doctor` says why\n"
    code, out, _ = memex("doctor")
    assert code == 1
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV.md" in out


def test_the_same_text_again_is_done_and_said(place, memex, added):
    memory_id = added("Deploys need the VPN")
    code, out, err = memex("add", "deploys need  the VPN")
    assert (code, out, err) == (0, f"Nothing was written: {memory_id} says the same already.\n", "")


def test_an_agent_that_repeats_a_person_is_refused(place, memex, added):
    memory_id = added("We deploy on Mondays from the main branch with the VPN on", "--source", "keyword")
    words = ("We deploy on Mondays from the main branch, and the VPN is on then", "--source", "tool")
    code, out, err = memex("add", *words)
    assert (code, out) == (1, "")
    assert memory_id in two_lines(err)
    code, out, err = memex("add", *words, "--json")
    assert code == 1
    assert json.loads(out)["action"] == "refused"


def test_personal_memories_are_never_submitted(place, memex, added, git):
    memory_id = added("Mine alone", "--scope", "personal")
    code, out, err = memex("submit", memory_id)
    assert (code, out) == (1, "")
    two_lines(err)
    assert git("log", "--oneline", cwd=place).count("\n") == 0


def test_without_git_or_a_remote_it_is_said_what_is_missing(place, memex, added, tmp_path, monkeypatch):
    code, out, err = memex("pull")
    assert (code, out) == (1, "")
    two_lines(err)
    monkeypatch.chdir(tmp_path)
    memory_id = added("Text in a plain folder")
    for words in (["pull"], ["submit", memory_id]):
        code, out, err = memex(*words)
        assert (code, out) == (1, ""), words
        assert "git" in two_lines(err)
    assert memex("status")[0] == 0


def test_a_home_folder_is_no_project(home, memex, monkeypatch):
    monkeypatch.chdir(home)
    code, out, err = memex("add", "Text", "--scope", "project")
    assert (code, out) == (1, "")
    assert "--project" in two_lines(err)


def test_a_retracted_memory_stays_so(place, memex, added):
    memory_id = added("Text")
    assert memex("status", memory_id, "retracted")[0] == 0
    code, out, err = memex("status", memory_id, "active")
    assert (code, out) == (1, "")
    two_lines(err)
    assert memex("status", added("Other words"), "superseded")[0] == 1
    assert memex("status", memory_id, "asleep")[0] == 2
    assert memex("status", memory_id)[0] == 2


def test_scope_does_not_change_by_editing(place, memex, added):
    memory_id = added("Text")
    for words in (["edit"], ["supersede"]):
        tail = ["New text"] if words == ["supersede"] else []
        code, out, err = memex(*words, memory_id, *tail, "--scope", "personal")
        assert (code, out) == (1, "")
        two_lines(err)
    assert memex("edit", memory_id, "--scope", "project", "--type", "howto")[0] == 0


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["nothing"], "usage: No such command 'nothing'."),
        (["config"], "usage: Missing command."),
        (["show"], "usage: Missing argument 'ID'."),
        (["list", "--limit"], "usage: Option '--limit' requires an argument."),
        (["search", "x", "--limit", "0"], "usage: --limit can't be '0'."),
        (["search", "x", "--limit", "1" * 30], None),
        (["list", "--nope"], None),
        (["search", "-x"], None),
        (["add", "x", "--type", "poem"], "usage: --type can't be 'poem'."),
        (["add", "x", "--scope", "team"], "usage: --scope team is reserved for later."),
        (["add", "x", "--tag"], "usage: Option '--tag' requires an argument."),
        (["submit", "7ZZZ", "--pull"], None),
        (["submit", "7ZZZ", "--onto", "HEAD"], None),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_wrong_usage_is_told_in_two_plain_lines(place, memex, words, first):
    code, out, err = memex(*words)
    assert (code, out) == (2, "")
    line, hint = two_lines(err).splitlines()
    assert line.startswith("usage: ") and hint
    assert first is None or line == first
    assert not re.search("[\u2500-\u257f]", err)


def test_hand_written_ids_that_lead_out_are_not_followed(place, home, memex, tmp_path):
    folder = place / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    secret = tmp_path / "secret.md"
    secret.write_text("---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\n---\nsecret words\n")
    (folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV.md").symlink_to(secret)
    code, out, _ = memex("list", "--all")
    assert code == 0
    assert "secret words" not in out
    assert memex("show", "01ARZ3NDEKTSV4RRFFQ69G5FAV")[0] == 1
