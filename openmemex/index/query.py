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

# Words of grammar of other languages that are written in words, without those that mean something in English.
# They count as such only in a query that has two or more of them, and more than English ones.
_GRAMMAR = {
    "de": """aber auch auf aus bei bis da damit dann das dass dem den der des die dies diese dieser
        doch du durch ein eine einem einen einer eines er es für gibt habe haben ich ihr im ist ja
        kann kein keine können mit muss müssen nach nicht noch nur ob oder sein sich sie sind soll
        über um und uns unser unter vom von vor wann warum was wegen welche welcher welches wem
        wen wenn wer werden wie wieso wird wir wo wurde wurden zu zum zur""",
    "fr": """à au aux avec ce ces cette comme dans de des doit du elle en est et être faire faut il ils
        je la le les leur lui mais ne nos notre nous ont ou où pas pour pourquoi qu quand que quel
        quelle quels quelles qui quoi sa sans se ses sont sur un une vos votre vous y""",
    "es": """a al como cómo con cual cuál cuando cuándo de del desde donde dónde el ella en entre es
        esta está este esto fue ha hay la las lo los más mi muy no nos nuestra nuestro o para pero
        por porque que qué quien quién se ser si sin sobre su sus también tiene un una y ya""",
    "pt": """a ao aos com como da das de dos e é ela ele em entre essa esse esta este eu foi há isso
        mais mas na não nas nos nós o onde os ou para pela pelo por porque qual quando quanto que
        quem se ser seu sua são também tem um uma""",
    "it": """a ad al alla anche che chi ci con così cosa da dal dalla degli dei del della delle di dove
        e è gli ha hanno il in la le lo ma nel nella non o per perché più qual quale quali quando
        quanto questa questo se si sono sua suo tra un una uno""",
    "nl": """aan als bij dan dat de deze dit een en er het hij ik je kan maar met moet naar niet nog om
        onze ook op te tot uit voor waar waarom wanneer wat welke werd wie wij wordt worden ze
        zijn""",
    "ru": """а без был была были было в вам вас во вот все всё вы где да для до его ее её если есть еще
        ещё же за и из или им их к как какая какие какой когда кто ли мы на над нам нас не нет но
        о об он она они от по под почему при с сколько со так также там то того только у уже чего
        чем что чтобы эта эти это этот я""",
}
_HIRAGANA = "[\u3041-\u309f]+\\Z"
# Particles at the end of a Korean word; with the syllable before them they make a pair that is no word.
_KOREAN_ENDS = frozenset("은는이가을를에의로와과도")

_QUOTED = '"([^"]+)"|“([^“”]+)”'
# The signs that make another name of a word (`c` is not `c++`) are seen in its extras only.
_SIGNED = r"\A[.#]|[+#%]\Z"


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
    endings: set[str] = set()
    last = ""
    after_run = False
    for piece in segment.pieces(text, cjk=cjk):
        if piece.run and after_run:
            last = ""
        after_run = piece.run
        if piece.run and len(piece.atoms) > 1 and piece.atoms[-1][-1] in _KOREAN_ENDS:
            endings.add(piece.atoms[-1])
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
    foreign = _foreign_grammar(text, len(grammar))
    if not foreign.issuperset(words):
        grammar.update((word, words.pop(word)) for word in foreign.intersection(words))
    pairs = {pair for pair in pairs if pair[0] in words and pair[1] in words}
    words = words or grammar
    terms = {
        term: (1.0 + math.log(said)) * (_run_weight(term, endings) if segment.is_run_token(term) else 1.0)
        for term, said in {**spellings, **words}.items()
    }
    quotes = '"' in text or "“" in text
    phrases = [
        phrase
        for found in (re.findall(_QUOTED, text)[:MOST_PHRASES] if quotes else ())
        if (phrase := _phrase(found[0] or found[1], cjk)) is not None
    ]
    rest = segment.pieces(re.sub(_QUOTED, " ", text), cjk=cjk) if phrases else []
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


def _foreign_grammar(text: str, english: int) -> set[str]:
    """The atoms of those words of `text` that carry grammar in the language which it has most of."""
    said = set(re.findall(r"[^\W\d_]+", text.lower()))
    best: set[str] = set()
    if len(said) > 2:
        for listed in _GRAMMAR.values():
            found = said.intersection(listed.split())
            if len(found) > max(1, english, len(best)):
                best = found
    return set(segment.tokens(" ".join(sorted(best))))


def _run_weight(token: str, endings: set[str]) -> float:
    """What a pair or triple weighs: less where it is mostly grammar, as in a Korean ending."""
    return RUN_WEIGHT / 2 if token in endings or re.match(_HIRAGANA, token) else RUN_WEIGHT


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
    signed = [extra for piece in pieces for extra in piece.extras if re.search(_SIGNED, extra)]
    for extra in signed:
        expression += f' AND "{extra}"'
    pattern = " ".join(re.escape(atom) for atom in atoms)
    pattern = ("[^ ]*" if starts_open else "(?<= )") + pattern + ("[^ ]*" if ends_open else "(?= )")
    also = "".join(f"(?=.* {re.escape(extra)} )" for extra in signed)
    return Phrase(expression, re.compile(f"\\A{also}.*?{pattern}" if also else pattern))
