"""Secrets are found whole, masked in place, and nothing else is touched."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_examples import ALNUM, EXAMPLES, SHAPED, chars, pem

from openmemex.trust import rules, secrets
from openmemex.trust.rules import RULES
from openmemex.trust.secrets import Span, find, mask

GH = "ghp" + "_mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
AWS = "AK" + "IATESTONLY2MEMEX77"
PW = "n0tR3al9pw"
SHAPES = (
    "{}",
    "the value is {} for now",
    "令牌是{}，别外传。",
    "令牌是{}请勿外传",
    "「{}」",
    'token = "{}"',
    "export KEY={}\n",
    "KEY: '{}',",
    "`{}`",
    "| name | {} |",
    "({})",
    "[{}]",
    "{}.",
    "{}*",
    "**{}**",
    "<b>{}</b>",
    "```\ncurl -H 'Authorization: Bearer {}'\n```",
    '{{"key":"{}"}}',
    "line\\n{}\\nline",
    "x={}&y=1",
    "k%3D{}",
    "{} # pragma: allowlist secret",
)


def values(rule_id: str, count: int = 4) -> list[str]:
    rng = random.Random(rule_id)
    return [EXAMPLES[rule_id](rng) for _ in range(count)]


def kept(value: str) -> int:
    return min(4, len(value) // 3)


def test_every_rule_has_an_example_and_every_example_a_rule():
    assert {rule.id for rule in RULES} == set(EXAMPLES)


def test_no_rule_matches_without_its_literal():
    for rule in RULES:
        if rule.pattern.startswith(rule.literal):
            continue
        value = values(rule.id, 1)[0]
        text = SHAPED.get(rule.id, "{}").format(value)
        assert all(other.literal in text for other in RULES if other.id == rule.id and other.literal in text)
    assert all(rule.literal for rule in RULES)


@pytest.mark.parametrize("rule_id", sorted(EXAMPLES))
def test_a_value_is_masked_whole_in_every_shape_and_nothing_beside_it(rule_id):
    for value in values(rule_id):
        inner = SHAPED.get(rule_id, "{}").format(value)
        for shape in SHAPES:
            if rule_id == "store-password" and shape.startswith("k%3D"):
                continue  # there the scheme is no scheme of a database any more
            text = shape.format(inner)
            masked = mask(text)
            hidden = value[: kept(value)] + "x" * (len(value) - kept(value))
            assert masked.text == text.replace(value, hidden), shape
            assert len(masked.spans) == 1
            assert mask(masked.text) == (masked.text, [])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.id}-{rule.literal}")
def test_every_spelling_of_a_prefix_is_known(rule):
    for value in values(rule.id, 2):
        if rule.id in SHAPED or not rule.pattern.startswith(rules.re.escape(rule.literal)):
            continue
        own = next(r.literal for r in RULES if r.id == rule.id and value.startswith(r.literal))
        if rule.id in ("langsmith", "slack", "openai-project"):
            assert find(rule.literal + value[len(own) :])
        else:
            assert [s.kind for s in find(rule.literal + value[len(own) :])] == [rule.what]


@pytest.mark.parametrize(
    "rule_id", sorted(set(EXAMPLES) - set(SHAPED) - {"azure-ad", "telegram", "google-oauth"})
)
def test_a_token_glued_to_ascii_letters_is_no_token(rule_id):
    value = values(rule_id, 1)[0]
    prefix = next(r.literal for r in RULES if r.id == rule_id and value.startswith(r.literal))
    assert [s for s in find("desk" + prefix + "a-b") if s.start == 4] == []
    assert find(f"x{value[:8]} y") == []


NOTHING = [
    "",
    "We decided to use OAuth for the admin panel.",
    "task-list, risk-assessment-of-the-whole-thing, disk-cache, SKILL.md, key-value-store, sk-learn-like",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b, uuid 123e4567-e89b-12d3-a456-426614174000",
    "sha512-" + "q" * 86 + "== and sha256:" + "ab12" * 16,
    "01K6AB3XZQ7WVD9J1M2N4P5Q6A",
    "ghp_" + "x" * 36,
    "ghp_" + "X" * 36 + " ghp_" + "*" * 36 + " ghp_your_token_here ghp_<token> ghp_${TOKEN}",
    "ghp_" + "1234567890abcdefghijklmnopqrstuvwxyz",
    "sk-" + "x" * 48 + " sk-" + "your-api-key-goes-here sk-" + "ant-api03-your-api-key-here",
    "xoxb-" + "your-token-here xoxp-" + "x" * 30,
    "AK" + "IAIOSFODNN7EXAMPLE",
    "AK" + "IA" + "X" * 16,
    "hooks.slack.com/services/T00000000/B00000000/" + "X" * 24,
    "the pattern is ghp_[A-Za-z0-9]{36} or `sk-ant-[\\w-]+`",
    "postgres://user:password@localhost/db mysql://root:${DB_PASSWORD}@h/d redis://:<password>@h",
    "https://user:***@host/ https://user:{{pw}}@host https://USER:$PASSWORD@host https://a:xxxx@h",
    "http://localhost:3000/@vite/client http://host:8080,me@example.org mongodb://h1:27017,h2:27017/x?y=@z",
    "postgres://db.example.org:5432/main?user=ada@example.org",
    "git@github.com:acme/widget.git ssh://git@github.com:22/acme/widget.git https://ada@example.org/x",
    "https://example.org/a:b@c me@example.org:secret",
    "{{protocol://user[:password]@host/share}} and `postgres://app:`+pw+`@db.test/x`",
    "A key file begins with -----BEGIN PRIVATE" + " KEY----- and ends with -----END PRIVATE" + " KEY-----.",
    "-----BEGIN RSA PRIVATE" + " KEY-----\n...\n-----END RSA PRIVATE" + " KEY-----",
    "-----BEGIN PRIVATE" + " KEY-----\n<your key here>\n-----END PRIVATE" + " KEY-----",
    "-----BEGIN PRIVATE"
    + " KEY-----\nMIIExxxxxxxxxxxxxxxxxxxx\nxxxxxxxxxxxxxxxxxxxx\n-----END PRIVATE"
    + " KEY-----",
    "-----BEGIN PUBLIC KEY-----\n"
    + "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n" * 4
    + "-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n"
    + "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUF\n" * 4
    + "-----END CERTIFICATE-----",
    "eyJ is how a JSON Web Token begins; eyJhbGciOiJIUzI1NiJ9.payload.signature",
    "我们决定把缓存层换成redis集群，回滚窗口为30分钟；令牌是什么？",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_secret_stays(text):
    assert mask(text) == (text, [])


def test_a_stand_in_word_inside_a_random_value_hides_nothing():
    for word in ("example", "test", "your", "token", "xxxx"):
        text = f"https://app:q7{word}W2z@h/ ghp_{word}Ab3dEf6hIj9lMn2pQr5tUv8xYz1aBc4dEf7g"
        assert len(find(text)) == 2


@pytest.mark.parametrize("value", ["abcd" + "x" * 10 + "Z9", "abcdexxxxxxxxxx", "Ab1dxxxxxxxxxxq"])
def test_a_true_secret_that_looks_half_masked_is_masked(value):
    assert (
        mask(f"https://app:{value}@h/x").text
        == f"https://app:{value[: kept(value)]}" + "x" * (len(value) - kept(value)) + "@h/x"
    )
    token = "ghp" + "_abcd" + "x" * 10 + "Q7rT2vW9yB4dF6hJ1kL3mN"
    assert mask(token).text == "ghp_" + "x" * (len(token) - 4)


@pytest.mark.parametrize(
    ("value", "left"), [("a1", "xx"), ("ab1", "axx"), ("s3cret", "s3xxxx"), ("s3cr3tpass99", "s3crxxxxxxxx")]
)
def test_no_more_than_a_third_of_a_short_secret_stays(value, left):
    assert mask(f"redis://:{value}@h:6379/0").text == f"redis://:{left}@h:6379/0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("amqps://u:p@ss:w0rd@mq/v", "p@ss:w0rd"),
        ("mongodb+srv://u:a/b#c?d1@c.example.net", "a/b#c?d1"),
        ("https://u:pässwört1@h", "pässwört1"),
        ("https://u:a1b@h，联系 me@example.org", "a1b"),
        ("https://x-access-token:" + GH + "@github.com/acme/widget.git/", GH),
        ("jdbc:postgresql://u:q7W2@h/d", "q7W2"),
        ("postgres://u:q7W2@/d?host=/run", "q7W2"),
        ("socks5h://u:q7W2@127.0.0.1:1080", "q7W2"),
    ],
)
def test_passwords_in_addresses_are_found_whole(text, value):
    at = text.index(value)
    assert [(s.start, s.end) for s in find(text)] == [(at, at + len(value))]


# --- private keys ---


def keys() -> dict[str, str]:
    rng = random.Random(7)
    one = pem(rng)
    return {
        "plain": one,
        "pkcs8": pem(rng, ""),
        "encrypted": pem(rng, "ENCRYPTED "),
        "openssh": pem(rng, "OPENSSH ", 20),
        "headers": pem(rng, "EC ", header=True),
        "cut off": pem(rng, end=False),
        "cut off with headers": pem(rng, header=True, end=False),
        "cut off in CRLF": pem(rng, end=False).replace("\n", "\r\n"),
        "cut off and indented": "\n".join("    " + line for line in pem(rng, end=False).split("\n")),
        "indented": "\n".join("    " + line for line in one.split("\n")),
        "tabs": "\n".join("\t" + line for line in one.split("\n")),
        "quoted": "\n".join("> " + line for line in one.split("\n")),
        "comment": "\n".join("# " + line for line in one.split("\n")),
        "CRLF": one.replace("\n", "\r\n"),
        "blank lines": one.replace("\n", "\n\n"),
        "one line": one.replace("\n", "\\n"),
        "one line cut off": pem(rng, end=False).replace("\n", "\\n"),
        "one line with CR": one.replace("\n", "\\r\\n"),
        "joined": "\n".join(f'"{line}\\n" +' for line in one.split("\n")),
        "joined cut off": "\n".join(f'"{line}\\n" +' for line in pem(rng, end=False).split("\n")),
        "blanks instead of line ends": one.replace("\n", " "),
        "short": pem(rng, "EC ", 3),
        "pgp": pem(rng, "PGP ").replace("KEY-----", "KEY BLOCK-----"),
    }


@pytest.mark.parametrize("name", sorted(keys()))
@pytest.mark.parametrize(
    "around", ["server key:\n{}\nkeep it", "```\n{}\n```\nkeep it", "密钥：{}\n保留 keep it", "{}"]
)
def test_no_line_of_a_private_key_is_left(name, around):
    block = keys()[name]
    text = around.format(block)
    masked, spans = mask(text)
    assert [span.kind for span in spans] == ["private key"]
    for line in block.replace("\\r", "\n").replace("\\n", "\n").replace(" ", "\n").splitlines():
        run = line.strip(' \t>#"+,:')
        if len(run) >= 16:
            assert run not in masked
            assert run[8:] not in masked
    before, after = around.split("{}")
    assert masked.startswith(before)
    assert masked.endswith(after)
    assert len(masked) == len(text)
    assert [i for i, c in enumerate(masked) if c in "\r\n"] == [i for i, c in enumerate(text) if c in "\r\n"]
    assert mask(masked) == (masked, [])


def test_two_keys_and_the_words_between_them():
    rng = random.Random(3)
    text = f"a\n{pem(rng, end=False)}\nbetween the keys\n{pem(rng)}\nb"
    masked, spans = mask(text)
    assert len(spans) == 2
    assert "\nbetween the keys\n" in masked


# --- laws ---


def test_overlapping_finds_become_their_union_in_any_order(monkeypatch):
    texts = [
        f"https://app:{GH}@git.test/x",
        f"postgres://app:{GH}/{AWS}#1@h/db",
        f"https://{GH}:{AWS}@h ghs_{GH}.{AWS}",
    ]
    forward = [mask(text) for text in texts]
    monkeypatch.setattr(secrets, "RULES", tuple(reversed(RULES)))
    assert [mask(text) for text in texts] == forward
    assert forward[0].text == "https://app:ghp_" + "x" * (len(GH) - 4) + "@git.test/x"
    assert all(GH[4:] not in m.text and AWS[4:] not in m.text for m in forward)


def pieces() -> st.SearchStrategy[str]:
    rng = random.Random(1)
    made = [SHAPED.get(rule_id, "{}").format(EXAMPLES[rule_id](rng)) for rule_id in sorted(EXAMPLES)]
    made += [pem(rng), pem(rng, end=False), pem(rng).replace("\n", "\\n"), *SHAPED.values()]
    parts = [piece[: len(piece) // 2] for piece in made]
    glue = [
        " ",
        "\n",
        "",
        "-",
        "_",
        ".",
        "/",
        ":",
        "@",
        "://",
        "\\n",
        "x",
        "xxxx",
        "，",
        '"',
        "=",
        "-----",
        "eyJ",
        "a1B",
    ]
    return st.one_of(
        st.sampled_from(made), st.sampled_from(parts), st.sampled_from(glue), st.text(max_size=6)
    )


@given(st.lists(pieces(), max_size=12).map("".join))
def test_masking_twice_changes_nothing_and_keeps_length_and_line_breaks(text):
    masked, spans = mask(text)
    assert mask(masked) == (masked, [])
    assert len(masked) == len(text)
    assert spans == find(text)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    at = 0
    for span in spans:
        assert masked[at : span.start] == text[at : span.start]
        value, left = text[span.start : span.end], masked[span.start : span.end]
        assert left[: kept(value)] == value[: kept(value)]
        for old, new in zip(value[kept(value) :], left[kept(value) :], strict=True):
            assert new == (old if old in "\r\n" else "x")
        at = span.end
    assert masked[at:] == text[at:]


def test_the_report_names_kinds_and_never_a_value():
    spans = find(f"{GH} and {AWS}, again {AWS}")
    assert secrets.kinds_text(spans) == "3 secrets (AWS access key, GitHub token)"
    assert secrets.kinds_text([Span(0, 1, "private key")]) == "1 secret (private key)"


# --- cost ---


BEGIN = "-----BEGIN " + "PRIVATE KEY-----"


def hostile() -> dict[str, str]:
    """Texts made to be slow, each a unit to be repeated."""
    rng = random.Random(5)
    units = {f"literal {rule.literal}": rule.literal for rule in RULES}
    for rule_id in sorted(EXAMPLES):
        whole = SHAPED.get(rule_id, "{}").format(EXAMPLES[rule_id](rng))
        units[f"half {rule_id}"] = whole[: len(whole) // 2]
        units[f"all but the end of {rule_id}"] = whole[:-2]
    units |= {
        "begin": BEGIN,
        "begin lines": BEGIN + "\n",
        "begin and a key": BEGIN + "\n" + chars(rng, ALNUM, 64) + "\n",
        "end": BEGIN.replace("BEGIN", "END"),
        "dashes": "-",
        "x": "x",
        "a1": "a1",
        "+/": "+/",
        "hyphens and words": "eyJ-",
        "user": "://a",
        "password": "redis://:a",
        "at": "://u:p@",
        "password_": "password_",
        "base64": chars(rng, ALNUM + "+/", 64),
        "escapes": "\\n",
        "blanks": " ",
    }
    return units


def cpu_seconds(text: str) -> float:
    started = time.process_time()
    find(text)
    return time.process_time() - started


def test_no_text_costs_more_than_in_proportion_to_its_length():
    slow = []
    for name, unit in hostile().items():
        heads = [""] if name.startswith(("literal", "half", "all")) else ["", BEGIN, "eyJ", "redis://:"]
        for head in heads:
            small, large = (head + unit * (size // len(unit)) + "!" for size in (12_500, 100_000))
            # Eight times the text: quadratic would be 64 times the work. A busy machine makes one measurement
            # worthless, three in a row not.
            if all(cpu_seconds(large) > max(0.25, 24 * cpu_seconds(small)) for _ in range(3)):
                slow.append((name, head))
    assert slow == []


def test_the_finder_loads_nothing_but_re(tmp_path):
    code = (
        "from __future__ import annotations; import sys, re, typing, collections.abc, itertools; "
        "before = set(sys.modules); "
        "import openmemex.trust.secrets; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    names = ["openmemex", "openmemex.trust", "openmemex.trust.rules", "openmemex.trust.secrets"]
    assert done.stdout == f"{names}\n", done.stderr
