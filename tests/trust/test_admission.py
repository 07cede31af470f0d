"""What may be stored: values, private parts, secrets in every field, doubles."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.errors import OpenMemexError, Refused, UsageError
from openmemex.memory.model import RETIRED_TYPES, TYPES, Memory
from openmemex.trust import admission
from openmemex.trust.admission import (
    Admitted,
    Blocked,
    Draft,
    Duplicate,
    judge,
    redact,
    screen,
    screen_line,
    text_key,
)

GH = "ghp" + "_mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
AWS = "AK" + "IATESTONLY2MEMEX77"
PW = "n0tR3al9pw"
A, B = "01K6AB3XZQ7WVD9J1M2N4P5Q6A", "01K6AB3XZQ7WVD9J1M2N4P5Q6B"
NOW = "2026-09-26T12:00:00Z"


def draft(content: str = "a text", scope: str = "project", **fields: Any) -> Draft:
    return Draft(content, scope, **fields)


def kinds(notices) -> list[str]:
    return [notice.kind for notice in notices]


def test_a_plain_text_gets_the_defaults_and_one_line_end():
    got = screen(draft("  \n\n\t\n    indented\n\nend \n\n\n"))
    assert got.content == "    indented\n\nend\n"
    assert (got.scope, got.type, got.role, got.importance, got.source) == (
        "project",
        "fact",
        "knowledge",
        "normal",
        "user",
    )
    assert (got.tags, got.aliases, got.paths, got.canonical_ref, got.expires_at) == ((), (), (), None, None)
    assert got.notices == ()


def test_values_are_read_in_any_case_and_kept_in_their_one_spelling():
    got = screen(
        draft(
            type=" Gotcha ",
            role="INSTRUCTION",
            importance="High",
            source="Tool",
            expires_at="2026-12-31T20:00+02:00",
        )
    )
    assert (got.type, got.role, got.importance, got.source) == ("gotcha", "instruction", "high", "tool")
    assert got.expires_at == "2026-12-31T18:00:00Z"


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("type", "idea", ", ".join(TYPES)),
        ("role", "boss", "knowledge, instruction"),
        ("importance", "urgent", "low, normal, high"),
        ("source", "me", "user, tool, keyword, inference, import"),
        ("scope", "world", "personal, project"),
        ("scope", "", "personal, project"),
        ("scope", "team", "personal, project"),
        ("scope", "Public", "personal, project"),
        ("expires_at", "tomorrow", "2026-12-31"),
        ("content", "", "argument"),
        ("content", " \n\t\0", "argument"),
        ("content", "x" * (admission.MAX_CONTENT_BYTES + 1), "262,144"),
        ("content", "é" * (admission.MAX_CONTENT_BYTES // 2 + 1), "262,144"),
        ("content", "half \ud83d", "UTF-8"),
        ("tags", ["\udc80"], "UTF-8"),
    ],
)
def test_a_value_that_is_not_allowed_says_what_is(field, value, allowed):
    with pytest.raises(UsageError) as caught:
        screen(draft(**{field: value}))
    assert allowed in caught.value.hint
    if value and isinstance(value, str) and field not in ("content", "scope"):
        assert value not in str(caught.value)  # it may be a secret at the wrong place


def test_the_largest_text_is_stored():
    assert len(screen(draft("x" * admission.MAX_CONTENT_BYTES)).content) == admission.MAX_CONTENT_BYTES + 1


def test_the_organisation_s_memories_are_not_written():
    with pytest.raises(Refused, match="organisation"):
        screen(draft(scope="org"))


@pytest.mark.parametrize(("old", "heir"), sorted(RETIRED_TYPES.items()))
def test_a_retired_type_is_saved_as_its_heir_and_told(old, heir):
    got = screen(draft(type=old.upper()))
    assert got.type == heir
    assert kinds(got.notices) == ["type"]
    assert old in got.notices[0].text
    assert heir in got.notices[0].text


def test_lists_are_trimmed_and_cut_with_a_notice_and_never_refused():
    tags = [" Auth ", "auth", "", "two\nlines", "x" * 70, *(f"t{n}" for n in range(40))]
    got = screen(
        draft(
            tags=tags,
            aliases=["a  b", "a b", "y" * 300, "c", "d", "e"],
            paths=["src/**", " src/** ", "p" * 2000],
            canonical_ref=" https://example.org/a\n" + "b" * 2000,
        )
    )
    assert got.tags[:3] == ("auth", "two lines", "x" * 64)
    assert (len(got.tags), len(set(got.tags))) == (32, 32)
    assert got.aliases == ("a b", "y" * 200, "c", "d")
    assert got.paths == ("src/**", "p" * 1000)
    assert got.canonical_ref is not None
    assert len(got.canonical_ref) == 1000
    assert kinds(got.notices) == ["tags", "tags", "aliases", "aliases", "canonical_ref", "paths"]
    assert "32 of 43" in got.notices[0].text


def test_tags_that_yaml_takes_for_something_else_stay_text():
    assert screen(draft(tags=["no", "3.10", "0123", "1:30", "2026-09-26", "12e03"])).tags == (
        "no",
        "3.10",
        "0123",
        "1:30",
        "2026-09-26",
        "12e03",
    )


def test_aliases_are_left_out_when_the_setting_is_off():
    got = screen(draft(aliases=["a"]), capture_aliases=False)
    assert got.aliases == ()
    assert kinds(got.notices) == ["aliases"]
    assert screen(draft(aliases=["a"])).aliases == ("a",)


def test_line_ends_become_lf_and_nul_and_bom_go():
    got = screen(draft("\ufeffone\r\ntwo\rthree\0"))
    assert got.content == "one\ntwo\nthree\n"
    assert kinds(got.notices) == ["text"]


# --- a memory that is changed or replaced ---


def stored(**fields: Any) -> Memory:
    return Memory(id=A, **{"body": "old text\n", "scope": "project", **fields})


def test_what_is_stored_already_is_not_cut_again():
    old = stored(
        tags=tuple(f"t{n}" for n in range(40)), aliases=tuple("abcdef"), paths=tuple(map(str, range(40)))
    )
    got = screen(
        draft("new", tags=old.tags, aliases=old.aliases, paths=old.paths), stored=old, capture_aliases=False
    )
    assert (got.tags, got.aliases, got.paths, got.notices) == (old.tags, old.aliases, old.paths, ())
    more = screen(draft("new", tags=(*old.tags, "new")), stored=old)
    assert len(more.tags) == 32


@pytest.mark.parametrize("body", ["a\r\nb\r\n", "\n\n  a\n\n\n", "a", "<b>\n", ""])
def test_an_unchanged_body_stays_byte_for_byte(body):
    for given_as in (body, body.replace("\r\n", "\n"), body + "\n"):
        assert screen(draft(given_as), stored=stored(body=body)).content == body


def test_a_new_text_takes_the_line_ends_of_the_old_one():
    assert screen(draft("a\nb\r\nc"), stored=stored(body="x\r\ny\r\n")).content == "a\r\nb\r\nc\r\n"
    assert screen(draft("a\r\nb"), stored=stored(body="x\ny\n")).content == "a\nb\n"


def test_a_secret_that_was_stored_in_clear_is_not_called_the_writer_s():
    old = stored(body=f"key {GH}\n", tags=(AWS.lower(), GH))
    got = screen(draft(old.body, tags=old.tags), stored=old)
    assert GH not in got.content + " ".join(got.tags)
    assert kinds(got.notices) == ["stored-secret"]
    new = screen(draft(f"now {GH}", tags=()), stored=old)
    assert kinds(new.notices) == ["masked"]


# --- secrets ---


def everything(got: admission.Screened) -> str:
    return json.dumps([getattr(got, name) for name in got.__dataclass_fields__], default=str)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": f"令牌是{GH}请勿外传"},
        {"tags": ["ok", GH]},
        {"aliases": [f"the key {GH}"]},
        {"paths": [f"src/{GH}/**"]},
        {"canonical_ref": f"https://app:{GH}@git.test/x"},
    ],
)
def test_a_secret_is_masked_in_every_field_and_told_without_its_text(fields):
    got = screen(draft(**fields))
    assert GH[4:].lower() not in everything(got).lower()
    assert "ghp_" + "x" * 36 in everything(got)
    assert [n for n in got.notices if n.kind == "masked"] == [("masked", "masked: 1 secret (GitHub token)")]
    again = screen(
        draft(
            got.content, tags=got.tags, aliases=got.aliases, paths=got.paths, canonical_ref=got.canonical_ref
        )
    )
    assert again == screen(
        draft(
            again.content,
            tags=again.tags,
            aliases=again.aliases,
            paths=again.paths,
            canonical_ref=again.canonical_ref,
        )
    )
    assert "masked" not in kinds(again.notices)


def test_a_long_alias_is_masked_before_it_is_cut():
    got = screen(draft(aliases=["y" * 180 + " " + GH]))
    assert GH[4:10] not in everything(got)


def test_secrets_of_all_fields_are_counted_together():
    got = screen(draft(f"{GH} {AWS}", tags=[AWS]))
    assert [n.text for n in got.notices] == ["masked: 3 secrets (AWS access key, GitHub token)"]


def test_other_texts_go_through_the_same_door():
    text, notices = screen_line(f" see\n{GH} <private>{PW}</private> ")
    assert text == f"see ghp_{'x' * 36} [REDACTED]"
    assert sorted(kinds(notices)) == ["masked", "private"]
    assert screen_line("") == ("", ())
    with pytest.raises(UsageError):
        screen_line("\ud800")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"https://app:{GH}@git.test/x", f"https://app:ghp_{'x' * 36}@git.test/x"),
        (f"postgres://app:{PW}@db.test/x", "postgres://app:n0txxxxxxx@db.test/x"),
        (f"Authorization: Bearer {GH}.", f"Authorization: Bearer ghp_{'x' * 36}."),
    ],
)
def test_nested_finds_leave_no_rest(text, clean):
    assert screen(draft(text)).content == clean + "\n"


def test_a_json_web_token_is_masked_with_its_signature():
    def part(value: object) -> str:
        return (
            base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()
        )

    token = ".".join(
        [part({"alg": "HS256", "typ": "JWT"}), part({"sub": "memex", "n": 1}), "Qq1Ww2Ee3Rr4Tt5Yy6Uu"]
    )
    assert screen(draft(f"Bearer {token}")).content == f"Bearer {token[:4]}{'x' * (len(token) - 4)}\n"


# --- private parts ---


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"note <private>{PW}", "note [REDACTED]"),
        (f"<private>a <private>b</private> {PW}</private> tail", "[REDACTED] tail"),
        (f"<private >{PW}</private > tail", "[REDACTED] tail"),
        (f"a < private>{PW}< / private > tail", "a [REDACTED] tail"),
        (f"a <PRIVATE>{PW}</Private> tail", "a [REDACTED] tail"),
        (f"a <private\n>{PW}</private\n> tail", "a [REDACTED] tail"),
        (f'a <private reason="x">{PW}</private> tail', "a [REDACTED] tail"),
        (f"a ＜private＞{PW}＜/private＞ tail", "a [REDACTED] tail"),
        ("x</private> y", "x y"),
        (f"<private>a</private> keep <private>{PW}</private>", "[REDACTED] keep [REDACTED]"),
        (f"```\nkey <private>{PW}</private>\n```\ntail", "```\nkey [REDACTED]\n```\ntail"),
        (f"a </private> b <private>{PW}", "a  b [REDACTED]"),
        (f"a <private>{PW}</private></private> b", "a [REDACTED] b"),
        (f"a <private/>{PW}", "a [REDACTED]"),
        (f"a <private {PW}</private> tail", "a [REDACTED] tail"),
        (f"a <private/{PW}</private> tail", "a [REDACTED] tail"),
        (f"a <private\n{PW}", "a [REDACTED]"),
        (f"a <PRIVATE<b>{PW}</b></private> tail", "a [REDACTED] tail"),
        (f"a <private>{PW}</private {PW}", "a [REDACTED]"),
        ("private <privately> </privateer>", "private <privately> </privateer>"),
        ("it costs < private clouds do", "it costs < private clouds do"),
    ],
)
def test_private_parts_are_left_out(text, left):
    got = screen(draft(text))
    assert got.content == left + "\n"
    assert PW not in everything(got)
    assert ("private" in kinds(got.notices)) == (left != text)


@pytest.mark.parametrize(
    "text", [f"<private>{PW}</private>", f" <private>{PW}", f"<private>a</private>\n<private>{PW}"]
)
def test_a_wholly_private_text_is_not_stored_and_that_is_said(text):
    with pytest.raises(Refused, match="nothing was saved") as caught:
        screen(draft(text))
    assert PW not in str(caught.value)


def test_private_parts_of_tags_and_references_are_left_out():
    got = screen(draft(tags=["<private>x</private>", "a"], canonical_ref=f"src/<private>{PW}</private>"))
    assert got.tags == ("a",)
    assert got.canonical_ref == "src/[REDACTED]"


@given(
    st.lists(
        st.sampled_from(["<private>", "</private>", "<PRIVATE >", "< /private>", "a", "b ", "\n", "<", ">"])
    ).map("".join)
)
def test_redacting_leaves_no_tag_and_twice_changes_nothing(text):
    once, count, _ = redact(text)
    assert once.count(admission.REDACTED) == count
    assert redact(once)[1:] == (0, False) or "<" in text.replace("<private>", "").replace("</private>", "")
    opened = text.lower().find("<private")
    if opened >= 0 and "/private" not in text.lower():
        assert once.endswith(admission.REDACTED)


@given(st.text(), st.lists(st.text(max_size=80), max_size=40), st.text(max_size=20))
def test_any_text_is_stored_clean_or_refused_with_a_sentence(content, tags, kind):
    try:
        got = screen(draft(content, tags=tags, aliases=tags, type=kind, canonical_ref=kind))
    except OpenMemexError as error:
        assert error.message
        return
    assert got.content.strip()
    assert got.content == got.content.rstrip() + "\n"
    assert "\r" not in got.content
    assert len(got.tags) <= 32
    assert all(tag == tag.strip().lower() and tag for tag in got.tags)
    assert screen(draft(got.content, tags=got.tags)).content == got.content


# --- doubles ---


class Near(NamedTuple):
    id: str
    text_key: str = ""
    tokens: frozenset[str] = frozenset()
    source: str = "keyword"
    created_at: str = "2026-09-26T11:55:00Z"


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def verdict(near: list[Near], text: str = "a b c d e f g h i j", source: str = "user", **more: Any):
    return judge(screen(draft(text, source=source)), near, tokens=words(text), now=NOW, **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use  OAuth\nnow", " use oauth now "),
        ("ＡＰＩ設定", "api設定"),
        ("배포", "\u1107\u1162\u1111\u1169"),
        ("Straße", "STRASSE"),
        ("ﬁx", "FIX"),
    ],
)
def test_texts_that_say_the_same_have_one_key(one, other):
    assert text_key(one) == text_key(other)
    assert text_key(one) != text_key(one + " not")


@given(st.text())
def test_the_key_does_not_depend_on_case_or_form(text):
    import unicodedata

    assert text_key(unicodedata.normalize("NFKC", text)) == text_key(text)
    assert text_key(text.casefold()) == text_key(text)


def test_the_same_text_is_a_duplicate_whoever_writes_it():
    for source in ("user", "tool"):
        got = verdict([Near(B), Near(A, text_key("A B c d e f g h i J"))], source=source)
        assert isinstance(got, Duplicate)
        assert got.id == A
        assert A in got.notices[0].text


def test_nearly_the_same_is_stored_and_told_from_eight_tenths_on():
    near = words("a b c d e f g h x y")  # 8 of 12
    assert verdict([Near(A, tokens=near)]).notices == ()
    near = words("a b c d e f g h i")  # 9 of 10
    got = verdict([Near(A, tokens=near), Near(B)])
    assert isinstance(got, Admitted)
    assert kinds(got.notices) == ["similar"]
    assert A in got.notices[0].text
    four = words("a b c d")
    assert isinstance(verdict([Near(A, tokens=four)], text="a b c d e"), Admitted)
    assert kinds(verdict([Near(A, tokens=four)], text="a b c d e").notices) == ["similar"]


@pytest.mark.parametrize("source", ["tool", "inference"])
@pytest.mark.parametrize("said_by", ["keyword", "user"])
def test_an_agent_that_repeats_what_a_person_just_saved_is_refused(source, said_by):
    near = Near(A, tokens=words("a b c d e x"), source=said_by)  # 5 of 11
    got = verdict([near], source=source)
    assert isinstance(got, Blocked)
    assert got.id == A
    assert A in got.reason
    assert "memory_supersede" in got.hint
    assert f"open-memex supersede {A}" in got.hint
    assert got.reason in got.notices[0].text
    assert isinstance(verdict([near], source=source, replaces=True), Admitted)


@pytest.mark.parametrize(
    "change",
    [
        {"source": "tool"},
        {"source": "import"},
        {"created_at": "2026-09-26T11:49:59Z"},
        {"created_at": "nonsense"},
        {"tokens": words("a b c x y z w")},  # 3 of 14
    ],
)
def test_what_is_older_or_an_agent_s_own_or_shares_little_blocks_nothing(change):
    near = Near(A, tokens=words("a b c d e x"))._replace(**change)
    assert isinstance(verdict([near], source="tool"), Admitted)


def test_a_person_is_never_refused():
    near = Near(A, tokens=words("a b c d e x"))
    for source in ("user", "keyword", "import"):
        assert isinstance(verdict([near], source=source), Admitted)


def test_ten_minutes_are_counted_as_instants_and_a_clock_set_back_blocks():
    tokens = words("a b c d e x")
    for created in ("2026-09-26T13:50:00+02:00", "2026-09-26T12:30:00Z"):
        assert isinstance(verdict([Near(A, tokens=tokens, created_at=created)], source="tool"), Blocked)


def test_texts_without_tokens_are_compared_by_key_alone():
    got = judge(screen(draft("🚀")), [Near(A)], tokens=frozenset(), now=NOW)
    assert isinstance(got, Admitted)
