"""A token in every place that a text can come in by: none of them lets it out again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

TOKEN = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
REST = TOKEN[4:]


def files_that_hold(text: str, *roots: Path) -> list[str]:
    raw = text.encode()
    return [
        str(path) for root in roots for path in root.rglob("*") if path.is_file() and raw in path.read_bytes()
    ]


def objects_and_refs(repo: Path) -> str:
    command = "git cat-file --batch-all-objects --batch; git for-each-ref; git reflog --all; cat .git/HEAD"
    done = subprocess.run(command, shell=True, cwd=repo, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def test_a_token_in_any_field_is_in_no_file_no_object_and_no_output(
    run_cli, om, home, make_repo, git, tmp_path
) -> None:
    repo = make_repo(origin=f"https://x-access-token:{TOKEN}@127.0.0.1:9/acme/widget.git")
    note = tmp_path / "note.md"
    note.write_text(f"---\nx_key: {TOKEN}\ntags: [t-{TOKEN}]\naliases: [a {TOKEN}]\n---\nten\n")
    base = om("add", "the kettle is red", cwd=repo)["id"]
    other = om("add", "the teapot is green", cwd=repo)["id"]
    said = ""
    for words in (
        ["add", "one", "--tag", TOKEN],
        ["add", "two", "--alias", f"x {TOKEN}"],
        ["add", "three", "--ref", f"https://u:{TOKEN}@h.test/x"],
        ["add", "four", "--path", f"src/{TOKEN}/**"],
        ["add", f"five {TOKEN} and on"],
        ["add", f"eight\n\n```\n{TOKEN}\n```"],
        ["add", "--file", str(note)],
        ["search", TOKEN],
        ["search", f"kettle {TOKEN}", "--verbose"],
        ["edit", other, "--tag", TOKEN],
        ["edit", other, "--body", f"令牌是{TOKEN}请勿外传"],
        ["edit", other, "--alias", TOKEN],
        ["supersede", base, f"the kettle is {TOKEN}"],
        ["submit", other, "-m", f"about {TOKEN}\n\nand {TOKEN}"],
        ["list", "--all", "--json"],
        ["sync-status", "--verbose"],
        ["where"],
        ["scopes"],
        ["doctor"],
        ["pull", "--verbose"],
    ):
        done = run_cli(*words, cwd=repo, env={"OPEN_MEMEX_DEBUG": "1"})
        said += done.stdout + done.stderr
    assert REST not in said
    assert "x-access-token" not in said
    assert said.count("masked") >= 8
    assert files_that_hold(REST, home.data, repo / ".ai") == []
    assert REST not in objects_and_refs(repo)
    assert git("log", "-1", "--format=%s", cwd=repo).startswith("about ghp_x")


def test_a_branch_is_not_named_by_a_secret(run_cli, om, home, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    for name in (TOKEN, f"topic/{TOKEN}", f"a-{TOKEN}-b"):
        done = run_cli("submit", memory, "--branch", name, cwd=repo)
        assert done.returncode == 2
        assert REST not in done.stdout + done.stderr
    assert REST not in objects_and_refs(repo)
    assert files_that_hold(REST, home.data) == []
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1


@pytest.mark.parametrize("how", ["git", "setting"])
def test_a_person_whose_name_holds_a_secret_is_masked_in_reviews_and_checks(
    how, run_cli, om, home, make_repo, git
) -> None:
    repo = make_repo()
    if how == "git":
        git("config", "user.name", f"Ada {TOKEN}", cwd=repo)
    else:
        home.config.parent.mkdir(parents=True)
        home.config.write_text(f'{{"identity": "Ada {TOKEN}"}}')
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    text = (repo / ".ai" / "open-memex" / f"{memory}.md").read_text()
    assert "Ada ghp_xxx" in text
    assert REST not in text
    assert files_that_hold(REST, home.data) == []
    assert REST not in run_cli("doctor", cwd=repo).stdout


@pytest.mark.parametrize("text", [TOKEN, f"a/{TOKEN}", f"{TOKEN}.md"])
def test_a_secret_typed_for_an_id_is_not_repeated(text, run_cli, make_repo) -> None:
    repo = make_repo()
    done = run_cli("show", text, cwd=repo)
    assert done.returncode == 2
    assert REST not in done.stderr


def test_a_private_part_of_any_shape_reaches_no_file(run_cli, home, make_repo) -> None:
    repo = make_repo()
    word = "n0tR3al9pw"
    kept = {
        f"keepa <private>{word}": "keepa",
        f"<private>a <private>b</private> {word}</private> keepb": "keepb",
        f"<private >{word}</private >keepc": "keepc",
        f"<PRIVATE>{word}</PRIVATE> keepd": "keepd",
        f"<private>{word}</private> keepe <private>{word}</private>": "keepe",
        f"```\n<private>{word}</private>\n```\nkeepf": "keepf",
        f"keepg <private/>{word}": "keepg",
        f"keeph</private> <private>{word}": "keeph",
        f"<private reason='x'>\n{word}\n</private>\nkeepi": "keepi",
        f"keepj <private {word}</private>": "keepj",
        f"keepk <private>{word}</private": "keepk",
        f"<!-- <private>{word}</private> --> keepl": "keepl",
    }
    for text in kept:
        done = run_cli("add", "-", cwd=repo, stdin=text)
        assert done.returncode == 0, (text, done.stderr)
        assert word not in done.stdout + done.stderr
    for text in (
        f"<private>{word}</private>",
        f" <private>{word}\n",
        f"<private>a</private>\n<private>{word}",
    ):
        done = run_cli("add", "-", cwd=repo, stdin=text)
        assert done.returncode == 1
        assert "private" in done.stderr
    assert files_that_hold(word, home.data, repo) == []
    stored = "".join(path.read_text() for path in home.data.rglob("*.md"))
    assert [word for word in kept.values() if word not in stored] == []
    assert len(list(home.data.rglob("*.md"))) == len(kept)
