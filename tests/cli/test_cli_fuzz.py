"""Whatever is typed, whatever lies in the folders: an answer, a documented exit code, no traceback, no hang.

The default suite runs a short part of the same stream of cases that the slow tests run in full:
`pytest -m slow tests/cli/test_cli_fuzz.py`.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys

import pytest

from openmemex.cli import fast
from openmemex.memory.ids import is_id, new_id, normal_id_part

CODES = {0, 1, 2, 3, 4}
# Written as texts, because that is how they are read best.
COMMANDS, OPTIONS, VALUES = (
    text.split()
    for text in (
        """
        add edit supersede forget status search list show where scopes submit pull sync-status reindex doctor
        config help version
        """,
        """
        --json --plain --verbose --help -h --limit --scope --type --tag --state --all --explain --role
        --importance --alias --source --ref --path --expires --file --body --soft --yes --branch --onto --base
        -m --dry-run --version -- - --at --nope -x --limit=3 --tag=a,b --json=1 --project --message
        """,
        """
        personal project org team public fact gotcha warning decision instruction knowledge high low draft
        active retracted archived superseded deprecated user tool inference 30d 2026-12-31 never soon 0 1 5 -1
        1e9 99999999999999999999 ٣ get set unset list memoryDir captureAliases true main HEAD HEAD~1
        refs/heads/x ../../etc/passwd /dev/null . .. ~ C:\\x [red]x[/red] :warning: ${jndi} %s {0} * ? ' " `
        """,
    )
)
ALPHABETS = (
    "abcdefghij klmnop",
    "()\"'*:^-+~{}[]<>=&|!@#$%;,./\\?`_",
    "数据库连接池必须关闭のテスト한국어ไทย",
    "\x00\x01\x07\x08\x1b\x7f\x9b\r\n\t",
    "\u200b\u200c\u200d\u202e\u2066\ufeff\u2028\U000e0041\ufe0f",
    "🤝👨\u200d👩🏽é\u0301ß İıŁ",
    "\ud800\udfff\udcff",
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
)
OPERATORS = (
    "NEAR",
    "AND",
    "OR",
    "NOT",
    "a AND",
    "NEAR(a b, 5)",
    "col:x",
    "x*",
    '"',
    "'';--",
    "^a",
    "{a b}:c",
)


class Case:
    """One stream of cases, the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, most=24):
        pick = self.random
        if pick.random() < 0.1:
            return pick.choice(OPERATORS)
        letters = "".join(pick.sample(ALPHABETS, pick.randint(1, 3)))
        size = pick.choice((0, 1, 2, 5, most, most))
        text = "".join(pick.choice(letters) for _ in range(size))
        return text * pick.choice((1,) * 20 + (500,))

    def id(self, known):
        pick = self.random
        whole = pick.choice(known) if known and pick.random() < 0.7 else new_id(pick.randrange(1 << 47))
        way = pick.randrange(9)
        if way < 3:
            return whole
        if way == 3:
            return whole[: pick.randint(1, 25)]
        if way == 4:
            return whole[-pick.randint(1, 25) :]
        if way == 5:
            return whole.lower()
        if way == 6:
            return pick.choice((" " + whole, whole + "\0", "../" + whole, whole + "A", whole + "/../x", ""))
        return self.text(8)

    def words(self, known):
        pick = self.random
        words = [pick.choice(COMMANDS)] if pick.random() < 0.9 else []
        for _ in range(pick.choice((0, 1, 1, 2, 2, 3, 5, 8))):
            way = pick.random()
            if way < 0.35:
                words.append(pick.choice(OPTIONS))
            elif way < 0.6:
                words.append(pick.choice(VALUES))
            elif way < 0.8:
                words.append(self.id(known))
            else:
                words.append(self.text())
        return words

    def file(self):
        """The bytes of something that lies in a memory folder."""
        pick = self.random
        memory_id = new_id(pick.randrange(1 << 47))
        head = f"id: {memory_id}\nschema_version: 2\nscope: personal\nscope_key: personal\n"
        names = ("type", "status", "tags", "created_at", "supersedes", "x", "expires_at")
        values = ("fact", "[a, b]", "{", "&a [*a]", "2026-01-01", "null", memory_id, "|", "retracted")
        fields = [
            f"{pick.choice(names)}: {pick.choice((*values, self.text(8)))}" for _ in range(pick.randrange(5))
        ]
        text = "---\n" + head + "\n".join(fields) + "\n---\n" + self.text(200)
        raw = bytearray(text.encode("utf-8", "surrogatepass"))
        for _ in range(pick.choice((0, 0, 0, 1, 3))):
            raw[pick.randrange(len(raw))] = pick.randrange(256)
        if pick.random() < 0.1:
            raw = raw[: pick.randrange(len(raw))]
        return memory_id, bytes(raw)


class Hang(BaseException):
    """A case took longer than any may."""


@pytest.fixture
def place(make_repo, home, monkeypatch):
    """A repository with some memories, and nobody at the keyboard."""
    repo = make_repo(origin="https://example.org/team/app.git")
    monkeypatch.chdir(repo)
    monkeypatch.setattr(sys, "argv", ["open-memex"])
    for text in ("Deploys need the VPN", "Deploys need a ticket", "数据库连接池必须关闭"):
        assert fast.main(["add", text]) == 0
    assert fast.main(["add", "I like short messages", "--scope", "personal"]) == 0
    return repo


def known_ids(home):
    return sorted(path.stem for path in home.data.glob("memories/*/*.md") if is_id(path.stem))


def run(words, capsys):
    """Run one case in this process: its exit code, after the checks that hold for each."""

    def hang(*_):
        raise Hang(f"no answer within 30 seconds: {words!r:.400}")

    old = signal.signal(signal.SIGALRM, hang)
    signal.alarm(30)
    try:
        code = fast.main(list(words))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    out, err = capsys.readouterr()
    check(words, code, out, err)
    return code


def check(words, code, out, err):
    told = f"{words!r:.400}: exit {code}\n{out[:500]}\n{err[:500]}"
    assert code in CODES, told
    assert "Traceback" not in out + err and "fault in open-memex" not in err, told
    (out + err).encode("utf-8")
    if code in (1, 2, 3) and words[:1] not in (["doctor"], ["forget"]):
        assert err.strip(), told
    options = words[: words.index("--")] if "--" in words else words
    if "--json" in options and not {"-h", "--help", "--version"} & set(options) and code != 0:
        assert isinstance(json.loads(out), dict), told


def cases(seed, number, home, capsys, monkeypatch):
    case = Case(seed)
    known = []
    for at in range(number):
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(case.text().encode("utf-8", "replace")))
        )
        if at % 20 == 0:
            known = known_ids(home)
        way = case.random.random()
        if way < 0.45:
            run(case.words(known), capsys)
        elif way < 0.75:
            query = case.text(60)
            words = ["search", *(["--json"] if case.random.random() < 0.3 else []), "--", query]
            wrong = not query.strip() or any("\ud800" <= char <= "\udfff" for char in query)
            assert run(words, capsys) == (2 if wrong else 0), repr(words)[:400]
        elif way < 0.95:
            ref = case.id(known)
            words = [case.random.choice(("show", "show", "edit", "forget", "status", "submit")), "--", ref]
            code = run(words, capsys)
            if words[0] == "show" and normal_id_part(ref) is None:
                assert code == 2, words
        else:
            memory_id, raw = case.file()
            name = memory_id if case.random.random() < 0.8 else new_id()
            (home.data / "memories" / "personal" / f"{name}.md").write_bytes(raw)
            assert run(["list", "--all", "--limit", "1000"], capsys) == 0
            assert run(["doctor"], capsys) in (0, 1)
            assert run(["reindex"], capsys) in (0, 4)


def test_five_hundred_random_calls(place, home, capsys, monkeypatch):
    cases(1, 500, home, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_twenty_thousand_random_calls(place, home, capsys, monkeypatch, seed):
    cases(seed, 1000, home, capsys, monkeypatch)


def real(words, cwd, environ):
    done = subprocess.run(
        [sys.executable, "-m", "openmemex", *(os.fsencode(word) for word in words)],
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    check(words, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def _may_be_handed_over(word):
    return "\0" not in word and not any("\ud800" <= c <= "\udc7f" or "\udd00" <= c <= "\udfff" for c in word)


def processes(seed, number, place, home):
    case = Case(seed)
    done = 0
    while done < number:
        words = case.words(known_ids(home))
        if not all(_may_be_handed_over(word) for word in words):
            # The system can't hand such words to a process.
            continue
        done += 1
        locale = case.random.choice(
            (
                {},
                {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
                {"PYTHONIOENCODING": "ascii"},
            )
        )
        real(words, place, locale)


def test_ten_random_calls_as_processes(place, home):
    processes(2, 10, place, home)


@pytest.mark.slow
def test_two_hundred_random_calls_as_processes(place, home):
    processes(3, 200, place, home)
