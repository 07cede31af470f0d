"""From what a person or an agent typed to what is looked for. Every string is a valid query."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from openmemex.index import segment

# Ten thousand words are a valid query; what stands further back in a longer text adds nothing but time.
LONGEST_QUERY = 100_000
MOST_PHRASES = 8
LONGEST_PHRASE = 64
# The characters of a word, each by itself: words that share one often mean the same (书 and 书籍).
CHARACTER_WEIGHT = 0.3
# A word of four characters is three pairs, each sharing its characters: they say less than three words.
RUN_WEIGHT = 0.5
# Two words that may be one name (`git hub`); their neighbourhood counts already.
JOIN_WEIGHT = 0.4

_QUOTED = re.compile('"([^"]+)"|“([^“”]+)”')
# The signs that make another name of a word (`c` is not `c++`) are seen in its extras only.
_SIGNED = re.compile(r"\A[.#]|[+#%]\Z")


class Phrase(NamedTuple):
    """A text in double quotes: the FTS5 expression that finds memories which may hold it, and what tells.

    `pattern` is looked for in the stream with a blank on both sides.
    """

    expression: str
    pattern: re.Pattern[str]


class Query(NamedTuple):
    """What is looked for.

    `terms`: token → what it weighs before its rarity is known. `words`: those that are atoms. `joins`:
    neighbours written as one, looked for where memories have them. `aside`: what only adds to the score of a
    memory that holds a term, as the single characters of longer words do. `pairs`: atoms that stand one after
    the other in the query, words of grammar left out. `phrases` must each be in a hit, and are all that is
    asked for if `only_phrases`.
    """

    text: str
    terms: dict[str, float]
    words: tuple[str, ...]
    joins: dict[str, float]
    aside: dict[str, float]
    pairs: frozenset[tuple[str, str]]
    phrases: tuple[Phrase, ...]
    only_phrases: bool

    @property
    def empty(self) -> bool:
        """Nothing in it can be looked for: it is blank, or has no letter, digit or emoji."""
        return not self.terms


def build(text: str, *, cjk: str = "bigram") -> Query:
    """The query that `text` is; `cjk` must be the setting that the index was made with. Never raises.

    Words of grammar are left out, unless there are no others.
    """
    text = segment.normal(text[:LONGEST_QUERY])
    words: dict[str, float] = {}
    spellings: dict[str, float] = {}
    grammar: dict[str, float] = {}
    aside: dict[str, float] = {}
    pairs: set[tuple[str, str]] = set()
    last = ""
    after_run = False
    for piece in segment.pieces(text, cjk=cjk):
        if piece.run and after_run:
            last = ""
        after_run = piece.run
        for atom in piece.atoms:
            if segment.is_function(atom):
                grammar[atom] = grammar.get(atom, 0.0) + 1.0
                continue
            words[atom] = words.get(atom, 0.0) + 1.0
            if last:
                pairs.add((last, atom))
            last = atom
        for extra in piece.extras:
            if piece.run:
                aside[extra] = CHARACTER_WEIGHT
            else:
                spellings[extra] = spellings.get(extra, 0.0) + 1.0
    words = words or grammar
    terms = {
        term: (RUN_WEIGHT if segment.is_run_token(term) else 1.0) * (1.0 + math.log(said))
        for term, said in {**spellings, **words}.items()
    }
    phrases = [
        phrase
        for found in _QUOTED.findall(text)[:MOST_PHRASES]
        if (phrase := _phrase(found[0] or found[1], cjk)) is not None
    ]
    rest = segment.pieces(_QUOTED.sub(" ", text), cjk=cjk) if phrases else []
    return Query(
        text,
        terms,
        tuple(words),
        {join: JOIN_WEIGHT for join in segment.joins(text) if join not in terms},
        {token: weight for token, weight in aside.items() if token not in terms},
        frozenset(pairs),
        tuple(phrases),
        bool(phrases) and all(segment.is_function(atom) for piece in rest for atom in piece.atoms),
    )


def _phrase(text: str, cjk: str) -> Phrase | None:
    pieces = segment.pieces(text, cjk=cjk)
    atoms = segment.sequence(text, cjk=cjk)[:LONGEST_PHRASE]
    if not atoms:
        return None
    # What begins or ends with less than a whole gram may go on in the memory.
    starts_open = segment.is_short(atoms[0], cjk)
    ends_open = segment.is_short(atoms[-1], cjk)
    whole = atoms[starts_open : len(atoms) - ends_open]
    expression = f'"{" ".join(atom for atom in whole if atom != segment.GAP)}"'
    if not whole:
        expression = " AND ".join(f'("{atom}" OR "{atom}"*)' for atom in dict.fromkeys(atoms))
    signed = [extra for piece in pieces for extra in piece.extras if _SIGNED.search(extra)]
    for extra in signed:
        expression += f' AND "{extra}"'
    pattern = " ".join(re.escape(atom) for atom in atoms)
    pattern = ("[^ ]*" if starts_open else "(?<= )") + pattern + ("[^ ]*" if ends_open else "(?= )")
    also = "".join(f"(?=.* {re.escape(extra)} )" for extra in signed)
    return Phrase(expression, re.compile(f"\\A{also}.*?{pattern}" if also else pattern))
