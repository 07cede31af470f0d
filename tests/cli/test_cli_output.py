"""What people read, compared whole: numbers across sections, true totals, plain words, no text as markup."""

from __future__ import annotations

import json
import re

import pytest

from openmemex.cli import fast
from openmemex.cli.plain import age, age_of_days, columns, cut

MARKUP = "use list[str] in [slug].tsx, end with [/items], see [docs](u), [red]x, :warning: a[0] [bold"


@pytest.fixture
def place(make_repo, monkeypatch):
    repo = make_repo()
    monkeypatch.chdir(repo)
    return repo


@pytest.fixture
def memex(capsys):
    """Run a command that must succeed: its stdout and stderr."""

    def run(*words, code=0):
        got = fast.main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert got == code, err
        return out, err

    return run


@pytest.fixture
def added(memex):
    def add(*words):
        return json.loads(memex("add", *words, "--json")[0])["id"]

    return add


def test_a_list_numbers_its_rows_through_all_sections_and_tells_the_total(place, memex, added):
    mine = added("I like short messages", "--scope", "personal")
    one = added("Deploys need the VPN", "--type", "gotcha", "--tag", "deploy,vpn")
    two = added("Reviews are done before nine", "--importance", "high", "--role", "instruction")
    memex("submit", one)
    out, err = memex("list")
    assert (out, err) == (
        f"""\
On this computer, for you alone:
1. I like short messages
   {mine}  fact, just now

Waiting to be shared:
2. Reviews are done before nine
   {two}  fact (instruction), just now, high importance

In the repository, shared with the team:
3. Deploys need the VPN #deploy #vpn
   {one}  gotcha, just now

3 memories in repo.
""",
        "",
    )
    out, err = memex("list", "--limit", "2")
    assert out.splitlines()[-1] == "The newest 2 of 3 memories in repo; 1 not shown: --limit 3"
    assert re.findall(r"^(\d+)\. ", out, re.M) == ["1", "2"]
    out, err = memex("list", "--tag", "vpn")
    assert out.splitlines()[-1] == "1 memory in repo that fit."
    out, err = memex("list", "--state", "archived")
    assert out.splitlines()[0] == "No memories in repo that fit."


def test_the_default_limits_are_twenty_and_ten(place, memex, added):
    for number in range(23):
        added(f"Rule number {number}: the {'abcdefghijklmnopqrstuvw'[number] * 4} goes first")
    out, _ = memex("list")
    assert len(re.findall(r"^\d+\. ", out, re.M)) == 20
    assert out.splitlines()[-1] == "The newest 20 of 23 memories in repo; 3 not shown: --limit 23"
    out, _ = memex("search", "rule")
    assert len(re.findall(r"^\d+\. ", out, re.M)) == 10
    assert out.splitlines()[-1] == "10 of 23 memories found in repo; 13 not shown: --limit 23"
    shown = json.loads(memex("list", "--json")[0])
    assert (shown["shown"], shown["total"], len(shown["items"])) == (20, 23, 20)


def test_a_search_shows_its_hits_and_with_explain_how_they_came(place, memex, added):
    memory_id = added("Deploys need the VPN", "--type", "gotcha", "--tag", "deploy")
    out, err = memex("search", "vpn", "deploy")
    assert (out, err) == (
        f"1. Deploys need the VPN #deploy\n   {memory_id}  gotcha, waiting to be shared, today\n"
        "1 memory found in repo.\n",
        "",
    )
    old = added("The VPN is slow")
    memex("status", old, "archived")
    out, _ = memex("search", "vpn", "--explain")
    assert re.search(r"^   score \d+\.\d{4}: text \d", out, re.M)
    assert re.search(r"^Searched for: .*vpn", out, re.M)
    assert "Left out: 1 archived. --all shows them." in out
    out, _ = memex("search", "vpn", "--all")
    assert "archived" in out and "2 memories found in repo." in out


def test_what_add_says_names_the_next_step(place, memex, home):
    out, err = memex("add", "Deploys need the VPN")
    memory_id = re.search("[0-9A-Z]{26}", out)[0]
    (file,) = home.data.rglob(f"{memory_id}.md")
    path = file.relative_to(home.data)
    assert (out, err) == (
        f"Saved {memory_id}\n  waiting to be shared, in repo: {path}\n"
        f"  share it with the team: open-memex submit {memory_id}\n",
        "",
    )
    out, _ = memex("add", "Mine", "--scope", "personal")
    assert re.fullmatch(r"Saved (\w{26})\n  on this computer, for you alone: memories/personal/\1\.md\n", out)


def test_masking_is_told_and_the_secret_is_in_no_output(place, memex, home):
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    out, err = memex("add", f"the token is {secret} here", "--tag", secret)
    assert "masked" in err
    for text in (out, err, memex("list")[0], memex("search", "token")[0]):
        assert secret not in text and secret.lower() not in text
    out, err = memex("show", "no " + secret, code=2)
    for file in home.data.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes()


def test_a_text_is_never_read_as_markup(place, memex, added):
    memory_id = added(MARKUP, "--tag", "[wip]")
    assert f"1. {MARKUP} #[wip]\n" in memex("list")[0]
    assert f"1. {MARKUP} #[wip]\n" in memex("search", "slug tsx items")[0]
    assert memex("show", memory_id)[0].endswith(f"\n\n{MARKUP}\n")
    assert MARKUP in memex("status")[0]
    assert MARKUP in memex("forget", memory_id, code=1)[1]
    assert MARKUP[:30] in memex("list", "--type", MARKUP, code=2)[1]


def test_control_and_bidirectional_characters_are_shown_escaped(place, memex, added):
    text = "clear \x1b[2J title \x1b]0;x\x07 back\u202edrow zero\u200bwidth\r\nline two\tend"
    memory_id = added(text)
    shown = "clear \\x1b[2J title \\x1b]0;x\\x07 back\\u202edrow zero\\u200bwidth"
    assert shown in memex("list")[0]
    assert shown in memex("search", "clear title")[0]
    out = memex("show", memory_id)[0]
    assert out.endswith(f"{shown}\nline two\tend\n")
    document = memex("show", memory_id, "--json")[0]
    assert json.loads(document)["content"].strip().replace("\r", "") == text.replace("\r", "")
    assert not set(document) & set("\x1b\x07\u202e\u200b")


def test_show_tells_everything_known(place, memex, added):
    memory_id = added(
        "Deploys need the VPN\n\nLonger text.",
        "--type=howto",
        "--importance=low",
        "--tag=a",
        "--alias=ship it",
        "--ref=docs/deploy.md",
        "--path=src/**",
        "--expires=2999-01-01",
    )
    out, err = memex("show", memory_id)
    when = re.search(r"\((\S+Z)\)", out)[1]
    path = json.loads(memex("show", memory_id, "--json")[0])["path"]
    assert (out, err) == (
        f"""\
{memory_id}
type        howto
where       waiting to be shared: {path}
scope       project (repo)
state       active, draft
importance  low
changed     just now ({when})
made        {when}, by user
tags        a
aliases     ship it
about       src/**
see         docs/deploy.md
expires     2999-01-01T23:59:59Z

Deploys need the VPN

Longer text.
""",
        "",
    )


def test_superseding_shows_the_newest_only_and_says_so_with_all(place, memex, added):
    old = added("We deploy on Mondays")
    out, _ = memex("supersede", old, "We deploy on Tuesdays")
    new = re.search("[0-9A-Z]{26}", out)[0]
    assert new != old
    assert old not in memex("list")[0]
    assert f"superseded by {new}" in memex("list", "--all")[0]
    assert f"replaced by  {new}" in memex("show", old)[0]
    assert re.search(rf"^replaces +{old}$", memex("show", new)[0], re.M)


def test_status_without_arguments_says_what_waits(place, memex, added):
    one = added("Deploys need the VPN")
    out, err = memex("status")
    assert (out, err) == (
        f"""\
Project repo, in {place}
Shared with the team: no memories yet

Waiting to be shared: 1
1. Deploys need the VPN
   {one}  fact, waiting to be shared, just now
Share with the team: open-memex submit ID...
""",
        "",
    )
    assert memex("sync-status")[0] == out


def test_submit_says_what_it_committed_and_what_comes_next(place, memex, added, git, make_remote):
    make_remote(place)
    one = added("Deploys need the VPN")
    out, _ = memex("submit", one, "--dry-run")
    assert out.startswith(
        f"Would commit 1 file to main; nothing was changed:\n  1. .ai/open-memex/{one}.md\nNext:\n"
    )
    assert git("log", "--format=%s", cwd=place).count("\n") == 0
    out, _ = memex("submit", one, "-m", "Learned today")
    head = git("rev-parse", "HEAD", cwd=place)
    assert out.startswith(
        f"Committed 1 file to main ({head[:10]}):\n  1. .ai/open-memex/{one}.md\nNext:\n  git push"
    )
    assert git("log", "-1", "--format=%s", cwd=place) == "Learned today"


def test_config_keeps_the_file_and_says_what_holds(place, memex, home):
    home.config.parent.mkdir(parents=True)
    home.config.write_text('{\n  // mine\n  "logLevel": "info", // quiet\n}\n')
    assert memex("config", "get", "logLevel") == ("info\n", "")
    out, _ = memex("config", "set", "memoryDir", ".ai/memory")
    assert out == f"memoryDir is now .ai/memory, in {home.config}\n"
    assert "// mine" in home.config.read_text() and "// quiet" in home.config.read_text()
    out, _ = memex("config", "list")
    assert re.search(r"^memoryDir +\.ai/memory +\* ", out, re.M)
    out, _ = memex("config", "unset", "memoryDir")
    assert out == f"memoryDir is no longer in {home.config}: its default holds\n"
    assert memex("config", "get", "memoryDir")[0] == ".ai/open-memex\n"
    before = home.config.read_bytes()
    assert memex("config", "unset", "memoryDir")[0].startswith("Nothing changed")
    assert home.config.read_bytes() == before


def test_verbose_says_what_was_used(place, home, memex, added):
    added("Deploys need the VPN")
    _, err = memex("list", "--verbose")
    assert f"data: {home.data}\nproject: repo at {place} (by repository)\n" in err
    assert "index: " in err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (-30, "just now"),
        (-3600, "in the future"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (86_400, "1 day ago"),
        (13 * 86_400, "13 days ago"),
        (14 * 86_400, "2 weeks ago"),
        (60 * 86_400, "2 months ago"),
        (729 * 86_400, "24 months ago"),
        (730 * 86_400, "2 years ago"),
    ],
)
def test_ages_read_as_people_say_them(seconds, words):
    assert age(seconds) == words


def test_ages_in_days():
    assert [age_of_days(days) for days in (-1, 0, 1, 3)] == [
        "in the future",
        "today",
        "1 day ago",
        "3 days ago",
    ]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("a longer text", 10, "a longe..."),
        ("数据库连接池", 12, "数据库连接池"),
        ("数据库连接池", 11, "数据库连..."),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
    ],
)
def test_texts_are_cut_by_the_columns_that_they_take(text, width, shown):
    assert cut(text, width) == shown
    assert columns(cut(text, width)) <= width


def test_an_expired_memory_is_left_out_and_can_be_shown(place, memex, added):
    added("Freeze until Friday", "--expires", "2000-01-01")
    assert memex("list")[0].startswith("No memories in repo.")
    assert "Freeze until Friday" in memex("list", "--all")[0]
