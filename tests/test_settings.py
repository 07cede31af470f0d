"""The settings file: read leniently, edited one value at a time, never replaced."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex import jsonc, setting_keys, settings_file
from openmemex.errors import OpenMemexError, UsageError
from openmemex.setting_keys import KEYS, set_value, unset_value, value_from_text
from openmemex.settings import Settings
from openmemex.settings_file import load


def read(tmp_path, content: str | bytes, environ=None):
    path = tmp_path / "config.jsonc"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return load(str(path), environ or {})


def settings_of(tmp_path, content):
    got, problems = read(tmp_path, content)
    assert problems == []
    return got


def test_without_a_file_the_defaults_hold(tmp_path):
    assert load(str(tmp_path / "no.jsonc"), {}) == (Settings(), [])
    assert load(os.devnull, {}) == (Settings(), [])


def test_every_key_has_an_attribute_and_a_default_that_is_allowed():
    assert {key.attribute for key in KEYS.values()} == set(Settings._fields)
    for key in KEYS.values():
        if key.kind != "text":
            assert setting_keys.check(key, key.default) == key.default
        assert key.doc
        assert key.allowed


def test_comments_trailing_commas_and_a_byte_order_mark_are_read(tmp_path):
    text = (
        '\ufeff// mine\r\n{ /* one */ "memoryDir": ".open-memex/", // http://x\r\n'
        ' "review": {"publishBases": "main", "allowBots": ["a//b", "c/*d*/",],},\r\n'
        ' "org.repo": "https://example.org/a//b",\r\n "contextTokens" : 1200, /* two\r\n lines */ }\r\n// end'
    )
    got = settings_of(tmp_path, text)
    assert got == Settings(
        memory_dir=".open-memex",
        review_publish_bases=("main",),
        review_allow_bots=("a//b", "c/*d*/"),
        org_repo="https://example.org/a//b",
        context_tokens=1200,
    )


def test_the_debug_variable_raises_the_log_level(tmp_path):
    assert read(tmp_path, '{"logLevel": "error"}', {"OPEN_MEMEX_DEBUG": "1"})[0].log_level == "debug"
    assert read(tmp_path, '{"logLevel": "error"}', {"OPEN_MEMEX_DEBUG": "0"})[0].log_level == "error"


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 1, "empty"),
        ("  \n// only a comment\n", 1, "empty"),
        ("[]", 1, "no object"),
        ("null", 1, "no object"),
        ('{"logLevel": "info"} x', 1, "more text"),
        ('{\n"logLevel": "info",\n"memoryDir": ".m', 3, "not closed"),
        ('{"logLevel": {"keep": {"comm', 1, "not closed"),
        ('{\n"logLevel" "info"}', 2, "colon"),
        ('{"a": 1\n"b": 2}', 2, "comma"),
        ("{logLevel: 1}", 1, "double quotes"),
        ("{\n/* open", 2, "not closed"),
        ('{"a": "\\x"}', 1, "backslash"),
        ('{"a": nope}', 1, "value was expected"),
        ('{"a": 01}', 1, "value was expected"),
        ('{"a": -' + "9" * 5000 + "}", 1, "value was expected"),
        ("[" * 5000, 1, "too many brackets"),
        ('{"a":' * 5000, 1, "too many brackets"),
        ("{", 1, "too early"),
        (b'{"logLevel":\n "\xff"}', 0, "line 2: not UTF-8"),
        ('{"logLevel": "info"}'.encode("utf-16"), 0, "UTF-16"),
        ('{"logLevel": "info"}'.encode("utf-16-le"), 0, "UTF-16"),
        (b" " * (settings_file.MAX_FILE_BYTES + 1), 0, "larger than 1 MiB"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_left_alone(tmp_path, content, line, reason):
    got, problems = read(tmp_path, content)
    path = tmp_path / "config.jsonc"
    assert got == Settings()
    assert [(p.kind, p.line) for p in problems] == [("file", line)]
    assert str(path) in problems[0].text
    assert reason in problems[0].text
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())


def test_a_folder_a_pipe_or_an_unreadable_file_of_that_name_is_a_problem_not_a_crash(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, reason in (
        (tmp_path, "no regular file"),
        (pipe, "no regular file"),
        (pipe / "x", "cannot read"),
    ):
        got, problems = load(str(path), {})
        assert got == Settings()
        assert reason in problems[0].text


@pytest.mark.parametrize(
    ("entry", "key", "said"),
    [
        ('"memoryDir": "../out"', "memoryDir", '"../out"'),
        ('"memoryDir": "/etc"', "memoryDir", '"/etc"'),
        ('"memoryDir": "a/../b"', "memoryDir", "relative"),
        ('"memoryDir": "a\\\\b"', "memoryDir", "relative"),
        ('"memoryDir": "C:/x"', "memoryDir", "relative"),
        ('"memoryDir": "C:x"', "memoryDir", "relative"),
        ('"memoryDir": ".git/x"', "memoryDir", "outside of .git"),
        ('"memoryDir": "a/.GIT. /x"', "memoryDir", "outside of .git"),
        ('"memoryDir": "."', "memoryDir", "relative"),
        ('"memoryDir": ""', "memoryDir", "relative"),
        ('"memoryDir": "~/x"', "memoryDir", "relative"),
        ('"memoryDir": "a//b"', "memoryDir", "relative"),
        ('"memoryDir": "a\\u0000b"', "memoryDir", "relative"),
        ('"memoryDir": 3', "memoryDir", "3"),
        ('"logLevel": "loud"', "logLevel", "one of error, warning, info, debug"),
        ('"captureAliases": "off"', "captureAliases", "true or false"),
        ('"captureAliases": 1', "captureAliases", "true or false"),
        ('"contextTokens": 5', "contextTokens", "a whole number from 100"),
        ('"contextTokens": true', "contextTokens", "a whole number"),
        ('"contextTokens": 1e3', "contextTokens", "a whole number"),
        ('"keywordPatternsExtra": ["("]', "keywordPatternsExtra", "regular expressions"),
        ('"keywordPatternsExtra": "x"', "keywordPatternsExtra", "regular expressions"),
        ('"review": {"allowBots": [1]}', "review.allowBots", "account names"),
        ('"review": 7', "review", "must be an object"),
        ('"logLevel": null', "logLevel", "null"),
        ('"logLevel": {}', "logLevel", "an object"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed_and_the_default_holds(tmp_path, entry, key, said):
    got, problems = read(tmp_path, '{\n"identity": "Ada",\n' + entry + "}")
    assert got == Settings(identity="Ada")
    assert [(p.kind, p.key, p.line) for p in problems] == [("value", key, 3)]
    assert said in problems[0].text


def test_an_unknown_key_warns_with_the_nearest_name(tmp_path):
    got, problems = read(
        tmp_path, '{"$schema": "x", "loglevel": "info", "review": {"allowBot": []}, "zzz": 1}'
    )
    assert got == Settings()
    assert [(p.kind, p.key) for p in problems] == [
        ("unknown", "loglevel"),
        ("unknown", "review.allowBot"),
        ("unknown", "zzz"),
    ]
    assert "did you mean logLevel?" in problems[0].text
    assert "did you mean review.allowBots?" in problems[1].text
    assert "did you mean" not in problems[2].text


def test_a_retired_key_is_accepted_and_said_to_be_retired(tmp_path):
    for text in ('{"sync": {"autoPull": true}}', '{"sync.autoPull": 1}'):
        got, problems = read(tmp_path, text)
        assert got == Settings()
        assert [(p.kind, p.key) for p in problems] == [("retired", "sync.autoPull")]


def test_a_key_that_stands_there_twice_counts_as_neither(tmp_path):
    for text in (
        '{"logLevel": "info",\n"logLevel": "debug"}',
        '{"org": {"repo": "a"},\n"org.repo": "b"}',
        '{"org": {"repo": "a"},\n"org": {"repo": "b"}}',
    ):
        got, problems = read(tmp_path, text)
        assert got == Settings()
        assert [(p.kind, p.line) for p in problems] == [("value", 1)]
        assert "again in line 2" in problems[0].text
        with pytest.raises(OpenMemexError, match=r"twice: lines 1 and 2"):
            set_value(text, problems[0].key, "error" if problems[0].key == "logLevel" else "c")


def test_a_value_that_may_be_a_secret_is_not_repeated(tmp_path):
    secret = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
    texts = [
        json.dumps({key: value})
        for key in ("logLevel", "memoryDir", "secrets.allow")
        for value in (secret, 5)
    ]
    texts += [
        json.dumps({secret: 1}),
        json.dumps({"review": {secret: 1}}),
        json.dumps({"logLevel": [secret]}),
    ]
    for text in texts:
        for problem in read(tmp_path, text)[1]:
            assert secret not in problem.text
            assert secret not in problem.key
    with pytest.raises(UsageError) as caught:
        set_value("{}", secret, 1)
    assert secret not in str(caught.value)


# --- words typed on the command line ---


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("captureAliases", "off", False),
        ("captureAliases", "TRUE", True),
        ("contextTokens", "900", 900),
        ("keywordPatternsExtra", '["a,b", "c"]', ("a,b", "c")),
        ("keywordPatternsExtra", "a[1],b", ("a[1],b",)),
        ("keywordPatternsExtra", "[0-9]+ days", ("[0-9]+ days",)),
        ("review.allowBots", "", ()),
        ("identity", "Ada", "Ada"),
    ],
)
def test_typed_words_become_values(key, text, value):
    assert value_from_text(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [("captureAliases", "maybe"), ("contextTokens", "x"), ("nope", "1"), ("sync.autoPull", "1")],
)
def test_typed_words_that_are_no_value_are_wrong_usage(key, text):
    with pytest.raises(UsageError):
        value_from_text(key, text)


# --- edits ---


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "logLevel", "info", '{\n  "logLevel": "info"\n}\n'),
        ("\ufeff", "logLevel", "info", '\ufeff{\n  "logLevel": "info"\n}\n'),
        ("// mine\r\n", "logLevel", "info", '// mine\r\n{\r\n  "logLevel": "info"\r\n}\r\n'),
        ("// mine", "logLevel", "info", '// mine\n{\n  "logLevel": "info"\n}\n'),
        ("", "org.repo", "x", '{\n  "org": { "repo": "x" }\n}\n'),
        ("{}", "logLevel", "info", '{\n  "logLevel": "info"\n}'),
        ("{ // why\n}", "logLevel", "info", '{ // why\n  "logLevel": "info"\n}'),
        ("{ /* why */ }", "logLevel", "info", '{ /* why */\n  "logLevel": "info"\n}'),
        ('{"a":1}', "logLevel", "info", '{"a":1, "logLevel":"info"}'),
        ('{"a":1,"b":2}', "logLevel", "info", '{"a":1,"b":2,"logLevel":"info"}'),
        ('{"a": 1, "b": 2,}', "logLevel", "info", '{"a": 1, "b": 2, "logLevel": "info",}'),
        (
            '{\r\n\t"a" : 1, // one\r\n\t/* off: "b": 2 */\r\n}\r\n',
            "logLevel",
            "info",
            '{\r\n\t"a" : 1, // one\r\n\t"logLevel" : "info",\r\n\t/* off: "b": 2 */\r\n}\r\n',
        ),
        ('{\n  "a": 1 // one\n}', "logLevel", "info", '{\n  "a": 1, // one\n  "logLevel": "info"\n}'),
        ('{\n  "a": 1 }', "logLevel", "info", '{\n  "a": 1,\n  "logLevel": "info" }'),
        ('{"logLevel": /* k */ "error" /* l */}', "logLevel", "info", '{"logLevel": /* k */ "info" /* l */}'),
        ('{"org": {"repo": "a"}}', "org.repo", "b", '{"org": {"repo": "b"}}'),
        ('{"org.repo": "a"}', "org.repo", "b", '{"org.repo": "b"}'),
        ('{\n  "org": {}\n}', "org.repo", "b", '{\n  "org": { "repo": "b" }\n}'),
        ('{\n  "org": {\n  }\n}', "org.repo", "b", '{\n  "org": {\n    "repo": "b"\n  }\n}'),
        (
            '{\n  "review": {\n    "allowBots": []\n  }\n}',
            "review.publishBases",
            ["main", "v*"],
            '{\n  "review": {\n    "allowBots": [],\n    "publishBases": ["main", "v*"]\n  }\n}',
        ),
        ('{"identity": "x"}', "identity", 'Ана "A"', '{"identity": "Ана \\"A\\""}'),
    ],
)
def test_an_edit_changes_one_value_and_keeps_the_file_s_style(before, key, value, after):
    assert set_value(before, key, value) == after
    assert set_value(after, key, value) == after


def test_an_edit_keeps_comments_inside_a_value_by_refusing():
    text = '{"review.allowBots": ["a", // since May\n"b"]}'
    with pytest.raises(OpenMemexError, match="comment"):
        set_value(text, "review.allowBots", ["a"])
    assert set_value(text, "review.allowBots", ["a", "b"]) == text
    fine = '{"review.allowBots": ["http://a", "/*b*/"]}'
    assert set_value(fine, "review.allowBots", []) == '{"review.allowBots": []}'


@pytest.mark.parametrize("text", ["[]", "null", '{"a":1} x', '{"a"', '{"a": 1,,}', "{a: 1}", "\x00"])
def test_text_that_is_no_settings_object_is_not_edited(text):
    for edit in (lambda: set_value(text, "logLevel", "info"), lambda: unset_value(text, "logLevel")):
        with pytest.raises(OpenMemexError, match="cannot be edited"):
            edit()


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ('{"logLevel": "info"}', "logLevel", "{}"),
        ('{"a":1, "logLevel": "info"}', "logLevel", '{"a":1}'),
        ('{"logLevel": "info", "a":1}', "logLevel", '{"a":1}'),
        ('{"a":1, "logLevel": "info",}', "logLevel", '{"a":1,}'),
        ('{\n  "a": 1,\n  "logLevel": "info"\n}', "logLevel", '{\n  "a": 1\n}'),
        ('{\n  "logLevel": "info",\n  "a": 1\n}', "logLevel", '{\n  "a": 1\n}'),
        ('{\n  "a": 1, // one\n  "logLevel": "info"\n}', "logLevel", '{\n  "a": 1 // one\n}'),
        ('{\r\n\t"logLevel": "info",\r\n}', "logLevel", "{\r\n}"),
        ('{"sync": {"autoPull": true, "x": 1}}', "sync.autoPull", '{"sync": {"x": 1}}'),
        ('{"old": {"thing": 1}}', "old.thing", '{"old": {}}'),
        ('{"a": 1}', "logLevel", '{"a": 1}'),
        ("", "logLevel", ""),
    ],
)
def test_a_key_is_taken_out_with_its_line(before, key, after):
    assert unset_value(before, key) == after


BLANKS = st.sampled_from(["", " ", "\t", "\n  ", "\r\n\t", " /* c, } */ ", " // k: {\n", "\n// a\n\n"])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.text(max_size=8),
    st.lists(st.text(max_size=4), max_size=3),
)
GOOD = {
    "logLevel": st.sampled_from(["error", "info"]),
    "captureAliases": st.booleans(),
    "contextTokens": st.integers(100, 9999),
    "identity": st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12).map(str.strip),
    "org.repo": st.sampled_from(["a", "https://example.org/a//b"]),
    "review.allowBots": st.lists(st.sampled_from(["a//b", "/*c", "d]}", 'e"f']), max_size=3),
}


@st.composite
def settings_text(draw, depth=1):
    names = draw(
        st.lists(
            st.sampled_from([*GOOD, "review", "org", "x", "y y", 'q"'])
            if depth
            else st.sampled_from(["repo", "allowBots", "z"]),
            max_size=4,
            unique=True,
        )
    )
    pieces = [draw(BLANKS)]
    for position, name in enumerate(names):
        if depth and name in ("review", "org"):
            value = draw(settings_text(depth=0))
        else:
            value = json.dumps(draw(GOOD.get(name, PLAIN)), ensure_ascii=draw(st.booleans()))
        pieces += [json.dumps(name), draw(BLANKS), ":", draw(BLANKS), value, draw(BLANKS)]
        if position < len(names) - 1 or draw(st.booleans()):
            pieces += [",", draw(BLANKS)]
    return "{" + "".join(pieces) + "}"


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(char in rest for char in short)


@given(
    st.sampled_from(["", "\ufeff", "// x\r\n"]),
    settings_text(),
    st.sampled_from(["", "\n", " // end"]),
    st.data(),
)
def test_what_is_set_is_loaded_and_every_other_character_stays(tmp_path_factory, head, body, tail, data):
    text = head + body + tail
    key = data.draw(st.sampled_from(sorted(GOOD)))
    value = data.draw(GOOD[key])
    folder = tmp_path_factory.mktemp("set")
    try:
        edited = set_value(text, key, value)
    except OpenMemexError as error:
        assert "twice" in error.message
        return
    before, problems_before = read(folder, text)
    after, problems_after = read(folder, edited)
    wanted = tuple(value) if isinstance(value, list) else value
    assert after == before._replace(**{KEYS[key].attribute: wanted})
    assert {p.key for p in problems_after} <= {p.key for p in problems_before}
    written = json.dumps(value, ensure_ascii=False)
    root = jsonc.parse(text)
    found = jsonc.members_at(root, (key,)) or jsonc.members_at(root, tuple(key.split(".")))
    if found:
        old = found[0][1].value
        assert edited in (text, text[: old.start] + written + text[old.end :])
    else:
        groups = [
            m.value for _, m in jsonc.members_at(root, (key.partition(".")[0],)) if m.value.kind == "object"
        ]
        if (groups[0] if "." in key and groups else root).members:
            assert is_subsequence(text, edited)
        else:  # the blanks in empty brackets are laid out anew
            assert is_subsequence("".join(text.split()), edited)
        added = len(edited) - len(text)
        assert added <= len(json.dumps(key)) + len(written) + 24
    taken = unset_value(edited, key)
    assert read(folder, taken)[0] == before._replace(**{KEYS[key].attribute: KEYS[key].default})
    assert is_subsequence(taken, edited)
    for comment in ("/* c, } */", "// k: {", "// a", "// x", "// end"):
        assert taken.count(comment) == text.count(comment)


@given(st.text(alphabet='{}[],:"/*\\ \n\ta1é\ufeff', max_size=40))
def test_any_text_is_read_without_a_crash(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    got, problems = read(folder, text)
    assert got == Settings()
    assert problems or jsonc.parse(text).members == ()
