"""Which memories answer a query best: candidates by FTS5's bm25, then an own score, then gentle factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from openmemex.index.query import Query
from openmemex.index.segment import FIELD_MARK

CANDIDATES = 100
MOST_TERMS = 64
K1 = 0.9
B = 0.4
LABEL_WEIGHT = 2.0
PAIR_WEIGHT = 0.3
WINDOW = 1


class Candidate(NamedTuple):
    rowid: int
    stream: str
    length: int
    row: Any


class Corpus(Protocol):
    size: int
    average_length: float

    def document_frequency(self, terms: Sequence[str]) -> dict[str, int]: ...
    def matching(self, expression: str, limit: int) -> list[tuple[int, float]]: ...
    def load(self, rowids: Sequence[int]) -> list[Candidate]: ...


class Context(NamedTuple):
    now: float
    cwd: str = ""


class Ranked(NamedTuple):
    hits: list[tuple[int, float, dict[str, Any]]]
    expression: str


def rank(query: Query, corpus: Corpus, *, limit: int, context: Context, explain: bool = False) -> Ranked:
    if query.empty or limit < 1:
        return Ranked([], "")
    frequency = corpus.document_frequency(list(query.terms))
    size = max(corpus.size, 1)
    weights: dict[str, float] = {}
    for term, weight in query.terms.items():
        df = frequency.get(term, 0)
        weights[term] = weight * math.log(1.0 + (size - df + 0.5) / (df + 0.5))
    present = sorted((t for t in weights if frequency.get(t)), key=lambda t: (-weights[t], t))[:MOST_TERMS]
    if not present:
        return Ranked([], "")
    expression = " OR ".join(f'"{t}"' for t in present)
    found = corpus.matching(expression, max(CANDIDATES, limit))
    candidates = corpus.load([rowid for rowid, _ in found])
    average = max(corpus.average_length, 1.0)
    scored = []
    wanted = {t: weights[t] for t in present}
    total = sum(weights.values())
    for candidate in candidates:
        scored.append((_score(candidate, wanted, query.pairs, average) / total, candidate))
    scored.sort(key=lambda s: (-s[0], s[1].rowid))
    return Ranked([(c.rowid, s, {}) for s, c in scored[:limit]], expression)


def _score(candidate: Candidate, wanted: dict[str, float], pairs: Any, average: float) -> float:
    counts: dict[str, float] = {}
    seen: set[tuple[str, str]] = set()
    field = 0
    weight = 1.0
    last = ""
    at = -9
    for position, token in enumerate(candidate.stream.split()):
        if token in wanted:
            counts[token] = counts.get(token, 0.0) + weight
            if position - at <= WINDOW and (last, token) in pairs:
                seen.add((last, token))
            last = token
            at = position
        elif token == FIELD_MARK:
            field += 1
            if field == 2:
                weight = LABEL_WEIGHT
    norm = K1 * (1.0 - B + B * candidate.length / average)
    score = sum(wanted[t] * c * (K1 + 1.0) / (c + norm) for t, c in counts.items())
    for a, b in seen:
        score += PAIR_WEIGHT * min(wanted[a], wanted[b])
    return score
