"""The merge by examples: which bytes come out, which conflicts, what was decided."""

from __future__ import annotations

from openmemex.memory.frontmatter import parse
from openmemex.memory.merge import Conflict, Decision, merge, with_markers

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
BASE = f"""\
---
id: {A}
schema_version: 2
scope: project
type: decision
role: knowledge
importance: normal
status: active
tags: [needs-review, auth]
created_at: "2026-09-26T12:00:00Z"
updated_at: "2026-09-26T12:00:00Z"
superseded_by: null
review_state: proposed
approved_by: null
review_note: null
review_history: []
---
Use OAuth.
"""


def edited(*changes: tuple[str, str], text: str = BASE) -> bytes:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text.encode()


def test_edits_of_different_fields_merge_line_by_line():
    ours = edited(
        ("[needs-review, auth]", "[auth]"), ('updated_at: "2026-09-26T12', 'updated_at: "2026-09-26T13')
    )
    theirs = edited(
        ("[needs-review, auth]", "[needs-review, auth, sso]"),
        ("importance: normal", "importance: high  # since the outage"),
        ('updated_at: "2026-09-26T12', 'updated_at: "2026-09-26T14'),
    )
    merged = merge(BASE.encode(), ours, theirs, stem=A)
    assert merged.raw == edited(
        ("[needs-review, auth]", "[auth, sso]"),
        ("importance: normal", "importance: high  # since the outage"),
        ('updated_at: "2026-09-26T12', 'updated_at: "2026-09-26T14'),
    )
    assert merged.conflicts == ()
    assert merged.decisions == (
        Decision("importance", "theirs"),
        Decision("tags", "both"),
        Decision("updated_at", "later"),
    )


def test_a_field_that_both_changed_is_a_conflict_and_stands_between_markers():
    ours = edited(("type: decision", "type: fact"), ("normal", "high"))
    theirs = edited(("type: decision", "type: howto"), ("OAuth", "SAML"))
    merged = merge(BASE.encode(), ours, theirs)
    assert merged.conflicts == (Conflict("type", "decision", "fact", "howto"),)
    block = "<<<<<<< ours\ntype: fact\n||||||| base\ntype: decision\n=======\ntype: howto\n>>>>>>> theirs\n"
    assert with_markers(BASE.encode(), ours, theirs) == edited(
        ("type: decision\n", block), ("normal", "high"), ("OAuth", "SAML")
    )


def test_what_a_person_takes_is_recorded():
    ours, theirs = edited(("OAuth", "SAML")), edited(("OAuth", "LDAP"))
    merged = merge(BASE.encode(), ours, theirs, take={"body": "theirs"}, by="Ada", at="2026-10-01T00:00:00Z")
    assert merged.raw is not None
    memory = parse(merged.raw).memory
    assert memory.body == "Use LDAP.\n"
    assert [(step.by, step.at, step.note) for step in memory.review_history] == [
        ("Ada", "2026-10-01T00:00:00Z", "merge: body taken from theirs")
    ]
