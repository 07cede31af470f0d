"""Which memories answer a query best: the best by FTS5's `bm25()` are fetched and scored anew from their
streams.

The text score of a memory is a sum over the query's terms (BM25: Robertson and Zaragoza, 2009), with

- k1 0.9; b growing with the average length, from 0.6 for chat to 0.75 for articles, over (length / average)
  ** 0.75, so that one long text among short ones is not buried for being long (the slope at the average is b
  0.4 to 0.55); the whole multiplied by the root of how often the text repeats its words, since a text that
  says everything twice says nothing more (so it is with source code);
- tags and aliases counted twice; single characters of a longer word by a part;
- a share for neighbours in the query that are neighbours in the memory (sequential dependence: Metzler and
  Croft, 2005), and one for how much of the query the best stretch of the memory holds;

divided by the most that the query's words could give, so that a query which the memories do not cover scores
low.

Then come factors: review state, status, importance, age, scope, source, paths. Each is a few percent and
their product stays within `FACTOR_RANGE`: they order near ties and can't bury a clearly better text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from openmemex.index.query import Query
from openmemex.index.segment import FIELD_MARK, FUNCTION_TOKENS, is_run_token

CANDIDATES = 100
# A query of thousands of words is cut to those that tell most.
MOST_TERMS = 64
# How many index entries FTS5 may have to score before the commonest terms are left out of the fetch.
POSTINGS = 6_000
# What a phrase in quotes may cost: rows looked at until enough are found that hold it.
MOST_VERIFIED = 10_000

K1 = 0.9
LONGEST_B = 0.75
SHORT = 3.0
LENGTH_POWER = 0.75
REPETITION_POWER = 0.5
LABEL_WEIGHT = 2.0
# Two pairs of characters side by side are three characters, much of which each pair has said already.
PAIR_WEIGHT = 0.4
RUN_PAIR_WEIGHT = 0.1
# One word may stand between two neighbours ("the staging database password").
PAIR_DISTANCE = 2
STRETCH_WEIGHT = 0.4
STRETCH = 30
# What begins as a word that no memory has may be that word in another form.
PREFIX_WEIGHT = 0.5

# Lowest and highest product of all factors: 1.07 / 0.935 is below 1.15, so that a text that is better by 15%
# stays before whatever the factors say.
FACTOR_RANGE = (0.935, 1.07)
_REVIEW = {"approved": 1.01, "published": 1.01, "rejected": 0.96}
_STATUS = {"deprecated": 0.95}
_IMPORTANCE = {"high": 1.015, "low": 0.985}
# Half of this goes in each half-life: enough to prefer the newer of two that say the same.
_RECENCY = 0.015
_HALF_LIFE_DAYS = 90.0
_OWN_SCOPE, _OTHER_SCOPE = 1.012, 0.988
_INFERENCE = 0.965
_PATHS_FIT, _PATHS_MISS = 1.015, 0.99
# More stars than this in one glob may cost a regex time without end.
MOST_STARS = 6
# Something else has taken their place: never before a memory that holds, whatever they say.
_BEHIND = frozenset({"superseded", "retracted", "archived"})


if TYPE_CHECKING:
    # Classes cost start-up time, and these are for the reader and the type checker.
    class Row(Protocol):
        """What the factors look at."""

        @property
        def id(self) -> str: ...
        @property
        def scope(self) -> str: ...
        @property
        def type(self) -> str: ...
        @property
        def status(self) -> str: ...
        @property
        def review_state(self) -> str: ...
        @property
        def importance(self) -> str: ...
        @property
        def source(self) -> str: ...
        @property
        def updated_at(self) -> str: ...
        @property
        def paths(self) -> Sequence[str]: ...

    class Corpus(Protocol):
        """The memories as the ranking sees them. `size` and `average_length` are of the whole index."""

        @property
        def size(self) -> int: ...
        @property
        def average_length(self) -> float: ...

        def document_frequency(self, terms: Sequence[str]) -> Mapping[str, int]:
            """How many memories hold each term; a term that none holds may be left out."""

        def matching(self, expression: str, limit: int) -> Sequence[tuple[int, float]]:
            """The visible rows that match, best `bm25()` first, at most `limit`."""

        def load(self, rowids: Sequence[int]) -> Sequence[Candidate]:
            """These rows, in any order."""


class Candidate(NamedTuple):
    """A memory that may be a hit: its row in the index, and the stream and length of `segment.index_text`."""

    rowid: int
    stream: str
    length: int
    row: Row


class Context(NamedTuple):
    """Where and when is asked: seconds since 1970, and the folder relative to the repository's root."""

    now: float
    cwd: str = ""


class Ranked(NamedTuple):
    """The hits, best first, as (rowid, score, why); `why` is filled when asked for.

    `expression` matches every memory that holds a term of the query (what a count of all matches is to use);
    `fetched` is the one that the candidates came by, which may leave out common terms.
    """

    hits: list[tuple[int, float, dict[str, Any]]]
    expression: str
    fetched: str = ""


def rank(query: Query, corpus: Corpus, *, limit: int, context: Context, explain: bool = False) -> Ranked:
    """The `limit` best memories for `query`. Same input, same order: ties go to the newer, then to the id."""
    if query.empty or limit < 1 or corpus.size < 1:
        return Ranked([], "")
    weighed = _Weighed(query, corpus)
    if (not weighed.present and not weighed.prefixes) or weighed.most <= 0.0:
        return Ranked([], "")  # nothing of it is here, or nothing of it weighs (a lone accent)

    def ordered(candidates: Sequence[Candidate], fetched: str) -> Ranked:
        score = _Scorer(weighed, corpus.average_length, candidates)
        hits = [
            (text / weighed.most * combined(candidate.row, context), candidate)
            for candidate in candidates
            if (text := score.text(candidate)) > 0.0
        ]
        hits.sort(key=_place)
        return Ranked(
            [(c.rowid, s, score.why(c, s, context) if explain else {}) for s, c in hits[:limit]],
            expression,
            fetched,
        )

    if query.phrases:
        holding, expression = _holding_phrases(query, weighed, corpus, limit)
        if holding or query.only_phrases:
            return ordered(holding, expression)
    most = max(CANDIDATES, limit)
    expression = weighed.expression(weighed.present)
    rare = weighed.within(POSTINGS)
    fetched = weighed.expression(rare)
    ranked = ordered(corpus.load([rowid for rowid, _ in corpus.matching(fetched, most)]), fetched)
    if len(rare) < len(weighed.present) and weighed.may_miss(rare, ranked, limit):
        wider = weighed.within(POSTINGS * 5)
        if len(wider) > len(rare):
            fetched = weighed.expression(wider)
            ranked = ordered(corpus.load([rowid for rowid, _ in corpus.matching(fetched, most)]), fetched)
    return ranked


class _Weighed:
    """The query's terms with what each is worth in this index."""

    def __init__(self, query: Query, corpus: Corpus) -> None:
        self.frequency = corpus.document_frequency([*query.terms, *query.joins, *query.aside])
        self.size = corpus.size
        self.pairs = query.pairs
        self.weights = {
            term: weight * self.idf(self.frequency.get(term, 0)) for term, weight in query.terms.items()
        }
        for join, weight in query.joins.items():
            if join in self.frequency:
                self.weights[join] = weight * self.idf(self.frequency[join])
        self.aside = {
            token: weight * self.idf(count)
            for token, weight in query.aside.items()
            if (count := self.frequency.get(token, 0))
        }
        held = [term for term in self.weights if self.frequency.get(term)]
        if not held:  # where triples are indexed, pairs are the parts of a word that nobody wrote
            held = [token for token in self.aside if len(token) > 1]
            self.weights.update((token, self.aside.pop(token)) for token in held)
        held.sort(key=lambda term: (-self.weights[term], term))
        self.present = held[:MOST_TERMS]
        room = MOST_TERMS - len(self.present)
        absent = sorted(term for term in query.terms if not self.frequency.get(term))
        words = set(query.words)
        self.prefixes = {
            term: prefix for term in absent[:room] if (prefix := _prefix(term, is_word=term in words))
        }
        # What the words of the query give when each stands once in a memory of average length, all of them in
        # one stretch. Other spellings and single characters only add to that.
        self.most = (1.0 + STRETCH_WEIGHT) * sum(self.weights[term] for term in query.words)

    def idf(self, frequency: int) -> float:
        return math.log(1.0 + (self.size - frequency + 0.5) / (frequency + 0.5))

    def expression(self, terms: Sequence[str]) -> str:
        parts = [f'"{term}"' for term in terms]
        parts += [f'"{prefix}"*' for prefix in dict.fromkeys(self.prefixes.values())]
        return " OR ".join(parts)

    def within(self, postings: int) -> list[str]:
        """The rarest terms that FTS5 can score for `postings` entries; at least one."""
        chosen: list[str] = []
        for term in sorted(self.present, key=lambda term: (self.frequency[term], term)):
            postings -= self.frequency[term]
            if postings < 0 and chosen:
                break
            chosen.append(term)
        return chosen

    def may_miss(self, chosen: Sequence[str], ranked: Ranked, limit: int) -> bool:
        """Whether a memory with none of the chosen terms could stand among the `limit` best.

        The bound is that of MaxScore (Turtle and Flood, 1995), for a memory of average length that says each
        left-out term twice, one after the other.
        """
        left_out = set(self.present).difference(chosen)
        best = sum(self.weights[term] for term in left_out)
        best *= 2.0 * (K1 + 1.0) / (2.0 + K1) + PAIR_WEIGHT + STRETCH_WEIGHT
        last = ranked.hits[limit - 1][1] if len(ranked.hits) >= limit else 0.0
        return last < best / self.most


def _prefix(term: str, *, is_word: bool) -> str:
    """How another form of an unknown word, or the rest of a half-known name, begins; "" if unknown."""
    if is_run_token(term):
        return term if len(term) == 2 else ""
    if not term[-1].isalnum() or len(term) < 3:
        return ""
    return term[: max(5, len(term) - 2)] if is_word and term.isalpha() and len(term) > 3 else term


def _place(hit: tuple[float, Candidate]) -> tuple[bool, float, float, str, int]:
    score, candidate = hit
    row = candidate.row
    # Rounding makes the order of equal texts that of their age, not of the last bit of a sum.
    return (row.status in _BEHIND, -round(score, 9), -_seconds(row.updated_at), row.id, candidate.rowid)


class _Scorer:
    """The text score of a stream."""

    def __init__(self, weighed: _Weighed, average: float, candidates: Sequence[Candidate]) -> None:
        self._weights = {term: weighed.weights[term] for term in weighed.present}
        self._aside = weighed.aside
        self._pairs = weighed.pairs
        self._average = max(average, 1.0)
        self._b = LONGEST_B * self._average / (self._average + SHORT)
        self._most = weighed.most
        # Other forms of words that no memory has → the word.
        self._forms: dict[str, str] = {}
        for term, prefix in weighed.prefixes.items():
            begins = re.compile(f"(?<![^ ]){re.escape(prefix)}[^ ]*")
            count = 0
            for candidate in candidates:
                forms = begins.findall(candidate.stream)
                count += bool(forms)
                for form in forms:
                    if form not in self._weights:
                        self._forms.setdefault(form, term)
            self._weights[term] = PREFIX_WEIGHT * weighed.idf(count)

    def text(self, candidate: Candidate, parts: dict[str, float] | None = None) -> float:
        """The sum that the module's text describes; `parts` takes what each word and each share gives."""
        body, extras, labels = (field.split() for field in candidate.stream.split(FIELD_MARK))
        weights = self._weights
        forms = self._forms
        counts: dict[str, float] = {}
        neighbours: dict[tuple[str, str], float] = {}
        hits: list[tuple[int, str]] = []
        anywhere: set[str] = set()  # tags and extras have no place in the text, so they are near to all of it
        for tokens, weight in ((body, 1.0), (labels, LABEL_WEIGHT)):
            if forms:
                tokens = [forms.get(token, token) for token in tokens]
            found = [(at, token) for at, token in enumerate(tokens) if token in weights]
            before, last = -PAIR_DISTANCE - 1, ""
            for at, token in found:
                counts[token] = counts.get(token, 0.0) + weight
                if at - before <= PAIR_DISTANCE and (last, token) in self._pairs:
                    near = weight / (at - before)
                    neighbours[last, token] = neighbours.get((last, token), 0.0) + near
                before, last = at, token
            if weight == 1.0:
                hits = found
            else:
                anywhere = {token for _, token in found}
        aside: dict[str, float] = {}
        for token in extras:
            if token in self._aside:
                aside[token] = aside.get(token, 0.0) + 1.0
            elif token in weights or token in forms:
                token = forms.get(token, token)
                counts[token] = counts.get(token, 0.0) + 1.0
                anywhere.add(token)
        if not counts:
            return 0.0
        distinct = len(set(body).union(labels).difference(FUNCTION_TOKENS))
        repetition = max(1.0, candidate.length / max(distinct, 1)) ** REPETITION_POWER
        longer = (candidate.length / self._average) ** LENGTH_POWER
        norm = K1 * repetition * (1.0 - self._b + self._b * longer)
        score = 0.0
        for token, count in counts.items():
            part = weights[token] * count * (K1 + 1.0) / (count + norm)
            score += part
            if parts is not None:
                parts[token] = part / self._most
        characters: float = sum(self._aside[t] * n * (K1 + 1.0) / (n + norm) for t, n in aside.items())
        adjacency = 0.0
        for (one, other), count in neighbours.items():
            share = RUN_PAIR_WEIGHT if is_run_token(one) and is_run_token(other) else PAIR_WEIGHT
            adjacency += share * min(weights[one], weights[other]) * count * (K1 + 1.0) / (count + norm)
        stretch = sum(weights[token] for token in anywhere)
        stretch += _best_stretch([hit for hit in hits if hit[1] not in anywhere], weights)
        stretch *= STRETCH_WEIGHT
        if parts is not None:
            parts["(characters)"] = characters / self._most
            parts["(neighbours)"] = adjacency / self._most
            parts["(stretch)"] = stretch / self._most
        return score + characters + adjacency + stretch

    def why(self, candidate: Candidate, final: float, context: Context) -> dict[str, Any]:
        """How a hit came by its score: what each word gives of the text score, each factor, the product."""
        parts: dict[str, float] = {}
        text = self.text(candidate, parts) / self._most
        return {
            "text": round(text, 4),
            "parts": {
                name: round(part, 4) for name, part in sorted(parts.items(), key=lambda p: (-p[1], p[0]))
            },
            "factors": {name: round(one, 4) for name, one in factors(candidate.row, context) if one != 1.0},
            "score": round(final, 4),
        }


def _best_stretch(hits: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """The most that the distinct words of `STRETCH` atoms in a row weigh; `hits` are in order."""
    if not hits:
        return 0.0
    inside: dict[str, int] = {}
    total = best = 0.0
    first = 0
    for at, token in hits:
        count = inside.get(token, 0)
        inside[token] = count + 1
        if not count:
            total += weights[token]
        while at - hits[first][0] >= STRETCH:
            gone = hits[first][1]
            first += 1
            inside[gone] -= 1
            if not inside[gone]:
                total -= weights[gone]
        best = max(best, total)
    return best


def factors(row: Row, context: Context) -> list[tuple[str, float]]:
    """Each factor by name; `combined` makes one of them."""
    own = (row.scope == "personal") == (row.type == "preference")
    seconds = _seconds(row.updated_at)
    age = max(0.0, (context.now - seconds) / 86_400.0)
    return [
        ("review", _REVIEW.get(row.review_state, 1.0)),
        ("status", _STATUS.get(row.status, 1.0)),
        ("importance", _IMPORTANCE.get(row.importance, 1.0)),
        ("recency", 1.0 + _RECENCY * 0.5 ** (age / _HALF_LIFE_DAYS)),
        ("scope", _OWN_SCOPE if own else _OTHER_SCOPE),
        ("source", _INFERENCE if row.source == "inference" else 1.0),
        ("paths", _paths_fit(row.paths, context.cwd)),
    ]


def combined(row: Row, context: Context) -> float:
    """The product of the factors, within `FACTOR_RANGE`."""
    product = math.prod(one for _, one in factors(row, context))
    return min(max(product, FACTOR_RANGE[0]), FACTOR_RANGE[1])


def _seconds(moment: str) -> float:
    from datetime import UTC, datetime  # sqlite3 has loaded it already

    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _paths_fit(globs: Sequence[str], cwd: str) -> float:
    """Whether a memory about `globs` is about the folder `cwd`; 1.0 where that can't be said."""
    if not globs or not cwd:
        return 1.0
    missed = True
    for glob in globs:
        glob = glob.strip("/")
        fixed = re.split(r"[*?\[]", glob, maxsplit=1)[0]
        head = fixed.rpartition("/")[0]
        if fixed == glob:
            if _inside(cwd, glob) or (head and _inside(cwd, head)):
                return _PATHS_FIT
        elif glob.count("*") <= MOST_STARS and re.match(_glob_pattern(glob), cwd + "/x"):
            return _PATHS_FIT
        if not head or _inside(cwd, head) or _inside(head, cwd):
            missed = False
    return _PATHS_MISS if missed else 1.0


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _glob_pattern(glob: str) -> str:
    pattern = re.escape(glob).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*")
    return pattern.replace(r"\*", "[^/]*").replace(r"\?", "[^/]") + r"(?:/.*)?\Z"


def _holding_phrases(
    query: Query, weighed: _Weighed, corpus: Corpus, limit: int
) -> tuple[Sequence[Candidate], str]:
    """The best candidates that hold every phrase of `query`, and the expression that finds them.

    FTS5 finds the words side by side in the whole stream; whether they stand so in the text is seen there.
    """
    needed = " AND ".join(f"({phrase.expression})" for phrase in query.phrases)
    others = " OR ".join(f'"{term}"' for term in weighed.present)
    expression = f"{needed} AND ({needed} OR {others})" if others else needed
    most = max(CANDIDATES, limit)
    ask = most
    held: list[Candidate] = []
    seen = 0
    while True:
        found = corpus.matching(expression, ask)
        for candidate in corpus.load([rowid for rowid, _ in found[seen:]]):
            text = f" {candidate.stream} "
            if all(phrase.pattern.search(text) for phrase in query.phrases):
                held.append(candidate)
        if len(held) >= most or len(found) < ask or ask >= MOST_VERIFIED:
            return held, expression
        seen, ask = len(found), min(ask * 4, MOST_VERIFIED)
