"""How text becomes the tokens of the memory index: one cutting rule for both sides, memory and query.

A stream has three fields, kept apart by `FIELD_MARK`: the *atoms* of the body in reading order, the *extras*
of the body in any order, and the atoms and extras of tags and aliases. Atoms are the smallest units that
stand in the text one after the other, so that "adjacent in the text" is "adjacent in the stream":

- words: the parts of identifiers (camelCase, snake_case, letters from digits), lower case, without accents,
  stemmed by Snowball where the script has a stemmer;
- pairs of characters of Han, kana and hangul, never across a gap; a function character ends a section of them
  and stands alone;
- triples of characters of Thai, Lao, Khmer and Burmese, which are written without blanks between words.

Extras are the other spellings by which the same place may be asked for: an identifier as a whole
(`maxRetryCount`, `max_retry_count` and `max-retry-count` are one), `1.2.3`, `c++`, `#12`, `.env`, `40%`, the
accented form of a word, and single characters of Han.

Everything here is on the path of every search: only light imports, tables made at first use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import Stemmer

RULES_VERSION = 2
# FTS5's `ascii` tokenizer keeps every character above 127 and ASCII letters and digits; these four are what
# our tokens use beside them. Blanks, FIELD_MARK and GAP are no token characters, so FTS5 does not index them.
FTS_TOKENIZER = "ascii tokenchars '.+#%'"
# The arguments of the FTS5 table after its one column. Detail stays full: a contentless table with less
# detail has no term counts, so that its bm25() is 0 for every row and "the best hundred" become any hundred.
FTS_OPTIONS = f"content='', detail=full, tokenize=\"{FTS_TOKENIZER}\""
FIELD_MARK = "|"
GAP = ","
# Longer stretches without a blank are data (base64, minified code), not words that anybody asks for.
LONGEST = 64

# Words that carry grammar, not matter: indexed, because a phrase may need them, but neither counted nor
# scored.
STOPWORDS = frozenset(
    """a about above actually after again against ah all already also am an and any are aren as at be because
    been before being below between both but by can cannot could couldn d did didn do does doesn doing don
    down during each few for from further had hadn has hasn have haven having he hello her here hers
    herself hi him himself his hmm how i if in into is isn it its itself just let ll m many may maybe me
    might more most much mustn my myself no nor not of off oh ok okay on once only or other ought our ours
    ourselves out over own perhaps please quite rather re really s same shall shan she should shouldn so
    some soon such t than thanks that the their theirs them themselves then there these they this those
    through to too um under until up us ve very was wasn we well were weren what when where whether which
    while who whom whose why will with won would wouldn wow yeah yes yet you your yours yourself
    yourselves""".split()  # noqa: SIM905
)
# Function characters of Chinese and particles of Japanese.
FUNCTION_CHARACTERS = frozenset(
    "的了着在是和与及或也都就而把被让给吗呢吧啊呀嘛么们我你您他她它这那哪之其谁什怎很没个"
)
PARTICLES = frozenset("はがをにでとのもへ")
FUNCTION_TOKENS = STOPWORDS | FUNCTION_CHARACTERS | PARTICLES | {GAP}

# Han, kana and bopomofo, hangul; then Thai, Lao, Burmese and Khmer letters.
_RUN_RANGES = (
    ("\u2e80", "\u2fd5"),
    ("\u3005", "\u3007"),
    ("\u3021", "\u3029"),
    ("\u3041", "\u3096"),
    ("\u309d", "\u309f"),
    ("\u30a1", "\u30fa"),
    ("\u30fc", "\u30ff"),
    ("\u3105", "\u312f"),
    ("\u3131", "\u318e"),
    ("\u31f0", "\u31ff"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\ua960", "\ua97c"),
    ("\uac00", "\ud7fb"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
    ("\u1100", "\u11ff"),
    ("\u0e01", "\u0e3a"),
    ("\u0e40", "\u0e4e"),
    ("\u0e81", "\u0ece"),
    ("\u1000", "\u103f"),
    ("\u1050", "\u109f"),
    ("\u1780", "\u17d3"),
)
# Where the script changes, a word ends; each range by itself, because a set of many is slow to compile.
_SCRIPTS = "([\u30a1-\u30ff\u31f0-\u31ff]+|[\uac00-\ud7fb]+|[\u0e01-\u109f]+|[\u1780-\u17d3]+)"
# Marks that belong to the letter before them; without them a Hindi or an Arabic word would fall apart.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903"
    "\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd"
    "\u0b01-\u0b03\u0b3c-\u0b4d\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c4d\u0c81-\u0c83\u0cbc-\u0ccd"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0dca-\u0ddf\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff"
)
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
# Invisible characters that editors and keyboards put inside words.
_INVISIBLE = "[\u00ad\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]+"
# An identifier: words joined by one of `_ - . '`, with the signs that are part of some names. A comma joins
# only the groups of a number.
_CHUNK = r"(?:(?<!\w)[.#])?{w}+(?:(?:_+|[-.'’]|(?<=[0-9]),(?=[0-9]{{3}}(?![0-9]))){w}+)*(?:\+\+|[#%](?!\w))?"
_ASCII_CHUNK = re.compile(_CHUNK.format(w="[A-Za-z0-9]"))
_JOINT = "(_+|[-.'’,])"
_PARTS = "[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
# An object id of git, or the beginning of one; a word with a number has other letters too.
_HASH = "(?i)(?=.*[0-9])(?=.*[a-f])[0-9a-f]{7,40}\\Z"
_NUMBER = r"[0-9]+(?:\.[0-9]+)+"
_TWO_WORDS = r"\b([A-Za-z0-9]+)(?= ([A-Za-z0-9]+)\b)"
_CLITICS = frozenset(("s", "t", "re", "ve", "ll", "d", "m"))
# Letters without a decomposition, as people spell them on a plain keyboard.
_PLAIN = str.maketrans({"đ": "d", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th"})
# Scripts that name their language well enough to choose a stemmer; Latin words are stemmed as English.
_STEMMER_BY_SCRIPT = (
    ("\u0370", "\u0400", "greek"),
    ("\u0400", "\u0530", "russian"),
    ("\u0530", "\u0590", "armenian"),
    ("\u0600", "\u0700", "arabic"),
    ("\u0900", "\u0980", "hindi"),
    ("\u0b80", "\u0c00", "tamil"),
)
_GRAM = {"bigram": 2, "trigram": 3}
_STORE_SIZE = 40_000


class Indexed(NamedTuple):
    """A memory's text as the index keeps it; `length` counts the atoms that carry matter."""

    stream: str
    length: int


class Piece(NamedTuple):
    """What one stretch of text becomes: its atoms in order, its extras, how many atoms carry matter.

    `run` says that the stretch is of a script without blanks: two of them side by side have a gap between.
    """

    atoms: tuple[str, ...]
    extras: tuple[str, ...]
    matter: int
    run: bool


_NOTHING = Piece((), (), 0, False)


def index_text(body: str, tags: Sequence[str], aliases: Sequence[str], *, cjk: str = "bigram") -> Indexed:
    """The stream and the length of a memory. Any text is valid. `cjk` is the setting `cjkTokenizer`."""
    gram = _GRAM[cjk]
    atoms, extras, count = _field(body, gram)
    labels = ""
    if tags or aliases:
        cut = [_field(label, gram) for label in (*tags, *aliases)]
        count += sum(one[2] for one in cut)
        labels = f" {GAP} ".join(f"{one[0]} {GAP} {one[1]}" for one in cut)
    return Indexed(f"{atoms} {FIELD_MARK} {extras} {FIELD_MARK} {labels}", count)


def tokens(text: str, *, cjk: str = "bigram") -> list[str]:
    """The atoms of `text` that carry matter, in order; all of them where none does."""
    atoms = [atom for piece in pieces(text, cjk=cjk) for atom in piece.atoms]
    return [atom for atom in atoms if not is_function(atom)] or atoms


def sequence(text: str, *, cjk: str = "bigram") -> list[str]:
    """All atoms of `text` in order, with GAP where two runs are not adjacent: what a phrase looks like."""
    atoms: list[str] = []
    after_run = False
    for piece in pieces(text, cjk=cjk):
        if piece.run and after_run:
            atoms.append(GAP)
        after_run = piece.run
        atoms += piece.atoms
    return atoms


def is_function(token: str) -> bool:
    """Whether `token` only carries grammar: a stop word, a function character, a particle."""
    return token in FUNCTION_TOKENS


def is_run_token(token: str) -> bool:
    """Whether `token` is of a script that is cut into pairs or triples of characters."""
    return token >= "\u0e00" and _in_run(token[0])


def is_short(token: str, cjk: str) -> bool:
    """Whether `token` is less than a whole gram of a run of characters."""
    return is_run_token(token) and len(token) < (3 if _is_unspaced(token[0]) else _GRAM[cjk])


def pieces(text: str, *, cjk: str = "bigram") -> list[Piece]:
    """The stretches of `text`, in order, each cut."""
    gram = _GRAM[cjk]
    return [_cut(stretch, gram) for stretch in _stretches(text)]


def normal(text: str) -> str:
    """`text` in the one form that is cut; applying it twice changes nothing. Case stays.

    NFKC makes full and half width, ligatures, composed and decomposed characters one.
    """
    if text.isascii():
        return text
    import unicodedata  # a search for ASCII does not need it

    return unicodedata.normalize("NFKC", re.sub(_INVISIBLE, "", text))


_stores: dict[int, dict[str, tuple[str, str, int, bool]]] = {2: {}, 3: {}}


def _field(text: str, gram: int) -> tuple[str, str, int]:
    """Atoms and extras of `text`, each joined by blanks, and how many atoms carry matter."""
    atoms: list[str] = []
    extras: list[str] = []
    count = 0
    store = _stores[gram]
    after_run = False
    for stretch in _stretches(text):
        entry = store.get(stretch)
        if entry is None:
            piece = _cut(stretch, gram)
            entry = (" ".join(piece.atoms), " ".join(piece.extras), piece.matter, piece.run)
            if len(stretch) <= LONGEST:  # words come again; what is longer seldom does
                if len(store) >= _STORE_SIZE:
                    store.clear()
                store[stretch] = entry
        if entry[3] and after_run:
            atoms.append(GAP)
        after_run = entry[3]
        if entry[0]:
            atoms.append(entry[0])
        if entry[1]:
            extras.append(entry[1])
        count += entry[2]
    return " ".join(atoms), " ".join(extras), count


class _Scripts:
    """What is made at the first text that is not ASCII: it costs more than a search for ASCII may."""

    def __init__(self) -> None:
        run = "".join(f"{low}-{high}" for low, high in _RUN_RANGES)
        plain = r"[^\W_]"
        self.run = re.compile(f"([{run}]+)")
        self.plain = re.compile(_CHUNK.format(w=plain) + f"|[{_EMOJI}]")
        self.marked = re.compile(_CHUNK.format(w=f"(?:{plain}|[{_MARKS}])") + f"|[{_EMOJI}]")
        self.change = re.compile(_SCRIPTS)
        self.alone = {ord(char): f"\0{char}\0" for char in FUNCTION_CHARACTERS | PARTICLES}


_scripts: _Scripts | None = None


def _of_scripts() -> _Scripts:
    global _scripts  # noqa: PLW0603 - made once
    if _scripts is None:
        _scripts = _Scripts()
    return _scripts


def _stretches(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_CHUNK.findall(text)
    scripts = _of_scripts()
    stretches: list[str] = []
    for number, part in enumerate(scripts.run.split(normal(text))):
        if number % 2:
            stretches.append(part)
        elif part.isascii():
            stretches += _ASCII_CHUNK.findall(part)
        elif re.search("[\u0300-\u1fff]", part):
            stretches += scripts.marked.findall(part)
        else:
            stretches += scripts.plain.findall(part)
    return stretches


def _sections(run: str) -> list[str]:
    """`run` cut before and after each function character, and where the script changes."""
    scripts = _of_scripts()
    return [
        section
        for part in run.translate(scripts.alone).split("\0")
        for section in (scripts.change.split(part) if len(part) > 1 else (part,))
        if section
    ]


def _cut(stretch: str, gram: int) -> Piece:
    first = stretch[0]
    if stretch.isascii() and stretch.isalpha() and _is_one_word(stretch):
        # Most stretches are such words; `_cut_chunk` would say the same in three times the time.
        atom = _atom(stretch)
        return Piece((atom,), (), int(atom not in STOPWORDS), False)
    if first < "\u0e00":
        return _cut_chunk(stretch)
    if _in_run(first):
        return _cut_run(stretch, gram)
    if first.isalnum():
        return _cut_chunk(stretch)
    return Piece((stretch,), (), 1, False)


def _is_one_word(letters: str) -> bool:
    """Whether the case of `letters` joins nothing: not camelCase."""
    return letters.islower() or letters.istitle() or letters.isupper()


def _in_run(char: str) -> bool:
    return any(low <= char <= high for low, high in _RUN_RANGES)


def _is_unspaced(char: str) -> bool:
    return "\u0e00" <= char < "\u1100" or "\u1780" <= char < "\u1800"


def _cut_run(run: str, gram: int) -> Piece:
    atoms: list[str] = []
    extras: list[str] = []
    count = 0
    for section in _sections(run):
        if len(section) == 1:
            atoms.append(section)
            count += section not in FUNCTION_CHARACTERS and section not in PARTICLES
            continue
        unspaced = _is_unspaced(section[0])
        size = 3 if unspaced else gram
        grams = [section[i : i + size] for i in range(len(section) - size + 1)] or [section]
        atoms += grams
        count += len(grams)
        if not unspaced:
            if size == 3 and len(section) > 2:
                extras += [section[i : i + 2] for i in range(len(section) - 1)]
            extras += section
    return Piece(tuple(atoms), tuple(extras), count, True)


def _cut_chunk(chunk: str) -> Piece:
    lead = chunk[0] if chunk[0] in ".#" else ""
    tail = "++" if chunk.endswith("++") else chunk[-1] if chunk[-1] in "#%" else ""
    core = chunk[len(lead) : len(chunk) - len(tail)]
    split = re.split(_JOINT, core)
    atoms: list[str] = []
    extras: list[str] = []
    names: list[list[str]] = [[]]  # the parts of the name between two dots
    for joint, word in zip(["", *split[1::2]], split[::2], strict=True):
        if joint == "," and atoms:  # 10,000 is one number
            atoms[-1] += word
            names[-1][-1] += word
            continue
        parts = _parts(word)
        atoms += [atom for part in parts if (atom := _atom(part))]
        if joint in ("'", "’") and word.lower() in _CLITICS:
            continue
        if joint == ".":
            names.append([])
        elif len(parts) > 1 and names[-1]:
            extras.append(_whole(parts))
        names[-1] += parts
        extras += [form for part in parts if (form := _accented(part))]
    whole = _whole([part for name in names for part in name])
    if len(names) > 1:
        extras += [_whole(name) for name in names if len(name) > 1]
        if core.isascii():
            extras += [number for number in re.findall(_NUMBER, core) if number != whole]
    if sum(len(name) for name in names) > 1:
        extras.append(whole)
    elif tail:
        extras.append(whole + tail)
    if lead and whole:
        extras.append(lead + whole)
    matter = sum(atom not in STOPWORDS for atom in atoms)
    return Piece(tuple(atoms), tuple(dict.fromkeys(extra for extra in extras if extra)), matter, False)


def _parts(word: str) -> list[str]:
    """The parts of one word: camelCase and letters from digits, but a hash or a key is left whole."""
    if word.isalpha() and _is_one_word(word):
        return [word]
    if len(word) > 40:
        return [word]
    if not word.isascii():
        return re.findall(r"\d+|\D+", word)
    if re.match(_HASH, word):
        return [word]
    parts: list[str] = re.findall(_PARTS, word)
    return [word] if sum(part.isdigit() for part in parts) > 2 else parts


def joins(text: str) -> list[str]:
    """Each two words of `text` with one blank between, as one word: `git hub` may be written `GitHub`."""
    return [
        _whole([one, other])
        for one, other in re.findall(_TWO_WORDS, text)
        if one.lower() not in STOPWORDS and other.lower() not in STOPWORDS
    ]


def _whole(parts: list[str]) -> str:
    """The parts as one word, whatever joined them; only numbers keep a dot between (1.2.3 is not 123)."""
    whole = ""
    for part in parts:
        plain = _folded(part)
        if whole and plain and whole[-1].isdigit() and plain[0].isdigit():
            whole += "."
        whole += plain
        if len(whole) > LONGEST:
            break
    whole = whole[:LONGEST]
    return _stem(whole) if whole.isalpha() else whole


def _atom(part: str) -> str:
    plain = _folded(part)
    if plain in STOPWORDS:
        return plain
    return _stem(plain) if plain and not plain[0].isdigit() else plain


def _folded(part: str) -> str:
    """Lower case, without accents where letters have a plain form, digits as ASCII; at most LONGEST long."""
    if part.isascii():
        return part.lower()[:LONGEST]
    import unicodedata  # a search for ASCII does not need it

    if part.isdecimal():
        return "".join(str(unicodedata.decimal(char)) for char in part)[:LONGEST]
    low = part.casefold().translate(_PLAIN)
    apart = unicodedata.normalize("NFKD", low)
    plain = re.sub("[\u0300-\u036f\u064b-\u065f\u0591-\u05bd]", "", apart)
    return unicodedata.normalize("NFKC", plain)[:LONGEST]


def _accented(part: str) -> str:
    """The lower case form of `part` with its accents, where it has any; else ""."""
    if part.isascii() or part.isdecimal():
        return ""
    low = normal(part.casefold())[:LONGEST]
    return "" if low == _folded(part) else low


_stemmers: dict[str, Stemmer.Stemmer] = {}


def _stem(word: str) -> str:
    language = "english"
    if not word.isascii():
        first = word[0]
        language = next((name for low, high, name in _STEMMER_BY_SCRIPT if low <= first < high), "english")
    stemmer = _stemmers.get(language)
    if stemmer is None:
        stemmer = _stemmers[language] = Stemmer.Stemmer(language)
    stem: str = stemmer.stemWord(word)
    return stem or word
