"""Front matter as people and other tools write it, read and changed through the real command."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

FOLDER = ".ai/open-memex"
A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B = "01K6AB3XZQ7WVD9J1M2N4P5Q6B"
C = "01K6AB3XZQ7WVD9J1M2N4P5Q6C"
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
TEXT = f"""---
id: {A}
schema_version: 2
scope: project
type: decision
role: knowledge
importance: normal
status: active
tags: [auth, oauth]
source: user
created_at: "2026-09-26T12:00:00Z"
updated_at: "2026-09-26T12:00:00Z"
supersedes: null
superseded_by: null
review_state: approved
review_history: []
---
Use OAuth for the admin panel.
"""


def put(repo: Path, memory: str, raw: str | bytes) -> Path:
    folder = repo / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{memory}.md"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return path


def numbered(number: int) -> str:
    return A[:-2] + _LETTERS[number // 32] + _LETTERS[number % 32]


def front(path: Path) -> dict:
    return yaml.safe_load(path.read_text().split("\n---\n")[0].removeprefix("---\n"))


_ODD = [
    "deploy: use canary",
    "*bold* start",
    "@team",
    "#17 fix",
    "[[link]]x",
    r"`C:\apps\x`",
    "- dash",
    "%d",
    "!note",
    "{a}",
    'it\'s "q"',
    r"C:\temp",
    "a #b",
    "=",
    "null",
    "?",
    "|",
    "> x",
    "~",
    "true",
    "0x1f",
    "12e03",
    "---",
    "...",
    "&anchor",
    ": x",
    "x:",
    "<<",
    "!!str x",
    "-",
    "1:30",
    "2026-01-01",
    "\\",
    "部署: 方案 🚀",
]


def test_odd_texts_read_back_equal_in_any_yaml_parser(om, home, make_repo) -> None:
    repo = make_repo()
    fours = [_ODD[at : at + 4] for at in range(0, len(_ODD), 4)]
    for number, texts in enumerate(fours):
        options = [word for text in texts for word in ("--alias", text)]
        added = om("add", f"memory number {number} of odd texts", *options, cwd=repo)
        path = home.data / added["path"]
        assert front(path)["aliases"] == texts
        assert yaml.load(path.read_text().split("\n---\n")[0][4:], yaml.BaseLoader)["aliases"] == texts


@pytest.mark.parametrize("name", ["deploy: use canary", "#17 fix", "null", "key:\nvalue", "end "])
def test_a_project_of_any_name_is_named_so_in_its_memories(name, om, home, make_repo) -> None:
    repo = make_repo(name)
    added = om("add", "hello there", cwd=repo)
    assert front(home.data / added["path"])["project_name"] == name


def test_what_can_not_be_read_is_named_and_left_and_holds_back_nothing_else(om, run_cli, make_repo) -> None:
    repo = make_repo()
    put(repo, A, TEXT)
    put(repo, C, TEXT.replace(A, C).replace("OAuth", "SAML"))
    lines = [
        "project_name: deploy: use canary",
        "review_note: see C: drive: later",
        "tags: [a, b",
        'aliases: "open',
        "project_name: @team",
        "project_name: *bold* start",
        "project_name: [[link]]x",
        "review_note: |bad",
        "key: 'it's'",
        "type: fact\ntype: todo",
        "x: !!python/object/apply:os.getcwd []",
        "just text",
    ]
    texts = [f"---\nid: {{id}}\n{line}\n---\nbody zinnia\n" for line in lines]
    texts += [
        "zinnia\n\n---\n\nid: {id}\n\n---\nend\n",
        "---\nid: {id}\nstatus: active\nzinnia, never closed\n",
        "# Zinnia\n---\nid: {id}\n---\nbody\n",
        "----\nid: {id}\n----\nzinnia\n",
        "",
    ]
    files = {}
    for number, text in enumerate(texts):
        memory = numbered(number)
        files[memory] = put(repo, memory, text.replace("{id}", memory))
    before = {memory: path.read_bytes() for memory, path in files.items()}
    done = run_cli("reindex", cwd=repo)
    assert done.returncode == 4
    assert {hit["id"] for hit in om("search", "admin panel", cwd=repo)["hits"]} == {A, C}
    assert om("search", "zinnia", cwd=repo)["total"] == 0
    named = {one["path"]: one for one in om("sync-status", cwd=repo)["quarantined"]}
    assert set(named) == {f"{FOLDER}/{memory}.md" for memory in files}
    assert all(one["line"] > 0 and one["reason"] for one in named.values())
    checks = om("doctor", cwd=repo, code=1)["checks"]
    told = " ".join(check["text"] for check in checks if not check["ok"])
    assert [memory for memory in files if f"{memory}.md" not in told] == []
    bad = numbered(1)
    for words in (
        ["supersede", bad, "a new text"],
        ["edit", bad, "--importance", "high"],
        ["forget", bad, "--yes"],
    ):
        done = run_cli(*words, cwd=repo)
        assert done.returncode == 1
        assert f"{bad}.md" in done.stderr
        assert "mapping values" in done.stderr
    assert {memory: path.read_bytes() for memory, path in files.items()} == before


_WORDS = [
    "no",
    "on",
    "3.10",
    "2026-09-26",
    "0123",
    "1:30",
    "null",
    "1_000",
    "yes",
    "1e3",
    "0o17",
    ".5",
    "12e03",
    "~",
]


def test_tags_that_look_like_something_else_stay_text_through_list_search_and_edit(
    om, home, make_repo, git
) -> None:
    repo = make_repo()
    words = _WORDS[:-1]
    path = put(repo, A, TEXT.replace("[auth, oauth]", f"[{', '.join(words)}]"))
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "memory", cwd=repo)
    assert om("show", A, cwd=repo)["tags"] == words
    for tag in words[:7]:
        assert om("list", "--tag", tag, cwd=repo)["total"] == 1, tag
    for tag in ("no", "3.10", "0123", "1_000"):
        assert om("search", tag, cwd=repo)["total"] == 1, tag
    om("edit", A, "--importance", "high", cwd=repo)
    assert git("diff", "--numstat", cwd=repo).split()[:2] == ["2", "2"]
    assert f"tags: [{', '.join(words)}]\n" in path.read_text()
    added = om("add", "a new one", *[word for tag in _WORDS for word in ("--tag", tag)], cwd=repo)
    assert front(home.data / added["path"])["tags"] == _WORDS


def test_one_changed_field_is_two_lines_whatever_the_file_looks_like(om, make_repo, git) -> None:
    repo = make_repo()
    git("config", "core.autocrlf", "false", cwd=repo)
    rich = TEXT.replace(
        "source: user\n",
        'source: user\nx_team: "платформа"\n# keep me\naliases: ["' + "a" * 130 + '", "部署方案 🚀"]\n',
    ).replace("Use OAuth for the admin panel.\n", "\n\n    indented code\n\nend\n\n\n")
    looks = [
        rich.encode(),
        rich.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + rich.encode(),
        b"\xef\xbb\xbf" + rich.replace("\n", "\r\n").encode(),
        rich.replace("importance: normal", 'importance: "normal"   # for now').encode(),
        rich.replace("importance: normal", "\nimportance:    'normal'   \n").encode(),
        rich.replace("tags: [auth, oauth]", "tags:\n  - auth   # one\n  - oauth").encode(),
        rich.replace(
            "x_team: ", "review_note: >-\n  a\n  ---\n\n  c\nx_a: &q {b: 1}\nx_b: *q\nx_team: "
        ).encode(),
        rich.replace("review_history: []\n---", "review_history: []\n...").encode(),
        rich.replace("---\n", "---  \n").encode(),
        rich.replace("\n\n\n    indented", "\n---\nstatus: retracted\n---\n    indented").encode(),
        rich.encode().rstrip(b"\n"),
    ]
    paths = [
        put(repo, numbered(n), raw.replace(A.encode(), numbered(n).encode())) for n, raw in enumerate(looks)
    ]
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "memories", cwd=repo)
    for number, path in enumerate(paths):
        before = path.read_bytes()
        if number < 4:
            assert om("edit", numbered(number), "--importance", "normal", cwd=repo)["action"] == "unchanged"
            assert path.read_bytes() == before
        om("edit", numbered(number), "--importance", "high", cwd=repo)
        shown = om("show", numbered(number), cwd=repo)
        assert (shown["importance"], shown["status"], shown["tags"]) == ("high", "active", ["auth", "oauth"])
        after = path.read_bytes()
        assert after.count(b"importance:") == 1
        assert b"\\u" not in after
        assert (b"\r\n" in before) == (b"\r\n" in after)
        if b"\r\n" in before:
            assert after.count(b"\n") == after.count(b"\r\n")
    changed = {line.split()[2]: line.split()[:2] for line in git("diff", "--numstat", cwd=repo).splitlines()}
    assert changed == {f"{FOLDER}/{numbered(n)}.md": ["2", "2"] for n in range(len(looks))}


def test_dashes_in_values_and_bodies_end_nothing(om, make_repo) -> None:
    repo = make_repo()
    body = "Use OAuth for the admin panel.\n"
    looks = [
        (TEXT.replace("source: user", 'source: user\naliases: ["v1---v2", "---", "--- x"]'), body),
        (TEXT.replace("source: user", "source: user\nreview_note: |\n  one\n  ---\n  three"), body),
        (TEXT.replace("source: user", 'source: user\nreview_note: "one\n  ---\n  three"'), body),
        (TEXT.replace("source: user", "source: user\n# --- a comment\nx_key: ---v"), body),
        (TEXT.replace("---\n", "---\t \n"), body),
    ]
    for text in (
        "intro\n\n---\n\nstatus: retracted\ntags: [evil]\n",
        "---\nstatus: retracted\n---\nmore\n",
        "----\n...\n+++\n",
        "```yaml\n---\nstatus: retracted\n---\n```\n",
    ):
        looks.append((TEXT.replace(body, text), text))
    for number, (text, _) in enumerate(looks):
        put(repo, numbered(number), text.replace(A, numbered(number)))
    for number, (_, content) in enumerate(looks):
        shown = om("show", numbered(number), cwd=repo)
        assert (shown["status"], shown["tags"], shown["content"]) == ("active", ["auth", "oauth"], content)
