"""--json is one document with stable keys; every command, also when it fails."""

from __future__ import annotations

import io
import json
import sys

import pytest
from jsonschema import Draft202012Validator

from openmemex.cli import fast

ID = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
COUNT = {"type": "integer", "minimum": 0}
YES_NO = {"type": "boolean"}


def things(**keys):
    """An object that has exactly these keys."""
    return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}


def many(item):
    return {"type": "array", "items": item}


MEMORY = {
    "id": ID,
    "scope": {"enum": ["personal", "project", "org"]},
    "scope_key": TEXT,
    "type": TEXT,
    "role": {"enum": ["knowledge", "instruction"]},
    "status": TEXT,
    "review_state": TEXT,
    "standing": {"enum": ["own", "unreviewed"]},
    "importance": {"enum": ["low", "normal", "high"]},
    "tags": many(TEXT),
    "source": TEXT,
    "created_at": TIME,
    "updated_at": TIME,
    "path": TEXT,
    "summary": TEXT,
    "branch": TEXT_OR_NULL,
    "flagged": YES_NO,
}
NOTICES = many(things(kind=TEXT, text=TEXT))
UNREAD = many(things(path=TEXT, line=COUNT, reason=TEXT))
WRITTEN = things(
    id=ID,
    action={"enum": ["created", "duplicate", "superseded", "updated", "unchanged", "refused"]},
    path=TEXT,
    notices=NOTICES,
)
HIT = {**MEMORY, "score": {"type": "number"}, "lane": TEXT, "age_days": {"type": "integer"}}
ERROR = things(error=things(message=TEXT, hint=TEXT, code={"enum": [1, 2, 3, 4, 130]}))
SETTING = {"key": TEXT, "value": {}, "default": {}, "set": YES_NO, "doc": TEXT}
AT = things(commit=TEXT, when=TIME, asked=TEXT, folder=TEXT, engine=TEXT)
SHAPES = {
    "search": things(
        query=TEXT, hits=many(things(**HIT)), total=COUNT, index=things(fresh=YES_NO, places=COUNT)
    ),
    "explain": things(
        query=TEXT,
        hits=many(things(**HIT, why={"type": "object"})),
        total=COUNT,
        index=things(fresh=YES_NO, places=COUNT),
        expression=TEXT,
        hidden={"type": "object", "additionalProperties": COUNT},
    ),
    "list": things(items=many(things(**MEMORY)), shown=COUNT, total=COUNT),
    "search --at": things(
        query=TEXT,
        hits=many(things(**HIT)),
        total=COUNT,
        index=things(fresh=YES_NO, places=COUNT),
        at=AT,
        notices=NOTICES,
    ),
    "list --at": things(items=many(things(**MEMORY)), shown=COUNT, total=COUNT, at=AT, notices=NOTICES),
    "show": things(**MEMORY, content=TEXT, front_matter={"type": "object"}),
    "show --at": things(**MEMORY, content=TEXT, front_matter={"type": "object"}, at=AT, notices=NOTICES),
    "history": things(
        id=ID,
        path=TEXT,
        engine=TEXT_OR_NULL,
        steps=many(
            things(
                commit=TEXT_OR_NULL,
                at={"anyOf": [TIME, {"type": "null"}]},
                by=TEXT_OR_NULL,
                action=TEXT,
                place=TEXT,
                branch=TEXT_OR_NULL,
                path=TEXT,
                subject=TEXT_OR_NULL,
                changes=many({"type": "object", "required": ["field", "from", "to"], "maxProperties": 3}),
                review=many(
                    things(at=TEXT, by=TEXT_OR_NULL, **{"from": TEXT_OR_NULL}, to=TEXT, note=TEXT_OR_NULL)
                ),
                unreadable={"anyOf": [things(line=COUNT, reason=TEXT), {"type": "null"}]},
            )
        ),
        notices=NOTICES,
    ),
    "forget": things(
        items=many(things(id=ID, action=TEXT, path=TEXT, note=TEXT_OR_NULL, hint=TEXT_OR_NULL)),
        done=COUNT,
        total=COUNT,
    ),
    "submit": things(
        commit=TEXT_OR_NULL,
        branch=TEXT_OR_NULL,
        files=many(TEXT),
        pushed=YES_NO,
        pr=TEXT_OR_NULL,
        next=many(TEXT),
        dry_run=YES_NO,
        already=YES_NO,
        engine=TEXT_OR_NULL,
        words=many(TEXT),
        notices=NOTICES,
    ),
    "pull": things(
        branch=TEXT,
        remote=TEXT,
        before=TEXT_OR_NULL,
        after=TEXT,
        engine=TEXT,
        checked=COUNT,
        problems=many({"type": "object"}),
        fetched_at=TIME,
        authors=many(TEXT),
        added=many(things(**MEMORY)),
        changed=many(things(**MEMORY)),
        removed=many(TEXT),
        quarantined=UNREAD,
        flagged=many(things(**MEMORY)),
    ),
    "sync-status": things(
        project=things(
            name=TEXT_OR_NULL, root=TEXT_OR_NULL, source=TEXT, scope_key=TEXT_OR_NULL, reason=TEXT_OR_NULL
        ),
        outbox=many(things(**MEMORY)),
        on_branches=many(things(**MEMORY)),
        uncommitted=many(TEXT),
        states={"type": "object", "additionalProperties": COUNT},
        quarantined=UNREAD,
        last_sync={"anyOf": [TIME, {"type": "null"}]},
        fetched_at={"anyOf": [TIME, {"type": "null"}]},
        unpushed={"type": "integer"},
        git=TEXT_OR_NULL,
    ),
    "where": things(
        project=TEXT_OR_NULL,
        project_name=TEXT_OR_NULL,
        source=TEXT,
        reason=TEXT,
        scope_keys=many(TEXT),
        data_root=TEXT,
        config_file=TEXT,
        index=TEXT,
        personal=TEXT,
        outbox=TEXT_OR_NULL,
        repository=TEXT_OR_NULL,
    ),
    "scopes": things(
        scopes=many(
            things(kind=TEXT, scope=TEXT, key=TEXT, folder=TEXT, label=TEXT, count=COUNT, here=YES_NO)
        )
    ),
    "reindex": things(memories=COUNT, quarantined=UNREAD, fresh=YES_NO),
    "doctor": things(checks=many(things(name=TEXT, ok=YES_NO, text=TEXT, fix=TEXT))),
    "config list": things(file=TEXT, settings=many(things(**SETTING))),
    "config get": things(**SETTING),
    "config set": things(**SETTING, file=TEXT),
    "config unset": things(key=TEXT, changed=YES_NO, file=TEXT),
}


def fits(shape, document):
    errors = [
        f"{list(e.absolute_path)}: {e.message}" for e in Draft202012Validator(shape).iter_errors(document)
    ]
    assert not errors, errors


@pytest.fixture
def place(make_repo, make_remote, monkeypatch):
    repo = make_repo()
    make_remote(repo)
    monkeypatch.chdir(repo)
    return repo


@pytest.fixture
def memex(capsys):
    """Run a command with --json: its exit code and its document."""

    def run(*words):
        code = fast.main([*words[:1], *(["--json"] if words[0] != "config" else []), *words[1:]])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_each_command_gives_its_document(place, memex, git, home):
    def done(*words, shape, code=0):
        got, document = memex(*words)
        assert got == code, document
        fits(shape, document)
        return document

    one = done("add", "Deploys need the VPN 文 \u202e", "--tag", "deploy", "--type", "gotcha", shape=WRITTEN)
    assert one["action"] == "created"
    two = done("add", "Reviews are done before nine", shape=WRITTEN)
    mine = done("add", "I like short messages", "--scope", "personal", shape=WRITTEN)
    again = done("add", "deploys  need the vpn 文 \u202e", shape=WRITTEN)
    assert (again["action"], again["id"]) == ("duplicate", one["id"])
    found = done("search", "vpn deploys", shape=SHAPES["search"])
    assert found["hits"][0]["id"] == one["id"]
    assert found["index"]["fresh"] is True
    done("search", "vpn", "--explain", shape=SHAPES["explain"])
    listed = done("list", "--limit", "2", shape=SHAPES["list"])
    assert (listed["shown"], listed["total"], len(listed["items"])) == (2, 3, 2)
    shown = done("show", one["id"][-8:], shape=SHAPES["show"])
    assert shown["content"].strip() == "Deploys need the VPN 文 \u202e"
    edited = done("edit", two["id"], "--importance", "high", shape=WRITTEN)
    assert edited["action"] == "updated"
    same = done("edit", two["id"], "--importance", "high", shape=WRITTEN)
    assert same["action"] == "unchanged"
    new = done("supersede", two["id"], "Reviews are done before ten", shape=WRITTEN)
    assert new["action"] == "superseded"
    done("status", mine["id"], "archived", shape=WRITTEN)
    status = done("status", shape=SHAPES["sync-status"])
    assert {row["id"] for row in status["outbox"]} >= {one["id"], new["id"]}
    assert status == {**done("sync-status", shape=SHAPES["sync-status"]), "last_sync": status["last_sync"]}
    tried = done("submit", one["id"], "--dry-run", shape=SHAPES["submit"])
    assert (tried["commit"], tried["dry_run"]) == (None, True)
    sent = done("submit", one["id"], shape=SHAPES["submit"])
    assert sent["commit"] == git("rev-parse", "HEAD", cwd=place)
    assert sent["files"] == [f".ai/open-memex/{one['id']}.md"]
    done("history", one["id"], shape=SHAPES["history"])
    then = done("search", "vpn", "--at", "HEAD", shape=SHAPES["search --at"])
    assert [hit["id"] for hit in then["hits"]] == [one["id"]]
    done("list", "--at", "main", shape=SHAPES["list --at"])
    done("show", one["id"], "--at", "main", shape=SHAPES["show --at"])
    git("push", "-q", "origin", "main", cwd=place)
    done("pull", shape=SHAPES["pull"])
    done("where", shape=SHAPES["where"])
    done("scopes", shape=SHAPES["scopes"])
    done("reindex", shape=SHAPES["reindex"])
    done("doctor", shape=SHAPES["doctor"])
    gone = done("forget", mine["id"], "--yes", shape=SHAPES["forget"])
    assert [item["action"] for item in gone["items"]] == ["deleted"]
    done("config", "list", "--json", shape=SHAPES["config list"])
    done("config", "get", "memoryDir", "--json", shape=SHAPES["config get"])
    changed = done("config", "set", "captureAliases", "false", "--json", shape=SHAPES["config set"])
    assert changed["value"] is False
    done("config", "unset", "captureAliases", "--json", shape=SHAPES["config unset"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "ZZZZZZZZ"], 1),
        (["show", "x"], 2),
        (["search", ""], 2),
        (["search", "--limit", "0", "x"], 2),
        (["search", "--nope", "x"], 2),
        (["search", "--type", "poem", "x"], 2),
        (["list", "--limit", "many"], 2),
        (["list", "--state", "asleep"], 2),
        (["add", "--scope", "team", "x"], 2),
        (["submit", "ZZZZZZZZ"], 1),
        (["forget"], 2),
        (["status", "ZZZZZZZZ", "gone"], 2),
        (["config", "get", "nothing", "--json"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failure_is_a_document_too(place, memex, words, code):
    got, document = memex(*words)
    assert got == code
    fits(ERROR, document)
    assert document["error"]["code"] == code
    assert document["error"]["message"] and document["error"]["hint"]


def test_nothing_else_is_on_stdout_and_invalid_text_stays_valid_utf8(place, home, capsys, monkeypatch):
    home.config.parent.mkdir(parents=True)
    home.config.write_text('{"nothing": 1}')
    assert fast.main(["add", "Text", "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert "nothing" in err
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    assert fast.main(["search", "text \udcff", "--json"]) == 2
    sys.stdout.flush()
    json.loads(raw.getvalue().decode("utf-8"))
