"""What git merges with our driver, and what `resolve` makes of the same merge without it, are the same bytes.

Random pairs of edits of many memories, committed on two branches by real git and merged twice. And whatever
merges without a conflict has both sides' edits in it.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from merging_repos import Conflicts, memory_id, text_of

from openmemex.memory import frontmatter
from openmemex.memory.model import HistoryEntry, Link, Memory
from openmemex.operations.resolve import resolve
from openmemex.workspace import Workspace

WORDS = ("vpn", "deploy", "token", "cache", "slow", "flaky", "ci", "db", "schema", "lint")
LINES = tuple(f"Line {number} of what we know about {word}." for number, word in enumerate(WORDS))
SCALARS = {
    "type": ("fact", "gotcha", "lesson", "howto"),
    "role": ("knowledge", "instruction"),
    "importance": ("low", "normal", "high"),
    "canonical_ref": (None, "docs/a.md", "docs/b.md"),
    "proposed_by": (None, "ada", "bob"),
    "expires_at": (None, "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"),
    "review_note": (None, "a note", "another: note"),
}
LISTS = ("tags", "aliases", "paths")


def start(chance: random.Random, number: int) -> bytes:
    """A memory to begin with; some have a comment, an unknown field, fields left out."""
    lines = []
    if chance.random() < 0.3:
        lines.append("# what the importer said")
    if chance.random() < 0.3:
        lines.append(f"confidence: 0.{chance.randrange(1, 9)}")
    fields: dict[str, Any] = {}
    if chance.random() < 0.3:
        fields["derived_from"] = fields["approved_by"] = None
    body = "\n".join(chance.sample(LINES, chance.randrange(1, 8))) + "\n"
    raw = text_of(number, body, lines=tuple(lines), **fields).encode()
    return edited(chance, raw, 0, chance.randrange(3))


def entry(chance: random.Random, day: int) -> HistoryEntry:
    at = f"2026-09-{day:02d}T{chance.randrange(24):02d}:00:00Z"
    return HistoryEntry(at, chance.choice(("ada", "bob")), "proposed", "proposed", chance.choice(WORDS))


def edited(chance: random.Random, raw: bytes, day: int, count: int) -> bytes:
    """The memory with `count` random edits, as this project writes them; `day` tells the sides apart."""
    for _ in range(count):
        document = frontmatter.parse(raw)
        memory = document.memory
        changes: dict[str, Any] = {}
        body = None
        what = chance.choice(
            (*SCALARS, *LISTS, *LISTS, "links", "history", "body", "body", "approve", "unknown")
        )
        if what in SCALARS:
            changes[what] = chance.choice(SCALARS[what])
        elif what in LISTS:
            items = list(memory.value(what))
            if items and chance.random() < 0.4:
                items.remove(chance.choice(items))
            else:
                items = [*items, chance.choice(WORDS)]
            changes[what] = tuple(dict.fromkeys(items))
        elif what == "links":
            changes[what] = (*memory.links, Link("see", chance.choice(WORDS)))
        elif what == "history":
            changes["review_history"] = (*memory.review_history, entry(chance, 10 + day))
        elif what == "approve":
            changes |= {"review_state": "approved", "approved_by": "bob"}
            changes["review_history"] = (*memory.review_history, entry(chance, 10 + day))
        elif what == "body":
            lines = memory.body.split("\n")
            lines.insert(chance.randrange(len(lines)), f"{chance.choice(LINES)} ({day})")
            body = "\n".join(lines)
        elif b"confidence: " in raw:
            raw = raw.replace(b"confidence: 0", b"confidence: 1", 1)
            continue
        else:
            raw = (
                raw.replace(b"---\n", f"---\nseen_by: {chance.choice(WORDS)}\n".encode(), 1)
                if (b"seen_by" not in raw)
                else raw
            )
            continue
        if day:
            changes["updated_at"] = f"2026-10-{day:02d}T{chance.randrange(24):02d}:00:00Z"
        raw = frontmatter.rewrite(document, changes, body=body)
    return raw


def side_of(chance: random.Random, raw: bytes, day: int) -> bytes | None:
    if chance.random() < 0.04:
        return None
    return edited(chance, raw, day, chance.choice((0, 1, 1, 2, 3)))


def lost(base: Memory, ours: Memory, theirs: Memory, merged: Memory) -> list[str]:
    """The edits that a merge without a conflict should have and has not."""
    wrong = []
    # A changed text with an approval of the old one goes back to `proposed`: that is the review's own rule.
    for name in (*SCALARS, "source", "supersedes", "derived_from"):
        b, o, t, m = (one.value(name) for one in (base, ours, theirs, merged))
        if m != (t if o == b else o):
            wrong.append(f"{name}: {b!r} {o!r} {t!r} -> {m!r}")
    b, o, t, m = (one.body for one in (base, ours, theirs, merged))
    if m != (t if o == b else o):
        wrong.append("body")
    for name in (*LISTS, "links"):
        b, o, t, m = (set(one.value(name)) for one in (base, ours, theirs, merged))
        if m != ((o | t) - (b - o) - (b - t)):
            wrong.append(f"{name}: {sorted(map(str, m))}")
    entries = {one for side in (base, ours, theirs) for one in side.review_history}
    if not entries <= set(merged.review_history):
        wrong.append("review_history")
    if len(merged.review_history) != len(set(merged.review_history)):
        wrong.append("review_history twice")
    for name in {*base.extra, *ours.extra, *theirs.extra}:
        b, o, t, m = (one.extra.get(name) for one in (base, ours, theirs, merged))
        if m != (t if o == b else o):
            wrong.append(f"{name}: {m!r}")
    return wrong


def check_pairs(count: int, seed: int, make_repo, git, tmp_path: Path) -> dict[str, int]:
    chance = random.Random(seed)
    numbers = range(1, count + 1)
    versions: dict[int, tuple[bytes, bytes | None, bytes | None]] = {}
    for number in numbers:
        base = start(chance, number)
        versions[number] = (base, side_of(chance, base, 1), side_of(chance, base, 2))
    c = Conflicts(make_repo(), git)
    (c.repo / ".gitattributes").write_text(f"{c.folder}/*.md text eol=lf merge=openmemex\n")
    # git pairs deleted with new files; none are new here, and looking costs time.
    git("config", "merge.renames", "false", cwd=c.repo)

    def texts(place: int) -> dict[int, str | None]:
        found = {}
        for number in numbers:
            raw = versions[number][place]
            found[number] = None if raw is None else raw.decode()
        return found

    c.apart(texts(0), texts(1), texts(2))
    with_driver = Conflicts(tmp_path / "with-driver", git)
    git("clone", "-q", str(c.repo), str(with_driver.repo))
    git("branch", "-q", "topic", "origin/topic", cwd=with_driver.repo)
    driver = f"{sys.executable} -m openmemex merge-driver %O %A %B %P"
    git("config", "merge.openmemex.driver", driver, cwd=with_driver.repo)
    git("config", "merge.renames", "false", cwd=with_driver.repo)
    merge = ("merge", "-q", "--no-commit", "--no-ff", "topic")
    git.run(*merge, cwd=with_driver.repo)
    git.run(*merge, cwd=c.repo)

    ws = Workspace.open(cwd=str(c.repo), environ=os.environ)
    done = resolve(ws)
    ws.close()
    problems = {one.ids[0]: one for one in done.problems}
    still_open = {one.case.memory_id for one in done.open} | {
        name for name, one in problems.items() if one.conflicts
    }
    assert not [one for one in problems.values() if not one.conflicts], "what can be mended was mended"
    in_conflict = {
        line.rpartition("/")[2][:-3] for line in git("ls-files", "-u", cwd=with_driver.repo).splitlines()
    }
    assert still_open == in_conflict, "both see the same conflicts"

    settled = {one.case.memory_id for one in (*done.done, *done.mended)}
    tally = {"conflicts": len(in_conflict), "settled": len(settled), "by git alone": 0}
    wrong = []
    for number in numbers:
        if memory_id(number) in in_conflict:
            continue
        base, ours, theirs = versions[number]
        file, other = c.file(number), with_driver.file(number)
        assert file.exists() == other.exists(), number
        if not file.exists():
            continue
        if memory_id(number) in settled and file.read_bytes() != other.read_bytes():
            wrong.append((number, "not the same bytes"))
        tally["by git alone"] += memory_id(number) not in settled
        if ours is None or theirs is None:
            continue
        sides = [frontmatter.parse(raw).memory for raw in (base, ours, theirs)]
        for place in (file, other):
            merged = frontmatter.parse(place.read_bytes(), stem=place.stem).memory
            wrong += [(number, text) for text in lost(*sides, merged)]
    assert wrong == []
    return tally


def test_driver_and_resolve_merge_to_the_same_bytes_and_lose_nothing(make_repo, git, tmp_path):
    tally = check_pairs(25, 11, make_repo, git, tmp_path)
    assert tally["settled"] >= 5 and tally["conflicts"] >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_driver_and_resolve_merge_five_hundred_pairs_alike(seed, make_repo, git, tmp_path):
    tally = check_pairs(100, 100 + seed, make_repo, git, tmp_path)
    assert tally["settled"] >= 15 and tally["conflicts"] >= 2
