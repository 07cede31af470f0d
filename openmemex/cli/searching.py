"""The search command: its few options read by hand, the operation, the hits shown.

It is what people and agents start most, so nothing here may import the library that reads the other
commands' options. That library's own definition (`commands.reading`) calls `run` with the same `SearchCall`;
a test holds both readings equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from openmemex.cli import plain, values
from openmemex.cli.session import Session
from openmemex.index.rows import Filters
from openmemex.results import hit_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openmemex.operations.search import Found
    from openmemex.results import Notice
    from openmemex.then import Then

DEFAULT_LIMIT = 10


class SearchCall(NamedTuple):
    """The words of a search as they were typed; nothing is checked yet."""

    words: tuple[str, ...] = ()
    limit: str | None = None
    scope: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    all: bool = False
    at: str | None = None
    explain: bool = False
    json: bool = False
    project: str | None = None
    verbose: bool = False
    plain: bool = False


_FLAGS = {f"--{name}": name for name in ("all", "explain", "json", "verbose", "plain")}
_VALUES = {f"--{name}": name for name in ("limit", "scope", "type", "at", "project")}


def parse(arguments: list[str]) -> SearchCall | None:
    """What stands after `search`; None for what the full reader should tell: help and mistakes."""
    given: dict[str, Any] = {}
    words: list[str] = []
    tags: list[str] = []
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        if argument == "--":
            words += arguments[at:]
            break
        if argument == "-" or not argument.startswith("-"):
            words.append(argument)
            continue
        name, equals, value = argument.partition("=")
        if name in _FLAGS:
            if equals:
                return None
            given[_FLAGS[name]] = True
            continue
        if name not in _VALUES and name != "--tag":
            return None
        if not equals:
            if at == len(arguments):
                return None
            value = arguments[at]
            at += 1
        if name == "--tag":
            tags.append(value)
        else:
            given[_VALUES[name]] = value
    return SearchCall(words=tuple(words), tags=tuple(tags), **given)


def run(call: SearchCall) -> int:
    """Search and show; the exit code."""
    session = Session(json=call.json, project=call.project, verbose=call.verbose, plain=call.plain)
    filters = Filters(
        scope=values.scope(call.scope),
        type=values.memory_type(call.type),
        tags=values.tags(call.tags),
        all=call.all,
    )
    limit = values.limit(call.limit, DEFAULT_LIMIT)
    from openmemex.operations.search import search

    with session.workspace() as ws:
        found = search(
            ws,
            " ".join(call.words),
            filters=filters,
            limit=limit,
            explain=call.explain,
            at=call.at,
            progress=session.progress,
        )
        session.told(found.notices, found.freshness)
        session.show(
            lambda: document(found, call.explain),
            lambda: plain.search_lines(found, session.screen, explain=call.explain, project=ws.project),
        )
    return 0


def document(found: Found, explain: bool) -> dict[str, Any]:
    """What `search --json` prints; --explain adds the expression, what was hidden, and each hit's why."""
    shown: dict[str, Any] = {
        "query": _masked(found.query),
        "hits": [{**hit_json(hit), "why": hit.why} if explain else hit_json(hit) for hit in found.hits],
        "total": found.total,
        "index": {"fresh": found.freshness.fresh, "places": found.freshness.places},
    }
    if found.then is not None:
        shown |= at_document(found.then, found.notices)
    if explain:
        shown |= {"expression": _masked(found.expression), "hidden": found.hidden}
    return shown


def at_document(then: Then, notices: Sequence[Notice]) -> dict[str, Any]:
    """What a document says of the revision that was asked about."""
    return {
        "at": {**then.json(), "asked": _masked(then.asked)},
        "notices": [notice._asdict() for notice in notices],
    }


def _masked(text: str) -> str:
    """What was asked for, as it may be shown: a secret may have been pasted into the query."""
    from openmemex.trust.secrets import mask  # only documents repeat the query

    return mask(text).text
