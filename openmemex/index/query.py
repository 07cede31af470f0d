"""From what a person or an agent typed to what is looked for. Every string is a valid query."""

from __future__ import annotations

import re
from typing import NamedTuple

from openmemex.index import segment

# Ten thousand words are a valid query; what stands further back in a longer text adds nothing but time.
LONGEST_QUERY = 100_000
MOST_PHRASES = 16
# Single characters of Han find what a pair can't, but each says little.
CHARACTER_WEIGHT = 0.3


class Query(NamedTuple):
    """What is looked for.

    `terms`: token → how often the query says it, weighed by its kind. `pairs`: atoms that stand one after the
    other in the query. `phrases`: the atoms of each text in double quotes, which a hit must hold side by side.
    `empty`: nothing in it can be looked for (blank, or punctuation alone).
    """

    text: str
    terms: dict[str, float]
    pairs: frozenset[tuple[str, str]]
    phrases: tuple[tuple[str, ...], ...]

    @property
    def empty(self) -> bool:
        return not self.terms


def build(text: str, *, cjk: str = "bigram") -> Query:
    """The query that `text` is; `cjk` must be the setting that the index was built with. Never raises."""
    text = segment.normal(text[:LONGEST_QUERY])
    terms: dict[str, float] = {}
    rest: dict[str, float] = {}
    pairs: set[tuple[str, str]] = set()
    last = ""
    after_run = False
    for piece in segment.pieces(text, cjk=cjk):
        if piece.run and after_run:
            last = ""
        after_run = piece.run
        for atom in piece.atoms:
            if segment.is_function(atom):
                rest[atom] = rest.get(atom, 0.0) + 1.0
                continue
            terms[atom] = terms.get(atom, 0.0) + 1.0
            if last:
                pairs.add((last, atom))
            last = atom
        for extra in piece.extras:
            weight = CHARACTER_WEIGHT if piece.run and len(extra) == 1 else 1.0
            terms[extra] = terms.get(extra, 0.0) + weight
    phrases = []
    for quoted in re.findall(r'"([^"]+)"', text)[:MOST_PHRASES]:
        atoms = segment.sequence(quoted, cjk=cjk)
        if atoms:
            phrases.append(tuple(atoms))
    return Query(text, terms or rest, frozenset(pairs), tuple(phrases))
