"""How memories read to a person: one line of what it says, one line of what and where it is.

Words for people only; the protocol's own stay in --json. No line holds a box, and colour only marks what
stands there in words anyway. On the path of every search.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from openmemex.cli.escape import one_line
from openmemex.cli.terminal import Screen

if TYPE_CHECKING:
    from openmemex.index.rows import Row
    from openmemex.operations.search import Found
    from openmemex.then import Then
    from openmemex.workspace import Project

PLACES = {
    "personal": "on this computer",
    "outbox": "waiting to be shared",
    "repository": "shared with the team",
    "branch": "on another branch",
    "revision": "in the repository then",
}


def age(seconds: float) -> str:
    """How long ago, in the words of a person: "just now", "5 minutes ago", "3 days ago", "2 years ago"."""
    if seconds < -60:
        return "in the future"
    if seconds < 60:
        return "just now"
    days = int(seconds // 86_400)
    for least, length, unit in ((730, 365, "year"), (60, 30, "month"), (14, 7, "week"), (1, 1, "day")):
        if days >= least:
            return counted(days // length, unit) + " ago"
    hours = int(seconds // 3_600)
    return (counted(hours, "hour") if hours else counted(int(seconds // 60), "minute")) + " ago"


def age_of_days(days: int) -> str:
    """The same where only whole days are known."""
    return "in the future" if days < 0 else "today" if days == 0 else age(days * 86_400)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 memory", "3 memories"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def memories(number: int) -> str:
    """ "1 memory", "3 memories"."""
    return counted(number, "memory", "memories")


def place(row: Row) -> str:
    """Where a memory is, for a person."""
    if row.place_kind == "repository" and row.review_state == "draft":
        # A file that was put there by hand, or is only about to be committed.
        return "in the repository"
    return row.place_label or PLACES.get(row.place_kind, row.place_kind)


def row_lines(number: int, row: Row, when: str, screen: Screen, *, where: bool = True) -> Iterator[str]:
    """The two lines of one memory in a list: its number and summary, then its id, what and where it is."""
    head = f"{number}. "
    indent = " " * len(head)
    tags = "".join(f" #{one_line(tag)}" for tag in row.tags)
    summary = one_line(row.summary) or "(empty)"
    width = screen.width()
    if width:
        summary = cut(summary, max(20, width - len(head) - columns(tags)))
    yield head + screen.style(summary, "bold") + screen.style(tags, "cyan")
    facts = [row.type, place(row), when] if where or row.place_label else [row.type, when]
    if row.role == "instruction":
        facts[0] += " (instruction)"
    if row.importance != "normal":
        facts.append(f"{row.importance} importance")
    if row.status != "active":
        facts.append(row.status)
    if row.superseded_by and row.status == "superseded":
        facts[-1] += f" by {row.superseded_by}"
    if row.masked:
        facts.append("its file holds a secret in clear")
    yield indent + screen.style(row.id, "yellow") + "  " + one_line(", ".join(facts))


def search_lines(found: Found, screen: Screen, *, explain: bool, project: Project) -> Iterator[str]:
    """What a search shows: the hits, the true total, and what was left out."""
    for number, hit in enumerate(found.hits, 1):
        yield from row_lines(number, hit.row, age_of_days(hit.age_days), screen)
        if explain:
            yield f"   score {hit.score:.4f}: " + one_line(reasons(hit.why))
    here = one_line(f"in {project.name}" if project.name else "on this computer")
    if found.then is not None:
        here += f" at {found.then.commit[:10]}"
    if not found.hits:
        yield f"Nothing found {here}. Fewer or other words may help."
    elif found.total > len(found.hits):
        shown, left = len(found.hits), found.total - len(found.hits)
        yield f"{shown} of {memories(found.total)} found {here}; {left} not shown: --limit {found.total}"
    else:
        yield f"{memories(found.total)} found {here}."
    if found.then is not None and found.hits:
        yield see_then(found.hits[0].row, found.then)
    if explain:
        yield "Searched for: " + one_line(found.expression)
    if found.hidden:
        hidden = ", ".join(f"{number} {reason}" for reason, number in found.hidden.items())
        yield one_line(f"Left out: {hidden}. --all shows them.")


def see_then(row: Row, then: Then) -> str:
    """How to see one memory of an old revision whole."""
    return one_line(f"See one whole: open-memex show {row.id} --at {then.commit[:10]}")


def reasons(why: Mapping[str, Any]) -> str:
    """How a score came about: what each part of the text gave, and the factors it was multiplied by."""
    told = [f"text {why['text']:.3f}"] if "text" in why else []
    if why.get("parts"):
        told.append("(" + ", ".join(f"{name} {value:.3f}" for name, value in why["parts"].items()) + ")")
    told += [f"x {name} {value:.3f}" for name, value in why.get("factors", {}).items()]
    return " ".join(told)


def columns(text: str) -> int:
    """How many columns of a terminal `text` takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def cut(text: str, width: int) -> str:
    """`text`, cut to `width` columns with an ellipsis where it is longer."""
    if columns(text) <= width:
        return text
    room = width - 3
    taken = 0
    for at, char in enumerate(text):
        taken += columns(char)
        if taken > room:
            return text[:at] + "..."
    return text
