"""How each field of a memory merges: one table from field to rule, decided before a byte is written.

A rule looks at the three versions and says either a Choice (the value, and whose lines it stands in) or a
Clash (only a person can choose). docs/protocol.md, "Merging", tells the rules in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from openmemex.memory.merge_review import CONTENT, look_again, review
from openmemex.memory.merge_sides import Side, Three, Unread
from openmemex.memory.merge_values import (
    Choice,
    Clash,
    Outcome,
    Rule,
    agreed,
    clash_of,
    instant,
    interleave,
    interleaved_history,
    joined,
    plain_ends,
    same,
    scalar,
    scalar_of,
    value_of,
)
from openmemex.memory.model import FIELDS, MAX_ALIASES, MAX_TAGS


def decide(
    three: Three, take: Mapping[str, Side], text: str | None = None
) -> tuple[dict[str, Choice], list[Clash]]:
    """Every field's choice, and what a person has to settle; `take` settles conflicts by their field's name,
    `text` one of the body.

    Names in `take` that are in no conflict settle nothing: the caller has to compare.
    """
    choices: dict[str, Choice] = {}
    clashes: list[Clash] = []
    unknown = [(name,) for name in _unknown_fields(three)]
    for names, rule in [*RULES, *((names, scalar) for names in unknown), (("body",), body)]:
        for found in rule(names, three):
            if isinstance(found, Choice):
                choices[found.field] = found
                continue
            side = take.get(found.conflict.field)
            if found.conflict.field == "body" and side is None and text is not None:
                eol = three.ours.front.parts.eol
                choices["body"] = Choice("body", plain_ends(text).replace("\n", eol), "taken:both")
                continue
            if side is None:
                clashes.append(found)
            for name in found.covers:
                value = value_of(three.side(side or "ours"), name)
                choices[name] = Choice(name, value, f"taken:{side}" if side else "conflict", side or "ours")
    look_again(three, choices, {name for clash in clashes for name in clash.covers})
    return choices, clashes


def notices(choices: Mapping[str, Choice]) -> list[str]:
    """What is worth telling about a merge without conflict."""
    told = []
    for name, most in (("tags", MAX_TAGS), ("aliases", MAX_ALIASES)):
        value = choices[name].value
        if choices[name].how == "both" and len(value) > most:
            told.append(f"{name} has {len(value)} items after the merge; a new memory may have {most}")
    if choices["review_state"].how == "proposed":
        told.append("its text changed while it was approved: it is proposed again")
    rejected = choices["review_state"].value == "rejected"
    if rejected and any(choices[name].how not in ("same", choices["review_state"].how) for name in CONTENT):
        told.append(
            "it was rejected on one side and changed on the other: it stays rejected until resubmitted"
        )
    return told


def must_agree(names: tuple[str, ...], three: Three) -> Outcome:
    """What never changes in a memory's life: both sides have to say the same."""
    return [
        agreed(name, three)
        if same(name, three.ours.value(name), three.theirs.value(name))
        else clash_of(name, three, "it never changes in a memory's life, but the sides differ")
        for name in names
    ]


def later(names: tuple[str, ...], three: Three) -> Outcome:
    """The later instant."""
    out: Outcome = []
    for name in names:
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if isinstance(ours, Unread) or isinstance(theirs, Unread) or same(name, ours, theirs):
            out.append(scalar_of(name, three))
        elif instant(ours) > instant(theirs):
            out.append(Choice(name, ours, "later", "ours"))
        else:
            out.append(Choice(name, theirs, "later", "theirs"))
    return out


def as_set(names: tuple[str, ...], three: Three) -> Outcome:
    """Items that both have, or that one side added; what one side removed is gone."""
    out: Outcome = []
    for name in names:
        base = value_of(three.base, name) or ()
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if any(isinstance(value, Unread) for value in (base, ours, theirs)):
            out.append(scalar_of(name, three))
        elif ours == theirs:
            out.append(agreed(name, three))
        elif three.blind:
            out.append(clash_of(name, three))
        elif base == ours:
            out.append(Choice(name, theirs, "theirs", "theirs"))
        elif base == theirs:
            out.append(Choice(name, ours, "ours", "ours"))
        else:
            known, of_ours, of_theirs = set(base), set(ours), set(theirs)
            rank = {item: number for number, item in reversed(list(enumerate(base)))}

            def place(item: Any, rank: dict[Any, int] = rank) -> tuple[int, Any]:
                return rank.get(item, len(rank)), item

            union = interleave(
                [item for item in dict.fromkeys(ours) if item in of_theirs or item not in known],
                [item for item in dict.fromkeys(theirs) if item in of_ours or item not in known],
                place,
            )
            out.append(joined(name, tuple(union), three))
    return out


def history(names: tuple[str, ...], three: Three) -> Outcome:
    """Every entry of both sides, each once, in the order of time; an entry is never removed."""
    out: Outcome = []
    for name in names:
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if isinstance(ours, Unread) or isinstance(theirs, Unread):
            out.append(scalar_of(name, three))
        elif ours == theirs:
            out.append(agreed(name, three))
        else:
            out.append(joined(name, interleaved_history(ours, theirs), three))
    return out


def lifecycle(names: tuple[str, ...], three: Three) -> Outcome:
    """Status and successor are one statement: a memory that one side replaced and the other retired, or that
    two others replace, is a person's to settle.
    """
    status, successor = names
    ours, theirs = ([side.value(name) for name in names] for side in (three.ours, three.theirs))
    base = [value_of(three.base, name) for name in names]
    if ours == theirs or (three.base and base in (ours, theirs)):
        return scalar(names, three)
    if ours[1] == theirs[1]:
        return scalar(names, three)
    if ours[1] != base[1] and theirs[1] != base[1]:
        if ours[1] and theirs[1]:
            why = "each side has another memory in its place"
        else:
            why = "one side has a memory in its place, the other has not"
        return [clash_of(successor, three, why, names)]
    if ours[0] == theirs[0]:
        return scalar(names, three)
    return [
        clash_of(status, three, "one side has a memory in its place, the other changed its status", names)
    ]


def body(names: tuple[str, ...], three: Three) -> Outcome:
    """One side changed the text: that. Else a person, also where the lines do not overlap: two changes that
    each make sense need not make sense together.
    """
    ours, theirs = three.ours.memory.body, three.theirs.memory.body
    if ours == theirs:
        return [Choice("body", ours, "same")]
    if plain_ends(ours) == plain_ends(theirs):
        return [Choice("body", plain_ends(ours), "same")]
    if three.base is not None:
        base = plain_ends(three.base.memory.body)
        if base == plain_ends(ours):
            return [Choice("body", theirs, "theirs", "theirs")]
        if base == plain_ends(theirs):
            return [Choice("body", ours, "ours", "ours")]
    return [clash_of("body", three)]


_REVIEW: Final = ("review_state", "proposed_by", "approved_by", "review_note")
_LIFECYCLE: Final = ("status", "superseded_by")
RULES: Final[tuple[tuple[tuple[str, ...], Rule], ...]] = (
    (("created_at",), must_agree),  # that ids differ is found before: then the files are not one memory
    (("id", "schema_version", "scope", "scope_key", "visibility", "project_name"), scalar),
    (("type", "role", "importance", "source"), scalar),
    (_LIFECYCLE, lifecycle),
    (("tags", "aliases", "paths", "links"), as_set),
    (("updated_at",), later),
    (("supersedes", "derived_from", "canonical_ref"), scalar),
    (("valid_from", "valid_until", "expires_at"), scalar),
    (_REVIEW, review),
    (("review_history",), history),
)


def _unknown_fields(three: Three) -> list[str]:
    names: dict[str, None] = {}
    for side in (three.ours, three.theirs, three.base):
        if side is not None:
            names.update(dict.fromkeys(side.extra))
    return list(names)


def order(name: str) -> tuple[int, str]:
    """Where a field comes in reports: the table's order, then unknown fields, then the body."""
    for number, field in enumerate(FIELDS):
        if field.name == name:
            return number, name
    return (len(FIELDS) + 1 if name == "body" else len(FIELDS)), name
