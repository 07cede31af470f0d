"""The merge by examples: which bytes come out, which conflicts, what was decided."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from openmemex.errors import UsageError
from openmemex.memory.frontmatter import parse
from openmemex.memory.merge import Conflict, Decision, Labels, Merged, merge, with_markers
from openmemex.memory.model import MAX_FILE_BYTES, HistoryEntry, Memory

CHECKOUT = Path(__file__).resolve().parents[2]
A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B = A[:-1] + "B"
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


def read(merged: Merged) -> Memory:
    assert merged.conflicts == ()
    assert merged.raw is not None
    return parse(merged.raw, stem=A).memory


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


def test_taking_a_field_settles_that_field_only():
    ours = edited(("type: decision", "type: fact"), ("OAuth", "SAML"))
    theirs = edited(("type: decision", "type: howto"), ("OAuth", "LDAP"))
    merged = merge(BASE.encode(), ours, theirs, take={"type": "base"}, by="Ada")
    assert [conflict.field for conflict in merged.conflicts] == ["body"]
    assert Decision("type", "taken:base") in merged.decisions
    settled = merge(BASE.encode(), ours, theirs, take={"type": "base", "body": "ours"}, by="Ada")
    memory = read(settled)
    assert (memory.type, memory.body) == ("decision", "Use SAML.\n")
    notes = [step.note for step in memory.review_history]
    assert notes == ["merge: type taken from base", "merge: body taken from ours"]
    assert {step.at for step in memory.review_history} == {"2026-09-26T12:00:00Z"}


def test_labels_name_the_sides_in_the_record():
    ours, theirs = edited(("type: decision", "type: fact")), edited(("type: decision", "type: howto"))
    labels = Labels("the merge base", "main", 'your commit 1a2b3c4\n"x"')
    merged = merge(BASE.encode(), ours, theirs, take={"type": "theirs"}, by=None, labels=labels)
    assert read(merged).review_history[-1].note == 'merge: type taken from theirs (your commit 1a2b3c4 "x")'


@pytest.mark.parametrize(
    ("take", "told"),
    [
        ({"tags": "ours"}, "tags is not in conflict\nIn conflict: type."),
        ({"nothing": "ours"}, "nothing is not in conflict\nIn conflict: type."),
        ({"file": "ours"}, "file is not in conflict\nIn conflict: type."),
        ({"type": "mine"}, "there is no side mine\nSides: base, ours, theirs."),
    ],
)
def test_what_can_not_be_taken_is_named(take, told):
    ours, theirs = edited(("type: decision", "type: fact")), edited(("type: decision", "type: howto"))
    with pytest.raises(UsageError) as caught:
        merge(BASE.encode(), ours, theirs, take=take)
    assert str(caught.value) == told


def test_nothing_can_be_taken_where_nothing_is_in_conflict_and_no_base_where_there_is_none():
    ours, theirs = edited(("OAuth", "SAML")), edited(("normal", "high"))
    with pytest.raises(UsageError, match="Nothing is in conflict"):
        merge(BASE.encode(), ours, theirs, take={"body": "ours"})
    with pytest.raises(UsageError, match="no base to take"):
        merge(None, ours, theirs, take={"body": "base", "importance": "ours"})
    with pytest.raises(UsageError, match="whole file or single fields"):
        merge(BASE.encode(), ours, theirs, take={"body": "ours"}, take_file="ours")
    with pytest.raises(UsageError, match="Take ours, theirs or delete for the file"):
        merge(BASE.encode(), None, theirs, take={"file": "ours"})


def test_a_whole_file_is_taken_byte_for_byte_unless_somebody_is_named():
    ours, theirs = b"broken", edited(("OAuth", "SAML"))
    base = BASE.encode()
    assert merge(base, ours, theirs, take_file="ours", by="Ada").raw == ours
    assert merge(base, ours, theirs, take_file="theirs").raw == theirs
    assert merge(base, None, theirs, take_file="ours", by="Ada").raw is None
    assert merge(base, ours, theirs, take_file="delete").raw is None
    taken = merge(base, None, theirs, take_file="theirs", by="Ada", at="2026-10-01T00:00:00Z")
    assert taken.decisions == (Decision("file", "taken:theirs"),)
    assert read(taken) == parse(theirs).memory._replace(
        review_history=(
            HistoryEntry(
                "2026-10-01T00:00:00Z", "Ada", "proposed", "proposed", "merge: whole file taken from theirs"
            ),
        )
    )


def test_a_whole_file_keeps_the_steps_of_the_other_sides_review():
    step = '- {at: "2026-09-26T13:00:00Z", by: Bob, from: proposed, to: rejected, note: vague}'
    ours = edited(
        ("review_history: []", f"review_history:\n{step}"),
        ("review_state: proposed", "review_state: rejected"),
    )
    taken = read(merge(BASE.encode(), ours, edited(("OAuth", "SAML")), take_file="theirs", by="Ada"))
    assert taken.review_state == "proposed"
    assert [step.by for step in taken.review_history] == ["Bob", "Ada"]


def test_a_taken_successor_brings_its_status():
    ours = edited(("status: active", "status: superseded"), ("superseded_by: null", f"superseded_by: {B}"))
    theirs = edited(("status: active", "status: retracted"))
    for side, expected in (
        ("ours", ("superseded", B)),
        ("theirs", ("retracted", None)),
        ("base", ("active", None)),
    ):
        memory = read(merge(BASE.encode(), ours, theirs, take={"status": side}, by="Ada"))
        assert (memory.status, memory.superseded_by) == expected


def test_a_taken_verdict_brings_what_explains_it():
    ours = edited(
        ("review_state: proposed", "review_state: approved"), ("approved_by: null", "approved_by: Bob")
    )
    theirs = edited(
        ("review_state: proposed", "review_state: rejected"), ("review_note: null", "review_note: vague")
    )
    for side, expected in (("ours", ("approved", "Bob", None)), ("theirs", ("rejected", None, "vague"))):
        memory = read(merge(BASE.encode(), ours, theirs, take={"review_state": side}, by="Ada"))
        assert (memory.review_state, memory.approved_by, memory.review_note) == expected


def test_an_approval_that_a_person_takes_still_does_not_cover_a_changed_text():
    ours = edited(
        ("review_state: proposed", "review_state: approved"), ("approved_by: null", "approved_by: Bob")
    )
    theirs = edited(
        ("review_state: proposed", "review_state: rejected"),
        ("review_note: null", "review_note: vague"),
        ("OAuth", "SAML"),
    )
    merged = merge(BASE.encode(), ours, theirs, take={"review_state": "ours"}, by="Ada")
    memory = read(merged)
    assert (memory.review_state, memory.approved_by) == ("proposed", None)
    assert merged.notices == ("its text changed while it was approved: it is proposed again",)


def test_the_approval_of_one_sides_text_is_kept_when_that_text_is_taken():
    approved = (
        ("review_state: proposed", "review_state: approved"),
        ("approved_by: null", "approved_by: Bob"),
    )
    ours, theirs = edited(("OAuth", "SAML"), *approved), edited(("OAuth", "LDAP"))
    states = {
        side: read(merge(BASE.encode(), ours, theirs, take={"body": side}, by="Ada")).review_state
        for side in ("base", "ours", "theirs")
    }
    assert states == {"base": "proposed", "ours": "approved", "theirs": "proposed"}


def test_an_approval_of_a_newer_text_does_not_cover_what_the_other_side_changed_at_once():
    base = edited(
        ("review_state: proposed", "review_state: approved"), ("approved_by: null", "approved_by: Bob")
    )
    ours = (
        base.replace(b"OAuth", b"SAML")
        .replace(b"Bob", b"Dora")
        .replace(b'T12:00:00Z"\nsup', b'T13:00:00Z"\nsup')
    )
    theirs = edited(("type: decision", "type: fact"))
    memory = read(merge(base, ours, theirs))
    assert (memory.review_state, memory.approved_by, memory.type, memory.body) == (
        "proposed",
        None,
        "fact",
        "Use SAML.\n",
    )
    assert [(step.at, step.note) for step in memory.review_history] == [
        ("2026-09-26T13:00:00Z", "merge: type changed while it was approved")
    ]


def test_more_items_than_allowed_merge_with_a_notice():
    many = ", ".join(f"t{number:02}" for number in range(32))
    base = edited(("[needs-review, auth]", f"[{many}]"))
    ours = edited(("[needs-review, auth]", f"[{many}, u]"))
    theirs = edited(("[needs-review, auth]", f"[{many}, v]"))
    merged = merge(base, ours, theirs)
    assert merged.notices == ("tags has 34 items after the merge; a new memory may have 32",)
    assert len(read(merged).tags) == 34


def test_a_rejected_text_that_the_other_side_changed_stays_rejected_with_a_notice():
    ours = edited(
        ("review_state: proposed", "review_state: rejected"), ("review_note: null", "review_note: vague")
    )
    merged = merge(BASE.encode(), ours, edited(("OAuth", "SAML")))
    assert (read(merged).review_state, read(merged).body) == ("rejected", "Use SAML.\n")
    assert merged.notices == (
        "it was rejected on one side and changed on the other: it stays rejected until resubmitted",
    )


def test_a_result_over_the_size_limit_is_a_conflict_of_the_file():
    half = "x" * (MAX_FILE_BYTES // 2)
    base = BASE.encode()
    ours, theirs = edited(("Use OAuth.", half)), edited(("type: decision", f"x_big: {half}\ntype: decision"))
    merged = merge(base, ours, theirs)
    assert [conflict.field for conflict in merged.conflicts] == ["file"]
    assert "1 MiB" in merged.conflicts[0].why
    assert half.encode() in with_markers(base, ours, theirs)


def test_an_alias_whose_anchor_is_on_another_line_is_not_torn_from_it():
    base = edited(("tags: [needs-review, auth]", "x_one: &one [a]\nx_two: [c]\ntags: [needs-review, auth]"))
    ours = edited(("tags: [needs-review, auth]", "x_two: [c]\ntags: [auth]"))
    theirs = edited(
        ("tags: [needs-review, auth]", "x_one: &one [a]\nx_two: *one\ntags: [needs-review, auth]")
    )
    merged = merge(base, ours, theirs)
    assert [conflict.field for conflict in merged.conflicts] == ["file"]


def test_a_file_whose_id_is_not_its_name_is_unreadable():
    ours, theirs = edited(("OAuth", "SAML")), edited(("normal", "high"))
    (conflict,) = merge(BASE.encode(), ours, theirs, stem=B).conflicts
    assert (conflict.field, conflict.ours) == (
        "file",
        "unreadable: the id differs from the file's name, line 2",
    )


def test_merging_files_in_our_own_form_loads_nothing_heavy(tmp_path):
    ours = edited(("[needs-review, auth]", "[auth]"), ("OAuth", "SAML"))
    theirs = edited(
        ("[needs-review, auth]", "[needs-review, auth, sso]"),
        ("review_state: proposed", "review_state: approved"),
        ("approved_by: null", "approved_by: Bob"),
        ('updated_at: "2026-09-26T12', 'updated_at: "2026-09-26T14'),
    )
    for name, raw in (("base", BASE.encode()), ("ours", ours), ("theirs", theirs)):
        (tmp_path / name).write_bytes(raw)
    code = (
        "import sys; before = set(sys.modules); from openmemex.memory.merge import merge, with_markers; "
        "sides = [open(name, 'rb').read() for name in ('base', 'ours', 'theirs')]; "
        "merged = merge(*sides); assert merged.raw, merged; with_markers(*sides); "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    heavy = {"yaml", "dataclasses", "inspect", "ast", "json", "hashlib", "difflib", "subprocess", "pathlib"}
    assert set(done.stdout.split()) & (heavy | {"typer", "rich", "pygit2", "frontmatter"}) == set()
    assert "openmemex" in done.stdout


def test_a_note_that_came_with_an_approval_goes_with_it():
    noted = edited(("review_note: null", "review_note: an older word"))
    approved = (
        ("review_state: proposed", "review_state: approved"),
        ("approved_by: null", "approved_by: Bob"),
    )
    ours = edited(*approved, ("review_note: an older word", "review_note: looks good"), text=noted.decode())
    memory = read(merge(noted, ours, noted.replace(b"OAuth", b"SAML")))
    assert (memory.review_state, memory.review_note) == ("proposed", "an older word")


@pytest.mark.parametrize("old", ["2026-09-26T13:00:00Z", "2026-09-26T12:00:00Z", "2026-09-26T22:00:00+09:00"])
def test_two_spellings_of_one_instant_come_out_the_same_from_both_sides(old: str):
    updated = 'updated_at: "2026-09-26T12:00:00Z"'
    base = edited((updated, f'updated_at: "{old}"'))
    ours = edited((updated, 'updated_at: "2026-09-26T22:00:00+09:00"'), ("OAuth", "SAML"))
    theirs = edited((updated, 'updated_at: "2026-09-26T13:00:00Z"'), ("normal", "high"))
    expected = "2026-09-26T22:00:00+09:00" if old == "2026-09-26T13:00:00Z" else "2026-09-26T13:00:00Z"
    for one, other in ((ours, theirs), (theirs, ours)):
        assert read(merge(base, one, other)).updated_at == expected


def test_a_text_that_was_put_together_settles_the_body_and_is_not_what_was_approved():
    ours = edited(("OAuth.", "OAuth 2."), ("proposed", "approved"), ("approved_by: null", "approved_by: bob"))
    theirs = edited(("Use", "Always use"), ("importance: normal", "importance: high"))
    assert [one.field for one in merge(BASE.encode(), ours, theirs).conflicts] == ["body"]
    text = "Always use OAuth 2.\n"
    merged = read(merge(BASE.encode(), ours, theirs, text=text))
    assert (merged.body, merged.importance, merged.review_state) == (text, "high", "proposed")
    assert [step.note for step in merged.review_history] == ["merge: text changed while it was approved"]
    merged = read(merge(BASE.encode(), ours, theirs, text=text, by="ada", at="2026-09-28T12:00:00Z"))
    told = merged.review_history[-1]
    assert (told.by, told.note) == ("ada", "merge: body put together from both sides")


def test_a_text_that_was_put_together_settles_nothing_but_a_conflict_of_the_body():
    ours, theirs = edited(("OAuth.", "OAuth 2.")), edited(("importance: normal", "importance: high"))
    assert read(merge(BASE.encode(), ours, theirs, text="Something.\n")).body == "Use OAuth 2.\n"
    ours, theirs = (edited(("Use", word), ("decision", word.lower())) for word in ("Fact", "Lesson"))
    merged = merge(BASE.encode(), ours, theirs, text="Something.\n")
    assert [one.field for one in merged.conflicts] == ["type"]


def test_a_text_that_was_put_together_has_the_line_ends_of_its_file():
    base, ours, theirs = (
        raw.replace(b"\n", b"\r\n") for raw in (BASE.encode(), edited(("Use", "A")), edited(("Use", "B")))
    )
    raw = merge(base, ours, theirs, text="One.\nTwo.\n").raw
    assert raw is not None and raw.endswith(b"One.\r\nTwo.\r\n") and raw.count(b"\n") == raw.count(b"\r\n")
